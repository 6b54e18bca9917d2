"""Layers and operations that stand alone: really trained, each as it is in its network."""

from random import Random

import pytest
import torch
from tests.synthetic import conv, linear

from ampere.api.profiles import baseline_profiles
from ampere.core import Layer, Network, TrailingOp
from ampere.core.kinds.kind import product
from ampere.core.wiring import wire
from ampere.devices import Device
from ampere.estimation.kernel_forests import operation_kind
from ampere.models.loading import find_space
from ampere.profiling.isolated import alone, can_stand_alone, near, operations, stages_of
from ampere.profiling.running import make_profile
from ampere.profiling.sources import SpaceSource
from ampere.profiling.strategies.strategy import Goal
from ampere.runtimes.torch_network import build_chain

FAMILIES = ("lenet5", "cnn5", "har", "lstm", "transformer", "resnet")


@pytest.fixture(scope="module", params=FAMILIES)
def network(request):
    return SpaceSource(find_space(request.param)).original().network


def test_every_operation_of_the_families_trains_alone(network):
    rng = Random(0)
    isolated = {o for layer in network.distinct for o in operations(layer) if can_stand_alone(o)}
    for operation in (*isolated, *(near(o, rng) for o in isolated)):
        chain = build_chain(alone(operation, "forward", "kernel").network, torch.float32)
        loss = chain.loss()
        assert loss.requires_grad == ("backward" in stages_of(operation))
        assert bool(chain.trained) == ("update" in stages_of(operation))


def test_an_operation_alone_is_planned_as_in_its_layer(network):
    """The same action on the same shape: a pool that were measured as something else would be a lie."""
    for layer in network.distinct:
        in_layer = [
            (n.trailing.action, n.reads[0].shape, n.shape) for n in wire(Network((layer, layer), 1)).nodes if n.trailing
        ]
        isolated = [wire(Network((o,), 1)).nodes[-1] for o in operations(layer) if can_stand_alone(o) and o.trailing]
        for node in isolated:
            assert (node.trailing.action, node.reads[0].shape, node.shape) in in_layer


def test_operations_of_a_layer():
    layer = conv(4, 8)
    convolution, relu = operations(layer)
    assert (convolution.kind, convolution.trailing) == ("conv", ())
    assert operation_kind(relu) == "tail.elementwise"
    assert stages_of(convolution) == ("forward", "backward", "update")
    assert stages_of(relu) == ("forward", "backward")


def test_stages_that_have_nothing_to_do_are_left_out():
    frozen = Layer("linear", {"lead": (3,), "bias": True}, 8, 4, trainable=False, input_grad=False)
    assert stages_of(frozen) == ("forward",)
    through = Layer("linear", {"lead": (3,), "bias": True}, 8, 4, trainable=False)
    assert stages_of(through) == ("forward", "backward")
    assert stages_of(Layer("nonparametric", {"batch": 3}, 1, 1, (TrailingOp("copy", 9, 9, False),))) == ("forward",)


def test_the_end_of_a_loss_cannot_stand_alone():
    output = Layer(
        "linear", {"lead": (3,), "bias": True}, 8, 4, (TrailingOp("reduce", 12, 12), TrailingOp("reduce", 15, 2))
    )
    assert [can_stand_alone(o) for o in operations(output)] == [True, True, False]


def test_neighbours_differ_in_their_channels_only():
    rng = Random(1)
    for layer in (conv(40, 60), linear(50, 70), *operations(conv(40, 60))):
        others = [near(layer, rng) for _ in range(20)]
        assert len({o.identity for o in others}) > 10
        for other in others:
            assert other.kind == layer.kind
            assert 0.35 * layer.channels_out <= other.channels_out <= 1.25 * layer.channels_out
            if layer.kind == "nonparametric":
                shape = (other.config["batch"], *other.config["size"])
                assert other.trailing[0].values_in == pytest.approx(product(shape))


def test_a_run_goes_on_until_it_has_its_samples_and_another_one_adds_to_them(tmp_path):
    """However few seconds it was given: what learns from isolated layers needs many of them."""
    with Device("simulated:server") as device:
        for samples in (40, 60):
            made = make_profile(
                lambda: SpaceSource(find_space("lenet5")),
                device.setup(),
                Goal(1.0, samples=samples),
                device,
                path=tmp_path / "stages.json",
                method="stages",
            )
            assert len(made.profile.observations) == samples
    assert made.profile.profiling_seconds > 10 * 2


def test_stored_samples_are_used_where_they_are_enough(tmp_path, monkeypatch):
    from ampere import api

    monkeypatch.setenv("AMPERE_HOME", str(tmp_path))
    options = api.Options(method="stages", seconds=1.0)
    with Device("simulated:server") as device:
        subject = api.resolve("lenet5")
        few, more, same = (
            baseline_profiles(device, subject, options, ["neuralpower"], samples)[0] for samples in (30, 50, 45)
        )
    assert [len(p.observations) for p in (few, more, same)] == [30, 50, 50]
