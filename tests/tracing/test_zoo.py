"""What holds for every model: FLOPs, parameters, the record's round trip, and that the user's model stays as it is."""

import json
from typing import Any

import pytest
import torch
from torch import nn

from ampere.core import Network, work
from ampere.tracing.trace import trace

from .counting import counted_flops
from .zoo import ZOO

COUNTED_ON_CPU = {"deciding", "hf_bert_masked", "tensors_on_the_side"}
STRANGE = {
    "fourier": ["1.1"],
    "function_in_root": ["mm"],
    "function_in_module": ["1"],
    "attention_to_constants": ["attention"],
}


@pytest.fixture(scope="module", params=list(ZOO))
def traced(request: Any) -> tuple[str, nn.Module, Any, Network]:
    torch.manual_seed(1)
    model, inputs = ZOO[request.param]()
    return request.param, model, inputs, trace(model, inputs, name=request.param)


def test_flops_are_those_torch_counts(traced: tuple[str, nn.Module, Any, Network]) -> None:
    name, model, inputs, network = traced
    counted = counted_flops(model, inputs, "cpu" if name in COUNTED_ON_CPU else "meta")
    assert sum(work(layer).flops for layer in network.layers) == pytest.approx(counted, rel=1e-3)


def test_every_trained_parameter_counts_once(traced: tuple[str, nn.Module, Any, Network]) -> None:
    _, model, _, network = traced
    trained = [p for p in model.parameters() if p.requires_grad]
    works = [work(layer) for layer in network.layers]
    assert sum(w.parameters for w in works) == sum(p.numel() for p in trained)
    assert sum(w.parameter_tensors for w in works) == len(trained)


def test_round_trip_through_json(traced: tuple[str, nn.Module, Any, Network]) -> None:
    network = traced[3]
    again = Network.from_json(json.loads(json.dumps(network.to_json())))
    assert again == network
    assert again.notes == network.notes


def test_same_network_each_time(traced: tuple[str, nn.Module, Any, Network]) -> None:
    name, model, inputs, network = traced
    assert trace(model, inputs, name=name) == network


def test_only_strange_models_are_opaque(traced: tuple[str, nn.Module, Any, Network]) -> None:
    name, _, _, network = traced
    opaque = [layer.name for layer in network.layers if layer.kind == "opaque"]
    assert opaque == STRANGE.get(name, [])
