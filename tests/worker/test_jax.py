"""JAX: on the processor only, for as many rows as there are, with the paper's families, and slow compilers flagged."""

import os

import pytest

from ampere.models import FAMILIES
from ampere.network import Layer, TrainingSetup, work
from ampere.profiling.abilities import built_by
from ampere.profiling.sources import SpaceSource
from ampere.worker import compiling
from ampere.worker.block import block
from ampere.worker.runtimes import description_of, find_runtime
from ampere.worker.runtimes.layer_examples import conv

for library in description_of("jax").packages:
    pytest.importorskip(library, reason=description_of("jax").install)
JAX = TrainingSetup("jax")
SMALLEST = {
    "cnn5": {"channels": [2, 2, 2, 2]},
    "har": {"channels": [2, 2, 2], "fc": 2},
    "lstm": {"hidden": [2, 2]},
    "transformer": {"layers": 1, "width": 16, "ff": 16, "sequence": 4},
    "resnet": {"blocks": [1, 1], "widths": [2, 4]},
}


@pytest.fixture(name="jax")
def a_jax():
    runtime = find_runtime("jax")
    runtime.prepare(1)
    return runtime


def test_it_trains_on_the_processor_whatever_else_it_is_told(start_worker, layers_subject):
    worker = start_worker(**{**os.environ, "JAX_PLATFORMS": "cuda"})
    assert worker.block(layers_subject(conv()), setup={"runtime": "jax"})["result"]["parameters"] == 296


@pytest.mark.parametrize("family", SMALLEST)
def test_families_really_train(jax, family):
    space = FAMILIES[family]
    smallest = SpaceSource(space).of({**space.default, **SMALLEST[family], "batch": 2})
    described = {"layers": smallest.network.to_json()}
    training = jax.build(described, TrainingSetup("jax", optimizer="adam"))
    training.step()
    first = training.last_loss()
    for _ in range(20):
        training.step()
    assert training.last_loss() < first
    assert training.parameters == sum(work(layer).parameters for layer in smallest.network.layers)
    assert built_by("local", "jax", SpaceSource(space)).original().subject.keys() == described.keys()


def test_every_row_has_a_label(jax, layers_subject):
    rows = 70_000
    training = jax.build(layers_subject(Layer("linear", {"lead": (rows,), "bias": True}, 2, 2)), JAX)
    training.step()
    assert training.last_loss() > 0


@pytest.mark.parametrize(("limit", "flagged"), [(0.0, True), (600.0, False)])
def test_what_compiled_for_long_is_flagged(monkeypatch, layers_subject, limit, flagged):
    monkeypatch.setattr(compiling, "SLOW_SECONDS", limit)
    layers = layers_subject(conv(channels=(3, 7 if flagged else 9)))  # of its own, so that it is compiled
    told = block({"subject": layers, "setup": JAX.to_json(), "iterations": 2, "warmup": 1})
    assert told["compile_seconds"] > 0
    assert ("slow_compile" in told["flags"]) == flagged
