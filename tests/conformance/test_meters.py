"""What every meter keeps to. A new meter counts when it is in METERS and passes."""

import json
import math
import time

import pytest

from ampere.worker.meters.cpu_time import CpuTimeMeter

METERS = {"cpu-time": CpuTimeMeter}


@pytest.fixture(params=METERS, name="meter")
def a_meter(request):
    return METERS[request.param]()


def busy(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_it_says_what_it_is(meter):
    said = meter.describe()
    assert set(said) == {"name", "measured", "scope"}
    assert said["name"] in METERS
    assert isinstance(said["measured"], bool)
    assert json.loads(json.dumps(said)) == said


def test_it_rises_under_load(meter):
    meter.start()
    busy(0.05)
    joules = meter.stop()
    assert math.isfinite(joules)
    assert joules > 0


def test_twice_the_load_is_about_twice_the_joules(meter):
    spent = []
    for seconds in (0.1, 0.2):
        meter.start()
        busy(seconds)
        spent.append(meter.stop())
    assert 1.5 < spent[1] / spent[0] < 2.7


def test_windows_do_not_leak_into_each_other(meter):
    meter.start()
    busy(0.1)
    long = meter.stop()
    meter.start()
    short = meter.stop()
    assert 0 <= short < 0.2 * long
