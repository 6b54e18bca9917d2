"""The yardstick scales every joule: a reading of it that was disturbed is made again, and never used."""

import json
import sys
import time
from dataclasses import replace
from math import inf
from random import Random
from types import ModuleType, SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.synthetic import chain, observed
from tests.sysfs_tree import add_battery, add_zone, put

from ampere import runtimes
from ampere.core import Measurement, Meter, TrainingSetup
from ampere.core.measurement import YARDSTICK_ALONE, Window
from ampere.estimation.normalization import Reference, normalized, yardstick_alone
from ampere.meters import selection
from ampere.meters.meter import CheckedMeter
from ampere.profiling.running import at_typical_speed
from ampere.runtimes import Description, Training
from ampere.runtimes.table import OURS
from ampere.storage.checks import check_measurement
from ampere.storage.profile import Observation
from ampere.storage.recording import Header
from ampere.worker import block, serving
from ampere.worker.block import slowed_down

pytestmark = pytest.mark.fault(33)

STEP_JOULES, BEFORE_STOP = 0.004, 12  # the step of a reading in which something happens, warm-up included
ATTEMPTS = block.METER_ATTEMPTS
METER = Meter("cpu-time", False, "5 W per busy core")


class Laptop:
    """A machine with a counter, whose runtime's yardstick step takes a millisecond and a few millijoules."""

    def __init__(self, root):
        self.counter, self.joules, self.readings, self.steps, self.slept = (
            add_zone(root, "intel-rapl:0", "package-0"),
            1.0,
            0,
            0,
            0.0,
        )
        self.plug = root / "class/power_supply/AC/online"
        add_battery(root, power_now=7_000_000)
        put(self.plug.with_name("type"), "Mains")
        put(self.plug, 0)
        self.disturb = lambda: None

    def prepare(self, threads):
        self.readings, self.steps, self.joules = self.readings + 1, 0, self.joules + 5.0
        self.count()

    def build(self, workload, setup):
        return self.yardstick()

    def yardstick(self):
        return Training(self.step, lambda: 1.0, 1)

    def step(self):
        until = time.process_time() + 0.001
        while time.process_time() < until:
            pass
        self.steps, self.joules = self.steps + 1, self.joules + STEP_JOULES
        self.count()
        if self.steps == BEFORE_STOP:
            self.disturb()

    def count(self):
        put(self.counter, int(1e6 * self.joules))

    def resets(self):
        self.joules = 0.0
        self.count()

    def vanishes(self):
        self.counter.unlink()
        self.count = lambda: None

    def sleeps(self):
        self.slept += 30.0

    def switches(self):
        put(self.plug, 1 - int(self.plug.read_text()))


@pytest.fixture
def laptop(tmp_path, monkeypatch):
    found = Laptop(tmp_path)
    monkeypatch.setenv("AMPERE_SYSFS", str(tmp_path))
    monkeypatch.setenv("AMPERE_METER", "powercap")
    monkeypatch.setitem(sys.modules, "toy_runtime", module := ModuleType("toy_runtime"))
    module.create = lambda: found
    monkeypatch.setitem(OURS, "toy", Description("toy_runtime", (), "nothing"))
    monkeypatch.setattr(runtimes, "_loaded", {})
    monkeypatch.setattr(block, "slept_seconds", lambda: found.slept)
    monkeypatch.setattr(selection, "advances", lambda meter: True)  # this one does in the runtime's steps only
    yield found
    selection._counter.cache_clear()


def read():
    """What the worker answers a host, whatever the host needs the yardstick for."""
    line = json.dumps({"id": 1, "do": "yardstick", "seconds": 0.05, "runtime": "toy"}).encode()
    return serving.answer(line, {"yardstick": block.yardstick_alone})


