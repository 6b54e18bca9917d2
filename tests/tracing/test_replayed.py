"""Operations that no kind knows are described by name and operands, and a worker replays them alone."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ampere.core import Layer, Network, work
from ampere.core.errors import WorkerError
from ampere.core.kinds.operations import _example
from ampere.runtimes.torch_layers import build_layer
from ampere.runtimes.torch_network import build_chain
from ampere.storage.checks import check_layer
from ampere.tracing.trace import trace

from .zoo_edges import Line, parameter

KNOTS = torch.linspace(-1, 1, 9)
INDICES = torch.randint(6, (24,))
SPARSE = torch.eye(6).to_sparse()

OPERATIONS: dict[str, tuple[list[str], Callable[[Any, Tensor], Tensor]]] = {
    "spectral": (["_fft_r2c", "mm", "_fft_c2r"], lambda m, x: torch.fft.irfft(torch.fft.rfft(x) @ m.mix, n=8)),
    "transform": (["_fft_r2c"], lambda m, x: torch.fft.fft(x).real),
    "distances": (["_cdist_forward"], lambda m, x: torch.cdist(x, x, p=1.0)),
    "to_parameters": (["_cdist_forward"], lambda m, x: torch.cdist(x, m.table)),
    "solution": (["_linalg_solve_ex"], lambda m, x: torch.linalg.solve(torch.eye(6) + 0.1 * x @ x.T, x)),
    "determinant": (["_linalg_slogdet"], lambda m, x: torch.linalg.slogdet(torch.eye(6) + x @ x.T)[1] * x),
    "grid": (["grid_sampler_2d"], lambda m, x: F.grid_sample(x[None, None], x.reshape(1, 6, 4, 2), align_corners=True)),
    "bicubic": (["upsample_bicubic2d"], lambda m, x: F.interpolate(x[None, None], scale_factor=2.0, mode="bicubic")),
    "median": (["median"], lambda m, x: x - x.median(1, keepdim=True).values),
    "running": (["logcumsumexp"], lambda m, x: x.logcumsumexp(1)),
    "largest": (
        ["scatter_reduce"],
        lambda m, x: x.new_zeros(3, 8).scatter_reduce(0, (INDICES[:6, None] % 3).expand(6, 8), x, "amax"),
    ),
    "rows_of_a_parameter": (["index"], lambda m, x: m.table[INDICES].sum() * x),
    "sparse": (["_sparse_addmm"], lambda m, x: torch.sparse.mm(SPARSE, x)),
    "sparse_product": (["mm"], lambda m, x: SPARSE @ x),
}


def traced(operation: Callable[[Any, Tensor], Tensor]) -> Network:
    parts = {"first": nn.Linear(5, 8), "table": parameter(4, 8), "mix": nn.Parameter(torch.ones(5, 5) + 0j)}
    network = trace(Line(lambda m, x: operation(m, m.first(x)), **parts), torch.randn(6, 5))
    return Network.from_json(json.loads(json.dumps(network.to_json())))


def unknown(network: Network) -> list[Layer]:
    return [layer for layer in network.layers if layer.kind == "operation"]


@pytest.mark.parametrize("name", OPERATIONS)
def test_it_is_named_and_runs_again_with_its_gradients(name: str) -> None:
    names, operation = OPERATIONS[name]
    network = traced(operation)
    layers = unknown(network)
    assert [layer.config["op"].partition(".")[0] for layer in layers] == names
    assert [layer.kind for layer in network.layers if layer.kind == "opaque"] == []
    for layer in layers:
        check_layer(layer)
        assert any(layer.config["op"].startswith(note.split()[0]) for note in network.notes)
        chain = build_chain(Network((replace(layer, trailing=()),), 6), torch.float32)
        assert tuple(chain.forward()[0].shape) == layer.config["size"]
        chain.loss().backward()
        gradients = [t.grad for t in [*chain.fresh.values(), *chain.parameters()] if t.requires_grad]
        assert bool(gradients) == layer.backward
        assert all(g is not None and g.isfinite().all() for g in gradients)
    build_chain(network, torch.float32).loss().backward()


def test_it_counts_its_own_parameters_and_its_backward() -> None:
    (layer,) = unknown(traced(OPERATIONS["to_parameters"][1]))
    assert layer.trainable
    assert layer.input_grad
    assert work(layer).parameters == 4 * 8
    assert work(layer).launches > 1


def test_longer_transforms_visit_their_values_more_often() -> None:
    def values(length: int) -> float:
        line = Line(lambda m, x: torch.fft.fft(m.first(x)).real, first=nn.Linear(5, length))
        (layer,) = unknown(trace(line, torch.empty(6, 5)))
        return float(work(layer).values) / length

    assert values(1024) > 1.5 * values(32)


def test_whole_numbers_are_indices_of_what_they_are_taken_from() -> None:
    (layer,) = unknown(traced(OPERATIONS["rows_of_a_parameter"][1]))
    assert '"below": 4' in layer.config["arguments"][1]


def test_a_sparse_matrix_costs_its_entries() -> None:
    (sparse,) = unknown(traced(OPERATIONS["sparse_product"][1]))
    assert json.loads(sparse.config["arguments"][0]) == {"tensor": [6, 6], "entries": 6}
    assert work(sparse).flops == 2 * 2 * 6 * 8


def test_results_that_are_no_activations_are_computed_too() -> None:
    network = traced(lambda m, x: x + torch.bucketize(x.detach().repeat(2000, 1), KNOTS)[:6] * 0)
    (layer,) = unknown(network)
    assert (layer.config["op"], layer.backward) == ("bucketize.Tensor", False)
    build_chain(network, torch.float32).loss().backward()


@pytest.mark.parametrize(
    ("op", "arguments", "why"),
    [
        ("no_such_thing.default", [{"tensor": [2]}], "has no operation no_such_thing.default"),
        ("from_file.default", ["/etc/passwd"], "no operation that can be replayed alone"),
        ("relu_.default", [{"tensor": [2]}], "no operation that can be replayed alone"),
        ("_unsafe_index.Tensor", [{"tensor": [2]}], "no operation that can be replayed alone"),
        ("__class__.mro", [{"tensor": [2]}], "no operation that can be replayed alone"),
    ],
)
def test_what_is_no_operation_on_tensors_is_refused_in_one_line(op: str, arguments: list[Any], why: str) -> None:
    with pytest.raises(WorkerError, match=why):
        build_layer(_example(op, (2,), *arguments))


@pytest.mark.parametrize("damaged", ["{", '{"tensor": 3}', '{"tensor": [-1]}', '{"tensor": ["x"]}'])
def test_damaged_arguments_are_refused_when_a_file_is_read(damaged: str) -> None:
    layer = _example("relu.default", (2,))
    with pytest.raises(ValueError, match="kind operation"):
        check_layer(Layer("operation", {**layer.config, "arguments": (damaged,)}, 1, 1))
