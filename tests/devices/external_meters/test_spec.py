"""What `--meter log:...` may say."""

import pytest

from ampere.core.errors import UsageError
from ampere.devices.external_meters import DEFERRED, asked_as, meter_for
from ampere.devices.external_meters.deferred import deferred_meter
from ampere.devices.external_meters.log import LogSpec


def test_columns_have_names_and_units():
    spec = LogSpec.parse("log:my bench.csv,time=Timestamp(ms):ms,power=Main: P:mW")
    assert str(spec.path) == "my bench.csv"
    assert spec.columns["time"].name == "Timestamp(ms)"
    assert spec.columns["power"].name == "Main: P"
    assert (spec.columns["time"].scale, spec.columns["power"].scale) == (1e-3, 1e-3)


def test_a_supply_whose_voltage_is_known_needs_no_column():
    spec = LogSpec.parse("log:a.csv,time=1,current=2:mA,voltage=5V")
    assert spec.fixed_volts == 5.0
    assert "voltage" not in spec.columns


@pytest.mark.parametrize(
    "text",
    [
        "log:",
        "log:a.csv",
        "log:a.csv,power=2",
        "log:a.csv,time=1",
        "log:a.csv,time=1,current=2",
        "log:a.csv,time=1,power=2:kW",
        "log:a.csv,time=1,joules=2",
        "log:a.csv,time,power",
    ],
)
def test_what_is_missing_is_said_with_an_example(text):
    with pytest.raises(UsageError, match=r"as in log:|one of W"):
        LogSpec.parse(text)


def test_what_is_advised_is_accepted():
    assert LogSpec.parse(asked_as("log")).columns.keys() == {"time", "power"}
    assert asked_as("powercap") == "powercap"
    assert deferred_meter(meter_for(0.03)).interval == 0.03
    assert meter_for(0.011).startswith(DEFERRED)
    assert LogSpec.parse(meter_for(0.2))
