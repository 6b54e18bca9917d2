"""RAPL's counters: what is added, what runs over, what was set back, what may not be read."""

import os
import tempfile
from pathlib import Path

import pytest
from tests.sysfs_tree import RANGE_UJ, add_zone, put

from ampere.core.errors import WorkerError
from ampere.meters import powercap


def test_packages_and_their_memory_are_added_and_nothing_twice(tmp_path):
    zones = {
        "intel-rapl:0": "package-0",
        "intel-rapl:0:0": "core",
        "intel-rapl:0:1": "dram",
        "intel-rapl:1": "package-1",
        "intel-rapl:2": "psys",
        "intel-rapl-mmio:0": "package-0",
    }
    counters = {zone: add_zone(tmp_path, zone, name) for zone, name in zones.items()}
    put(tmp_path / "class" / "powercap" / "intel-rapl" / "enabled", 1)
    meter = powercap.find(str(tmp_path))
    assert meter.describe()["scope"] == "package-0 + package-0 dram + package-1"
    meter.start()
    for energy, counter in zip((1, 2, 4, 8, 16, 32), counters.values(), strict=True):
        put(counter, energy * 1000)
    assert meter.stop() == pytest.approx(0.013)


def test_three_runs_over_on_two_sockets_lose_nothing(tmp_path):
    ranges = (RANGE_UJ, 65_532_610_987)
    counters = [add_zone(tmp_path, f"intel-rapl:{i}", f"package-{i}", 0, r) for i, r in enumerate(ranges)]
    meter, total = powercap.find(str(tmp_path)), 0.0
    step = 40_000_001
    for start in (-3 * step // 2, -step // 2, -step // 3):
        for counter, most in zip(counters, ranges, strict=True):
            put(counter, most + start)
        meter.start()
        for counter, most in zip(counters, ranges, strict=True):
            put(counter, (most + start + step) % most)
        total += meter.stop()
    assert total == pytest.approx(6 * step * 1e-6, abs=1e-6)


@pytest.mark.parametrize(("before", "after"), [(5_000_000, 12_000), (RANGE_UJ // 2, 0), (10, 900_000_000_000)])
def test_a_counter_that_was_set_back_or_jumped_is_no_energy(tmp_path, before, after):
    counter = add_zone(tmp_path, "intel-rapl:0", "package-0", before)
    meter = powercap.find(str(tmp_path))
    meter.start()
    put(counter, after)
    with pytest.raises(WorkerError, match="was reset from"):
        meter.stop()
    meter.start()
    put(counter, after + 1_000_000)
    assert meter.stop() == pytest.approx(1.0)


def test_a_window_that_could_hide_two_runs_over_is_refused():
    zone = powercap.Zone("package-0", Path(), 65_532_610_987)
    assert powercap.spent_uj(zone, 1, 2, 60.0) == 1
    with pytest.raises(WorkerError, match="overflowed twice"):
        powercap.spent_uj(zone, 1, 2, 66.0)


@pytest.mark.parametrize("broken", ["gone", "empty", "words"])
def test_a_read_that_fails_invents_nothing(tmp_path, broken):
    counter = add_zone(tmp_path, "intel-rapl:0", "package-0", 212_000_000_000)
    meter = powercap.find(str(tmp_path))
    meter.start()
    counter.unlink()
    if broken != "gone":
        put(counter, {"empty": "", "words": "not now"}[broken])
    with pytest.raises(WorkerError, match="energy_uj"):
        meter.stop()
    put(counter, 212_000_000_005)
    assert meter.stop() == pytest.approx(5e-6)


def test_what_may_not_be_read_is_said_in_one_line():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        add_zone(root, "intel-rapl:0", "package-0").chmod(0)
        root.chmod(0o755)
        with _as_nobody(), pytest.raises(WorkerError) as said:
            powercap.find(folder)
    assert said.value.type == "meter_failed"
    for words in ("energy_uj may be read by", "sudo chmod o+r", "--meter cpu-time"):
        assert words in str(said.value)
    assert "\n" not in str(said.value)


class _as_nobody:
    """The owner of a machine may read everything, whatever a file's mode."""

    def __enter__(self):
        self.owner = os.geteuid()
        if self.owner == 0:
            os.seteuid(65534)

    def __exit__(self, *_):
        if self.owner == 0:
            os.seteuid(0)
