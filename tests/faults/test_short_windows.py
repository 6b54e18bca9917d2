"""Windows too short for a meter, 0 J, and sensors that look only part of the time."""

from random import Random
from types import SimpleNamespace

import pytest
from tests.sysfs_tree import add_battery, add_rail, add_zone

from ampere.core.errors import WorkerError
from ampere.core.measurement import Window
from ampere.core.windows import plan_for_counter
from ampere.devices.external_meters import bench, phone
from ampere.meters import CpuTimeMeter
from ampere.meters.external import ExternalMeter
from ampere.meters.nvml import NvmlCounter, NvmlPower
from ampere.meters.selection import BUILT_IN
from ampere.meters.sensors import joules_under
from ampere.meters.zeus import Source, ZeusMeter
from ampere.worker.block import _refuse_zero_joules

pytestmark = pytest.mark.fault(7)


def test_0_joules_are_never_a_result():
    with pytest.raises(WorkerError, match=r"reported 0 J for 0\.5 s of training"):
        _refuse_zero_joules(CpuTimeMeter(), [Window(10, 0.5, 0.5, 0.0, 0)])


ZEUS = ZeusMeter([Source("gpu 0", lambda: 0.0)])
CARD = SimpleNamespace(nvmlDeviceGetTotalEnergyConsumption=lambda card: 0, nvmlDeviceGetPowerUsage=lambda card: 0)
FOLDERS = {
    "powercap": lambda root: add_zone(root, "intel-rapl:0", "package-0"),
    "hwmon": lambda root: add_rail(root, "hwmon0", 1, "VDD_IN", 5000, 1000),
    "battery": lambda root: add_battery(root, power_now=5_000_000),
    "battery in steps": lambda root: add_battery(root, energy_now=50_000_000),
}


def every_meter(root):
    """Each with its own windows: those that a worker finds, and those that the host reads."""
    for name, add in FOLDERS.items():
        add(root / name)
        yield name, BUILT_IN[name.split()[0]](str(root / name))
    yield "zeus", ZEUS
    yield "nvml", NvmlCounter(CARD, [0], "a card")
    yield "nvml by its power", NvmlPower(CARD, [0], "a card")
    yield "cpu-time", CpuTimeMeter()
    for every_seconds in (0.01, 1.0):
        window = bench.window_seconds(every_seconds)
        yield f"log of {every_seconds:g} s rows", ExternalMeter(window, every_seconds)
    yield "adb", ExternalMeter(phone.SAMPLES_IN_WINDOW * phone.EVERY_SECONDS, phone.EVERY_SECONDS)


def test_windows_of_every_meter_hold_60_samples_or_100_updates(tmp_path, record_property):
    found = dict(every_meter(tmp_path))
    assert {name.split()[0] for name in found} >= {*BUILT_IN, "cpu-time", "log", "adb"}
    for name, meter in found.items():
        described = meter.describe()
        held = described.get("window_seconds", 0.0) / described.get("update_seconds", meter.update_seconds)
        least = 0 if not described["measured"] else 100 if meter.reading_unit == "J" else 60
        assert held >= least - 1e-9, name
    record_property("figure", f"{len(found)} meters: 60 samples or 100 updates in every window")


@pytest.mark.parametrize("step_seconds", [0.0001, 0.003, 0.5, 7.0])
def test_blocks_are_as_long_as_windows_must_be(step_seconds):
    plan = plan_for_counter(8, step_seconds, 0.002, 6.0)
    assert sum(plan.targets) * step_seconds >= 6.0
    assert (len(plan.targets) + 1) * plan.yardsticks * 0.002 >= 6.0


@pytest.mark.parametrize("period", [0.0037, 0.0121, 0.0473, 0.0999])
def test_a_sensor_that_looks_a_quarter_of_the_time_is_off_by_3_percent_at_most(period):
    """Simulated: it tells, every 100 ms, the mean power of the last 25 ms; steps draw 30 W and 8 W in turn."""
    rng, found = Random(1), []
    for _ in range(50):
        phase = rng.uniform(0, 1)
        samples = [(t, _mean_watts(t - 0.025, t, period, phase)) for t in (i * 0.1 for i in range(61))]
        found.append(joules_under(samples) / 6.0)
    assert sum(found) / len(found) == pytest.approx(0.6 * 30 + 0.4 * 8, rel=0.03)


def _mean_watts(began, ended, period, phase):
    def joules(t):
        steps, rest = divmod(t + phase * period, period)
        return steps * period * (0.6 * 30 + 0.4 * 8) + min(rest, 0.6 * period) * 30 + max(rest - 0.6 * period, 0) * 8

    return (joules(ended) - joules(began)) / (ended - began)
