"""Runtimes that compile: compile time is separate, kept, and limited."""

import pytest

from ampere.core import Network, TrainingSetup
from ampere.devices import LocalWorker, VariantDied
from ampere.runtimes.conformance import conv
from ampere.runtimes.table import description_of, installed

WORKLOAD = {"layers": Network((conv(),), 3).to_json()}
QUICK = {"iterations": 2, "warmup": 1}


@pytest.fixture(scope="module")
def device():
    if "jax" not in installed():
        pytest.skip(description_of("jax").install)
    with LocalWorker() as found:
        yield found


@pytest.mark.measured
def test_compiling_is_counted_once_and_in_no_step(device):
    first, second = (device.block(WORKLOAD, TrainingSetup("jax"), **QUICK) for _ in range(2))
    assert first.compile_seconds > 10 * first.wall_seconds
    assert second.compile_seconds == 0.0
    assert first.parameters == second.parameters


def test_what_takes_too_long_to_compile_is_given_up_and_the_worker_starts_again(device):
    device.compile_limit, before = 0.01, device.restarts
    larger = {"layers": Network((conv(channels=(4, 16)), conv(channels=(16, 16))), 3).to_json()}
    with pytest.raises(VariantDied, match=r"longer than 0.01 s.*--runtime torch"):
        device.block(larger, TrainingSetup("jax"), **QUICK)
    device.compile_limit = 60.0
    assert device.block(WORKLOAD, TrainingSetup("jax"), **QUICK).ratio() > 0
    assert device.restarts == before + 1
