"""Every kind of layer is really built and trained, with every optimiser and type."""

import pytest
import torch

from ampere.core import KINDS, Layer, work
from ampere.core.setup import OPTIMIZERS

BUILDABLE = sorted(set(KINDS) - {"opaque"})


@pytest.mark.parametrize("kind", BUILDABLE)
def test_each_kind_trains_with_as_many_parameters_as_its_table_says(worker, examples, layers_workload, kind):
    for layer in examples[kind]:
        result = worker.block(layers_workload(layer))["result"]
        assert result["parameters"] == work(layer).parameters
        assert result["loss"][0] is not None


@pytest.mark.parametrize("dtype", ["bfloat16", "autocast_bfloat16"])
@pytest.mark.parametrize("kind", BUILDABLE)
def test_each_kind_trains_in_every_precision(worker, examples, layers_workload, kind, dtype):
    answer = worker.block(layers_workload(examples[kind][0]), setup={"dtype": dtype})
    if (kind, dtype) == ("lstm", "autocast_bfloat16") and (refused := _refused_by_pytorch_itself()):
        assert refused[:60] in answer["error"]["message"]
    else:
        assert "result" in answer, answer


def _refused_by_pytorch_itself() -> str:
    """oneDNN has no LSTM in bfloat16 for processors without AVX-512 or AMX."""
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            torch.nn.LSTM(4, 4)(torch.zeros(2, 1, 4))
    except RuntimeError as error:
        return str(error)
    return ""


def test_a_sparse_table_is_updated_where_it_was_read(worker, layers_workload):
    layer = Layer("embedding", {"lead": (3, 5), "sparse": True}, 1000, 6, input_grad=False)
    assert "result" in worker.block(layers_workload(layer))
    assert "sparse" in worker.block(layers_workload(layer), setup={"optimizer": "adam"})["error"]["message"]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_each_optimizer_trains_all_kinds_in_one_network(worker, examples, layers_workload, optimizer):
    layers = [layer for kind in BUILDABLE for layer in examples[kind]]
    result = worker.block(layers_workload(*layers), setup={"optimizer": optimizer})["result"]
    assert result["parameters"] == sum(work(layer).parameters for layer in layers)


def test_frozen_layers_have_no_parameters_to_train(worker, layers_workload):
    frozen = Layer("linear", {"lead": (3,), "bias": True}, 8, 4, trainable=False, input_grad=False)
    head = Layer("linear", {"lead": (3,), "bias": True}, 4, 2, input_grad=False)
    assert worker.block(layers_workload(frozen))["result"]["parameters"] == 0
    assert worker.block(layers_workload(frozen, head))["result"]["parameters"] == 10


def test_shared_parameters_are_not_trained_twice(worker, layers_workload):
    shared = {"lead": (3,), "bias": True, "parameters": 0, "parameter_tensors": 0}
    layers = (Layer("linear", {"lead": (3,), "bias": True}, 8, 8), Layer("linear", shared, 8, 8))
    assert worker.block(layers_workload(*layers))["result"]["parameters"] == 72


def test_opaque_is_named(worker, layers_workload):
    config = {
        "launches": 1,
        "flops": 1,
        "values": 1,
        "parameters": 1,
        "parameter_tensors": 1,
        "shape_in": (3, 4),
        "shape_out": (3, 4),
    }
    error = worker.block(layers_workload(Layer("opaque", config, 4, 4, name="body.swish")))["error"]
    assert error["type"] == "variant_failed"
    assert "body.swish" in error["message"]


def test_no_layers_fail(worker, layers_workload):
    assert worker.block(layers_workload())["error"]["type"] == "variant_failed"
