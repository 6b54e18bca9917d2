"""Peak memory: its parts sum to it, verdicts follow the interval, and the largest batch just fits."""

from dataclasses import replace

import pytest
from tests.synthetic import chain, observed

from ampere import Meter, Profile, TrainingSetup
from ampere.core.allocations import ACTIVATIONS, PARAMETERS, Allocation, resident_peak
from ampere.core.errors import UsageError
from ampere.core.measurement import FIRST_PEAK_BYTES, PEAK_BYTES, PEAK_STEPS, RESTING_BYTES
from ampere.estimation.memory import (
    DOES_NOT_FIT,
    FITS,
    UNCERTAIN,
    USUAL_RUNTIME,
    PeakSeen,
    largest_batch,
    memory_of,
    peak_seen,
    runtime_bytes_in,
)

MB = 10**6


def held(batch: int):
    return [Allocation(50 * MB, PARAMETERS, "body", 1), Allocation(2 * MB * batch, ACTIVATIONS, "body.0", 2, 3)]


def at(batch: int, runtime_bytes: float | None = 300.0 * MB):
    return memory_of(held(batch), batch, runtime_bytes)


def test_the_parts_sum_to_the_peak():
    found = at(10)
    assert sum(found.parts.values()) == pytest.approx(found.bytes)
    assert found.parts["runtime"] == 300 * MB
    assert found.parts[PARAMETERS] == 50 * MB
    assert [(layer.name, layer.bytes) for layer in found.layers] == [("body", 50 * MB), ("body.0", 20 * MB)]


def test_without_a_measured_runtime_the_interval_is_wider():
    guessed, measured = at(10, None), at(10, USUAL_RUNTIME)
    assert guessed.bytes == measured.bytes
    assert not guessed.runtime_measured
    assert guessed.stddev > 2 * measured.stddev


def test_the_verdict_follows_the_interval():
    found = at(100)
    low, high = found.interval
    assert found.verdict is None
    assert found.within(high + 1).verdict == FITS
    assert found.within(found.bytes).verdict == UNCERTAIN
    assert found.within(low - 1).verdict == DOES_NOT_FIT
    assert found.within(4e9).to_json()["verdict"] == FITS


@pytest.mark.parametrize("limit", [0.5e9, 1e9, 8e9])
def test_the_largest_batch_fits_and_a_larger_one_does_not(limit):
    found = largest_batch(at, limit)
    assert at(found).interval[1] <= limit < at(round(found * 1.05) + 1).interval[1]


def test_a_model_of_which_not_one_example_fits_is_refused():
    with pytest.raises(UsageError, match="not even a batch of 1 fits into 100 MB"):
        largest_batch(at, 100 * MB)


def test_the_runtime_is_what_workers_measured():
    seen = [observed(chain(8, 8), 1e-3) for _ in range(3)]
    meter = Meter("synthetic", False)
    bare = Profile({"id": "x"}, TrainingSetup(), meter, 1e-3, tuple(seen))
    assert runtime_bytes_in(bare) is None
    known = [replace(o, measurement=replace(o.measurement, conditions={RESTING_BYTES: 310.0 * MB})) for o in seen]
    assert runtime_bytes_in(replace(bare, observations=tuple(known))) == 310 * MB


def touched(*peaks: float, first: float = 0.0, steps: int = 5):
    """Touches of one network by processes with these peaks, each of one window of one step."""
    conditions = {PEAK_BYTES: 0.0, PEAK_STEPS: float(steps), **({FIRST_PEAK_BYTES: first} if first else {})}
    seen = observed(chain(8, 8), 1e-3).measurement
    seen = replace(seen, allocator="system", target=tuple(w._replace(iterations=1) for w in seen.target[:1]))
    seen = replace(seen, yardstick=seen.yardstick[:2])
    made = [replace(seen, conditions={**conditions, PEAK_BYTES: peak}) for peak in peaks]
    return [replace(observed(chain(8, 8), 1e-3), measurement=each, purpose="touch") for each in made]


