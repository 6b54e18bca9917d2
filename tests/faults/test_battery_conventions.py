"""Three sign conventions, charging or not, two units: the right joules or a refusal, 12 of 12."""

import time

import pytest
from tests.sysfs_tree import add_battery

from ampere.core.errors import WorkerError
from ampere.meters import battery

pytestmark = pytest.mark.fault(11)
SIGNS = {"negative discharges": {"Discharging": -1, "Charging": 1}}
SIGNS["positive discharges"] = {status: -sign for status, sign in SIGNS["negative discharges"].items()}
SIGNS["no sign"] = {"Discharging": 1, "Charging": 1}
UNITS = {"uA": (1_500_000, 3_800_000), "mA": (1500, 3800)}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("status", ["Discharging", "Charging"])
@pytest.mark.parametrize("sign", SIGNS)
def test_right_joules_or_a_refusal(tmp_path, sign, status, unit):
    current, voltage = UNITS[unit]
    add_battery(tmp_path, status, current_now=SIGNS[sign][status] * current, voltage_now=voltage)
    if status == "Charging":
        with pytest.raises(WorkerError, match="unplug"):
            battery.find(str(tmp_path))
        return
    meter = battery.find(str(tmp_path))
    before = time.monotonic()
    meter.start()
    began = time.monotonic()
    time.sleep(0.1)
    ended = time.monotonic()
    joules = meter.stop()
    assert 5.7 * (ended - began) <= joules <= 5.7 * (time.monotonic() - before)
