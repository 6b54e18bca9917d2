"""Networks of every sort, for the profile of a device: they build, train, and take about as long as they should."""

import json
from random import Random

import pytest

from ampere.core.kinds import KINDS
from ampere.core.layer import TRAILING_CLASSES
from ampere.models.sorts import EVERY_SORT, LONE_LAYERS, SHARES, SORTS
from ampere.profiling.sources import DeviceSource

torch = pytest.importorskip("torch")
EVERY_NEW_SORT = pytest.mark.parametrize("name", SORTS)


def built(name, arguments):
    module, _, function = SORTS[name].factory.rpartition(":")
    model, inputs = getattr(__import__(module, fromlist=[function]), function)(**arguments)
    return model, inputs if isinstance(inputs, tuple) else (inputs,)


@EVERY_NEW_SORT
def test_the_default_trains_a_step_and_every_parameter_gets_a_gradient(name):
    model, inputs = built(name, SORTS[name].default)
    output = model(*inputs)
    assert len(output) == SORTS[name].default["batch"]
    output.square().mean().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@EVERY_NEW_SORT
def test_samples_build_and_run_on_shapes(name):
    rng = Random(7)
    for _ in range(20):
        arguments = SORTS[name].sample(rng)
        assert json.loads(json.dumps(arguments)) == arguments
        assert set(arguments) == set(SORTS[name].default)
        with torch.device("meta"):
            model, inputs = built(name, arguments)
            assert model(*inputs).shape[0] == arguments["batch"]


@EVERY_NEW_SORT
def test_the_same_seed_samples_the_same_networks(name):
    sample = SORTS[name].sample
    first, again, other = ([sample(rng) for _ in range(5)] for rng in (Random(3), Random(3), Random(4)))
    assert first == again != other


def test_a_device_is_learnt_from_every_sort_and_nearly_every_layer_kind():
    source, rng = DeviceSource(), Random(1)
    drawn = [source.sample(rng) for _ in range(60)]
    factories = {experiment.workload["factory"] for experiment in drawn}
    assert factories == {space.factory for space in EVERY_SORT.values()}
    assert {e.purpose for e in drawn} == {"network", "layer"}
    kinds = {layer.kind for experiment in drawn for layer in experiment.network.layers}
    rare = {"rnn", "opaque", "operation"}
    rows = {"gather", "scatter", "sort", "scan", "top_k"}  # a graph has some of them
    assert {*KINDS} - rare - rows <= kinds
    assert rows & kinds
    tails = {op.op for experiment in drawn for layer in experiment.network.layers for op in layer.trailing}
    assert tails == {*TRAILING_CLASSES} - {"other"}
    assert not [e for e in drawn if any(layer.kind == "opaque" for layer in e.network.layers)]
    assert source.original().network.layers
    assert set(SHARES) == set(EVERY_SORT)
    alone = [e.workload["arguments"]["layer"] for e in drawn if e.purpose == "layer"]
    assert len({*alone[: len(LONE_LAYERS)]}) == min(len(alone), len(LONE_LAYERS))  # each once before any again


def test_sequences_are_answered_at_every_step():
    for cell in ("lstm", "gru", "cell", "decay"):
        model, inputs = built("sequence", {**SORTS["sequence"].default, "cell": cell})
        assert model(*inputs).shape == (8, 32, 10)


def test_bags_are_summed_before_the_first_layer():
    model, inputs = built("mlp", {**SORTS["mlp"].default, "tables": [20, 30], "bag": 3, "width": 8})
    assert inputs[0].shape == (32, 2, 3)
    assert model(*inputs).shape == (32, 10)
