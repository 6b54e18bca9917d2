"""What every meter keeps to. A new meter counts when it is in METERS and passes."""

import hashlib
import json
import math
import time

import pytest
from tests.sysfs_tree import Machine, add_hwmon, add_powercap, add_shown_battery

from ampere.network import Meter
from ampere.worker.meters import battery, hwmon, powercap
from ampere.worker.meters.cpu_time import CpuTimeMeter

METERS = {  # how it is found under a folder, and what that folder shows of a machine
    "cpu-time": (lambda root: CpuTimeMeter(), lambda root: lambda joules, watts: None),
    "powercap": (powercap.find, add_powercap),
    "hwmon": (hwmon.find, add_hwmon),
    "battery": (battery.find, add_shown_battery),
}


@pytest.fixture(params=METERS, name="meter")
def a_meter(request, tmp_path):
    find, add = METERS[request.param]
    with Machine(add(tmp_path)):
        yield find(str(tmp_path))


def busy(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        hashlib.sha256(bytes(200_000)).digest()  # leaves the machine's thread alone


def load_of(meter) -> float:
    """A sensor needs several samples before the ends of a window matter little."""
    return 0.1 if meter.reading_unit == "J" else max(0.3, meter.update_seconds)


def test_it_says_what_it_is(meter):
    said = meter.describe()
    assert set(said) - {"window_seconds"} == {"name", "measured", "scope"}
    assert said["name"] in METERS
    assert isinstance(said["measured"], bool)
    assert said["measured"] == (said.get("window_seconds", 0) > 0)
    assert json.loads(json.dumps(said)) == said
    assert Meter(**said).to_json().items() >= said.items()


def test_it_rises_under_load(meter):
    meter.start()
    busy(0.05)
    joules = meter.stop()
    assert math.isfinite(joules)
    assert joules > 0


def test_twice_the_load_is_about_twice_the_joules(meter):
    spent = []
    for share in (1, 2):
        meter.start()
        busy(share * load_of(meter))
        spent.append(meter.stop())
    assert 1.5 < spent[1] / spent[0] < 2.7


def test_windows_do_not_leak_into_each_other(meter):
    meter.start()
    busy(load_of(meter))
    long = meter.stop()
    meter.start()
    short = meter.stop()
    assert 0 <= short < 0.2 * long


def test_a_window_may_be_begun_again(meter):
    meter.start()
    busy(load_of(meter))
    meter.start()
    assert 0 <= meter.stop() < 2.0


def test_its_reading_moves_under_load(meter):
    assert meter.reading_unit in ("J", "W")
    seen = set()
    for _ in range(20):
        busy(0.005)
        seen.add(meter.reading())
    assert len(seen) > 2
    assert all(map(math.isfinite, seen))


def test_where_there_is_no_such_meter_nothing_is_found(request, tmp_path):
    for find in (powercap.find, hwmon.find, battery.find):
        assert find(str(tmp_path / "empty")) is None
