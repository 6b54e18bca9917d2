"""RAPL's counters that run over, are set back, or fail at any moment: no window with invented joules."""

import pytest
from tests.sysfs_tree import RANGE_UJ, add_zone, put

from ampere.core.errors import WorkerError
from ampere.core.windows import Plan
from ampere.meters import meter_failed, powercap
from ampere.worker import block
from ampere.worker.measuring import Target, measure

STEP_UJ = 40_000_001
STARTS = (-STEP_UJ, -STEP_UJ // 2, -STEP_UJ // 3)  # before the end of a counter, in uJ


@pytest.fixture(name="sockets")
def two_sockets(tmp_path):
    ranges = (RANGE_UJ, 65_532_610_987)
    counters = [add_zone(tmp_path, f"intel-rapl:{i}", f"package-{i}", 0, most) for i, most in enumerate(ranges)]
    return powercap.find(str(tmp_path)), list(zip(counters, ranges, strict=True))


@pytest.mark.fault(4)
def test_three_runs_over_on_two_sockets_err_by_at_most_a_microjoule(sockets):
    meter, counters = sockets
    total = 0.0
    for start in STARTS:
        for counter, most in counters:
            put(counter, most + start)
        meter.start()
        for counter, most in counters:
            put(counter, (most + start + STEP_UJ) % most)
        total += meter.stop()
    assert total == pytest.approx(6 * STEP_UJ * 1e-6, abs=1e-6)


@pytest.mark.fault(6)
def test_a_reset_is_neither_negative_nor_a_run_over(sockets):
    """5000 -> 12 mJ, as a driver does that is loaded again."""
    meter, counters = sockets
    put(counters[0][0], 5_000_000)
    meter.start()
    put(counters[0][0], 12_000)
    with pytest.raises(WorkerError, match="was reset from 5000000 to 12000 uJ"):
        meter.stop()


@pytest.mark.fault(4)
def test_a_window_that_could_hide_two_runs_over_is_invalid(sockets, monkeypatch):
    meter, _ = sockets
    meter.start()
    meter._began -= 66.0  # the smaller counter runs over in 65.5 s at 1 kW
    with pytest.raises(WorkerError, match="may have overflowed twice"):
        meter.stop()


@pytest.mark.fault(3)
@pytest.mark.parametrize("pairs", [3])
def test_a_read_that_fails_at_any_index_invents_nothing(tmp_path, monkeypatch, pairs):
    """A failed read that counted as 0 would make the next window 212 kJ."""
    counter = add_zone(tmp_path, "intel-rapl:0", "package-0", 212_000_000_000)
    spent, read = [212_000_000_000], powercap.number_in

    def step():
        spent[0] += 1000
        put(counter, spent[0])

    failed = 0
    for index in range(2 * (2 * pairs + 1) + 1):  # two reads a window, and one when it is found
        left = [index]

        def failing(path, left=left):
            left[0] -= 1
            if left[0] == -1:
                raise meter_failed(f"{path} cannot be read")
            return read(path)

        monkeypatch.setattr(powercap, "number_in", failing)
        try:
            meter = powercap.PowercapMeter([powercap.Zone("package-0", counter.parent, RANGE_UJ)])
            targets, yardsticks = measure(Plan((5,) * pairs, 2), Target(step), step, meter, float("inf"))
        except WorkerError:
            failed += 1
            continue
        assert [w.joules for w in targets] == pytest.approx([0.005] * pairs)
        assert [w.joules for w in yardsticks] == pytest.approx([0.002] * (pairs + 1))
    assert failed == 2 * (2 * pairs + 1) + 1


@pytest.mark.fault(3)
def test_it_is_tried_three_times_and_then_refused(monkeypatch):
    tries = []

    def fails(request, tell):
        tries.append(1)
        raise meter_failed("energy_uj cannot be read")

    monkeypatch.setattr(block, "_isolated", fails)
    with pytest.raises(WorkerError, match="energy_uj cannot be read"):
        block.block({"workload": {"factory": "a:b"}})
    assert len(tries) == 3
