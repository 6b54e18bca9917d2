"""Peak memory: its parts sum to it, verdicts follow the interval, and the largest batch just fits."""

import pytest
from tests.synthetic import chain, observed

from ampere import Meter, Profile, TrainingSetup
from ampere.core.allocations import ACTIVATIONS, PARAMETERS, Allocation
from ampere.core.errors import UsageError
from ampere.core.measurement import RESTING_BYTES
from ampere.estimation.memory import DOES_NOT_FIT, FITS, UNCERTAIN, USUAL_RUNTIME, largest_batch, memory_of

MB = 10**6


def at(batch: int, runtime_bytes: float | None = 300.0 * MB):
    held = [Allocation(50 * MB, PARAMETERS, "body", 1), Allocation(2 * MB * batch, ACTIVATIONS, "body.0", 2, 3)]
    return memory_of(held, batch, runtime_bytes)


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
    from dataclasses import replace

    from ampere.estimation.memory import runtime_bytes_in

    seen = [observed(chain(8, 8), 1e-3) for _ in range(3)]
    meter = Meter("synthetic", False)
    bare = Profile({"id": "x"}, TrainingSetup(), meter, 1e-3, tuple(seen))
    assert runtime_bytes_in(bare) is None
    known = [replace(o, measurement=replace(o.measurement, conditions={RESTING_BYTES: 310.0 * MB})) for o in seen]
    assert runtime_bytes_in(replace(bare, observations=tuple(known))) == 310 * MB
