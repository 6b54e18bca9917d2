"""What every runtime promises. A new one counts when it passes."""

import math

import pytest
import torch

from ampere.network import KINDS, Network, TrainingSetup, work
from ampere.network.setup import OPTIMIZERS
from ampere.worker.errors import WorkerError
from ampere.worker.runtimes import RUNTIMES, find_runtime

BUILDABLE = sorted(set(KINDS) - {"opaque"})


@pytest.fixture(params=sorted(RUNTIMES))
def runtime(request):
    found = find_runtime(request.param)
    found.prepare(1)
    yield found
    # Other tests in this process count on denormal numbers.
    torch.set_flush_denormal(False)


def trained(training, steps):
    training.step()
    first = training.last_loss()
    for _ in range(steps):
        training.step()
    return first, training.last_loss()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_it_really_learns(runtime, subject_of, optimizer):
    first, last = trained(runtime.build(subject_of("separable"), TrainingSetup(optimizer=optimizer)), 300)
    assert last < 0.99 * first


@pytest.mark.parametrize("kind", [kind for kind in BUILDABLE if kind not in ("matmul", "attention", "glue")])
def test_layers_learn(runtime, examples, layers_subject, kind):
    for layer in examples[kind]:
        first, last = trained(runtime.build(layers_subject(layer), TrainingSetup(optimizer="adam")), 60)
        assert last < first


@pytest.mark.parametrize("kind", BUILDABLE)
def test_it_has_the_parameters_of_the_table(runtime, examples, kind):
    for layer in examples[kind]:
        made = runtime.build({"layers": Network((layer,), 3).to_json()}, TrainingSetup())
        assert made.parameters == work(layer).parameters


def test_the_same_block_starts_from_the_same_weights(runtime, subject_of):
    losses = []
    for _ in range(2):
        runtime.prepare(1)
        losses.append(trained(runtime.build(subject_of("mlp"), TrainingSetup()), 2))
    assert losses[0] == losses[1]


def test_the_yardstick_learns_and_stays_finite(runtime):
    first, last = trained(runtime.yardstick(), 50)
    assert math.isfinite(last)
    assert last < first


def test_what_cannot_be_built_is_refused(runtime):
    with pytest.raises(WorkerError):
        runtime.build({"factory": "nothing"}, TrainingSetup())
