"""The yardstick scales every joule: a reading of it that was disturbed is made again, and never used."""

import json
import sys
import time
from dataclasses import replace
from random import Random
from types import ModuleType, SimpleNamespace

import pytest
from tests.synthetic import chain, observed
from tests.sysfs_tree import add_battery, add_zone, put

from ampere import runtimes
from ampere.core import Meter, TrainingSetup
from ampere.core.measurement import YARDSTICK_ALONE
from ampere.meters import selection
from ampere.meters.meter import CheckedMeter
from ampere.profiling.running import at_typical_speed
from ampere.runtimes import Description, Training
from ampere.runtimes.table import OURS
from ampere.storage.recording import Header
from ampere.worker import block, serving

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
    """13 first readings within an hour were from 1.59 to 2.21 ms."""
    rng = Random(0)
    blocks = [observed(chain(3, 8), 2e-3) for _ in range(60)]
    blocks = [replace(o, measurement=replace(o.measurement, conditions=spent(rng))) for o in blocks]
    first = Header({"id": "x"}, TrainingSetup(), METER, 2.21e-3, yardstick_joules=0.011, watts_idle=2.0)
    header = at_typical_speed(first, blocks)
    off = header.yardstick_seconds / 1.8e-3 - 1
    record_property("figure", f"a first reading 23 % off: the reference of 60 blocks is {off:+.1%} off")
    assert abs(off) <= 0.03
    assert header.yardstick_joules / header.yardstick_seconds == pytest.approx(0.011 / 2.21e-3)
    assert header.watts_idle == 2.0
    assert at_typical_speed(first, blocks[:7]) == first


def spent(rng):
    return {YARDSTICK_ALONE: 1.8e-3 * rng.lognormvariate(0.0, 0.08)}


@pytest.mark.parametrize("joules", [float("inf"), float("nan"), -1.0, "many", None])
def test_what_another_packages_meter_reads_is_a_number_or_its_failure(joules):
    odd = SimpleNamespace(update_seconds=0.1, reading_unit="J", start=lambda: 1 / 0, stop=lambda: joules)
    for act in (CheckedMeter("odd", odd).start, CheckedMeter("odd", odd).stop):
        with pytest.raises(block.WorkerError, match=r"^odd ") as failed:
            act()
        assert failed.value.type == "meter_failed"
