"""What every meter keeps to: on folders that a simulated machine keeps up to date, and on counters that are here."""

import pytest
from tests.sysfs_tree import Machine, add_hwmon, add_powercap, add_shown_battery

from ampere.core import Meter
from ampere.core.errors import WorkerError
from ampere.meters import battery, hwmon, powercap, zeus
from ampere.meters.conformance import MeterConformance
from ampere.meters.cpu_time import CpuTimeMeter

pytestmark = pytest.mark.alone
METERS = {  # how it is found under a folder, and what that folder shows of a machine
    "cpu-time": (lambda root: CpuTimeMeter(), lambda root: lambda joules, watts: None),
    "powercap": (powercap.find, add_powercap),
    "hwmon": (hwmon.find, add_hwmon),
    "battery": (battery.find, add_shown_battery),
}
REAL = {"powercap": powercap.find, "hwmon": hwmon.find, "battery": battery.find, "zeus": zeus.find}


class TestOnASimulatedMachine(MeterConformance):
    @pytest.fixture(params=METERS)
    def meter(self, request, tmp_path, monkeypatch):
        find, add = METERS[request.param]
        monkeypatch.setattr(battery.BatteryMeter, "update_seconds", 0.05)  # a real one takes a second
        with Machine(add(tmp_path)):
            yield find(str(tmp_path))

    def test_its_description_is_a_meters(self, meter):
        said = meter.describe()
        assert said["name"] in METERS
        assert Meter(**said).to_json().items() >= said.items()


class TestOnThisMachine(MeterConformance):
    @pytest.fixture(params=REAL)
    def meter(self, request):
        try:
            found = REAL[request.param]("/sys")
        except WorkerError as problem:
            pytest.skip(str(problem))
        if found is None:
            pytest.skip(f"there is no {request.param} on this machine")
        return found


@pytest.mark.parametrize("find", [powercap.find, hwmon.find, battery.find])
def test_where_there_is_no_such_meter_nothing_is_found(find, tmp_path):
    assert find(str(tmp_path / "empty")) is None
