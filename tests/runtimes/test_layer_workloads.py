"""Every kind of layer is really built and trained, with every optimiser and type."""

import pytest

from ampere.core import KINDS, Layer, work
from ampere.core.setup import OPTIMIZERS

BUILDABLE = sorted(set(KINDS) - {"opaque"})


@pytest.mark.parametrize("kind", BUILDABLE)
def test_each_kind_trains_with_as_many_parameters_as_its_table_says(worker, examples, layers_subject, kind):
    for layer in examples[kind]:
        result = worker.block(layers_subject(layer))["result"]
        assert result["parameters"] == work(layer).parameters
        assert result["loss"][0] is not None


@pytest.mark.parametrize("kind", BUILDABLE)
def test_each_kind_trains_in_bfloat16(worker, examples, layers_subject, kind):
    answer = worker.block(layers_subject(examples[kind][0]), setup={"dtype": "bfloat16"})
    assert "result" in answer, answer


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_each_optimizer_trains_all_kinds_in_one_network(worker, examples, layers_subject, optimizer):
    layers = [layer for kind in BUILDABLE for layer in examples[kind]]
    result = worker.block(layers_subject(*layers), setup={"optimizer": optimizer})["result"]
    assert result["parameters"] == sum(work(layer).parameters for layer in layers)


def test_frozen_layers_have_no_parameters_to_train(worker, layers_subject):
    frozen = Layer("linear", {"lead": (3,), "bias": True}, 8, 4, trainable=False, input_grad=False)
    head = Layer("linear", {"lead": (3,), "bias": True}, 4, 2, input_grad=False)
    assert worker.block(layers_subject(frozen))["result"]["parameters"] == 0
    assert worker.block(layers_subject(frozen, head))["result"]["parameters"] == 10


def test_shared_parameters_are_not_trained_twice(worker, layers_subject):
    shared = {"lead": (3,), "bias": True, "parameters": 0, "parameter_tensors": 0}
    layers = (Layer("linear", {"lead": (3,), "bias": True}, 8, 8), Layer("linear", shared, 8, 8))
    assert worker.block(layers_subject(*layers))["result"]["parameters"] == 72


def test_opaque_is_named(worker, layers_subject):
    config = {
        "launches": 1,
        "flops": 1,
        "values": 1,
        "parameters": 1,
        "parameter_tensors": 1,
        "shape_in": (3, 4),
        "shape_out": (3, 4),
    }
    error = worker.block(layers_subject(Layer("opaque", config, 4, 4, name="body.swish")))["error"]
    assert error["type"] == "variant_failed"
    assert "body.swish" in error["message"]


def test_no_layers_fail(worker, layers_subject):
    assert worker.block(layers_subject())["error"]["type"] == "variant_failed"