@pytest.mark.parametrize("happens", ["resets", "sleeps", "switches"])
def test_one_disturbed_reading_is_made_again(laptop, happens, record_property):
    def once():
        getattr(laptop, happens)()
        laptop.disturb = lambda: None

    laptop.disturb = once
    found = read()["result"]
    assert laptop.readings == 2
    assert found["joules"] == pytest.approx(STEP_JOULES, rel=0.5)
    assert "source_switched" not in found["flags"]
    record_property("figure", f"{happens}: 1 reading discarded, the next one used")


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        ("resets", "the counter of package-0 was reset"),
        ("vanishes", "energy_uj cannot be read"),
        ("sleeps", "the machine went to sleep"),
        ("switches", "the power source changed"),
    ],
)
def test_one_that_is_disturbed_every_time_is_no_reading(laptop, happens, why):
    laptop.disturb = getattr(laptop, happens)
    answer = read()
    assert "result" not in answer
    assert answer["error"]["type"] == "meter_failed"
    assert why in answer["error"]["message"]
    assert laptop.readings == ATTEMPTS


def test_a_quiet_reading_is_made_once(laptop):
    found = read()["result"]
    assert laptop.readings == 1
    assert found["joules"] == pytest.approx(STEP_JOULES, rel=0.5)


def test_a_block_reports_the_yardstick_alone(laptop):
    found = block.block({"workload": {"factory": "a:b"}, "setup": {"runtime": "toy"}, "iterations": 4, "count": False})
    assert 0.001 <= found["conditions"][YARDSTICK_ALONE] < 0.1


def test_the_reference_comes_from_all_blocks_of_a_profile(record_property):
    """First readings within an hour differ by a third."""
    rng = Random(0)
    blocks = [observed(chain(3, 8), 2e-3) for _ in range(60)]
    blocks = [replace(o, measurement=replace(o.measurement, conditions=spent(rng))) for o in blocks]
    first = Header({"id": "x"}, TrainingSetup(), METER, 0.98e-3, yardstick_joules=0.011, watts_idle=2.0)
    header = at_typical_speed(first, blocks)
    off = header.yardstick_seconds / 0.8e-3 - 1
    record_property("figure", f"a first reading 23 % off: the reference of 60 blocks is {off:+.1%} off")
    assert abs(off) <= 0.03
    assert header.yardstick_joules / header.yardstick_seconds == pytest.approx(0.011 / 0.98e-3)
    assert header.watts_idle == 2.0
    assert at_typical_speed(first, blocks[:7]) == first


def spent(rng):
    return {YARDSTICK_ALONE: 0.8e-3 * rng.lognormvariate(0.0, 0.08)}


@pytest.mark.parametrize("joules", [float("inf"), float("nan"), -1.0, "many", None])
def test_what_another_packages_meter_reads_is_a_number_or_its_failure(joules):
    odd = SimpleNamespace(update_seconds=0.1, reading_unit="J", start=lambda: 1 / 0, stop=lambda: joules)
    for act in (CheckedMeter("odd", odd).start, CheckedMeter("odd", odd).stop):
        with pytest.raises(block.WorkerError, match=r"^odd ") as failed:
            act()
        assert failed.value.type == "meter_failed"


seconds = st.one_of(st.just(0.0), st.floats(1e-12, 1e4))
rows = st.builds(Window, st.integers(1, 10**6), seconds, seconds, st.one_of(st.none(), st.floats(0, 1e6)))


@settings(max_examples=50)
@given(st.lists(st.tuples(rows, rows), min_size=1, max_size=9), rows, st.floats(allow_nan=False), st.floats(1e-9, 10))
def test_whatever_the_windows_what_is_used_is_finite_and_positive(pairs, last, alone, joules):
    """Windows of 0 s, of a clock that jumped, of a counter that stood still."""
    targets, yardsticks = [pair[0] for pair in pairs], [*(pair[1] for pair in pairs), last]
    assert slowed_down(targets, yardsticks) in (True, False)
    assert slowed_down([], yardsticks) in (True, False)
    found = Measurement(tuple(targets), tuple(yardsticks), METER, conditions={YARDSTICK_ALONE: alone})
    try:
        check_measurement(found)
    except (ValueError, OverflowError):
        return
    seen = [Observation(chain(3, 8), found, "network")] * 8
    reference = yardstick_alone(seen)
    assert reference is None or 0 < reference < inf
    for costs in (normalized(seen, Reference(1e-3)), normalized(seen, Reference(1e-3, joules))):
        for cost in costs:
            figures = (cost.ratio, cost.joules, cost.seconds, cost.busy_seconds, *cost.joules_rounds)
            assert all(0 < figure < inf for figure in figures), cost