def test_a_model_whose_own_code_was_trained_has_the_peak_that_was_seen():
    seen = peak_seen(touched(600 * MB, 590 * MB, 595 * MB), chain(8, 8))
    assert seen.bytes == 600 * MB
    assert seen.processes == 3
    modelled = at(50)
    step = resident_peak(held(50))
    for runtime in (None, 300.0 * MB):
        found = memory_of(held(50), 50, runtime, seen=seen, seen_step=step)
        assert found.bytes == pytest.approx(600 * MB)
        assert sum(found.parts.values()) == pytest.approx(found.bytes)
        assert min(found.parts.values()) >= 0
        assert found.traced_bytes == pytest.approx(at(50, runtime).bytes)
        assert 0.02 < found.stddev / found.bytes < 0.05
        assert found.to_json()["seen"]["processes"] == 3
    assert modelled.seen is None
    assert modelled.to_json()["seen"] is None


def test_less_than_the_trace_says_shrinks_its_parts():
    seen = PeakSeen(380.0 * MB, 4 * MB, 3, 380.0 * MB)
    found = memory_of(held(50), 50, 300.0 * MB, seen=seen, seen_step=resident_peak(held(50)))
    assert found.bytes == pytest.approx(380 * MB)
    assert sum(found.parts.values()) == pytest.approx(found.bytes)
    assert 0 <= found.parts[PARAMETERS] < 50 * MB
    assert found.parts["allocator"] == pytest.approx(0.0, abs=1.0)


def test_another_batch_is_as_far_from_its_trace_as_the_one_that_was_seen():
    step = resident_peak(held(50))
    seen = PeakSeen(1.2 * at(50).bytes, 5 * MB, 3, 1.2 * at(50).bytes)

    def guided(batch: int):
        return memory_of(held(batch), batch, 300.0 * MB, seen=seen, seen_step=step)

    assert guided(50).stddev < guided(100).stddev < guided(200).stddev < at(200).stddev * 1.1
    assert guided(100).bytes > 1.15 * at(100).bytes
    assert guided(50).bytes < guided(100).bytes < 2 * guided(50).bytes
    assert largest_batch(guided, 1e9) < largest_batch(at, 1e9)


def test_after_few_steps_the_peak_is_raised_by_what_later_ones_take():
    peaks = (600 * MB, 590 * MB, 595 * MB)
    many = peak_seen(touched(*peaks, first=500 * MB, steps=5), chain(8, 8))
    few = peak_seen(touched(*peaks, first=500 * MB, steps=2), chain(8, 8))
    flat = peak_seen(touched(*peaks, first=600 * MB, steps=2), chain(8, 8))
    assert many.bytes == flat.bytes == 600 * MB
    assert 620 * MB < few.bytes < 640 * MB
    assert few.stddev > many.stddev


def test_beside_a_process_that_trained_enough_others_are_taken_as_they_were_read():
    enough = touched(600 * MB, first=500 * MB, steps=6)
    few = touched(595 * MB, first=400 * MB, steps=2)
    assert peak_seen([*enough, *few], chain(8, 8)).bytes == peak_seen(enough, chain(8, 8)).bytes
    assert peak_seen([*enough, *few], chain(8, 8)).processes == 2


def test_fewer_processes_stand_for_the_largest_of_three():
    three, one = (peak_seen(touched(*[600 * MB] * n), chain(8, 8)) for n in (3, 1))
    assert 610 * MB < one.bytes < 620 * MB
    assert one.measured_bytes == three.measured_bytes == 600 * MB
    assert three.bytes == 600 * MB


def test_only_touches_of_the_same_network_and_allocator_count():
    assert peak_seen(touched(600 * MB), chain(8, 16)) is None
    assert peak_seen(touched(600 * MB), chain(8, 8), "tuned") is None
    bare = [replace(o, measurement=replace(o.measurement, conditions={})) for o in touched(600 * MB)]
    assert peak_seen(bare, chain(8, 8)) is None, "touches of earlier versions say nothing of memory"
