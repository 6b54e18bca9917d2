"""What no table knows: measured as it is, or named."""

import torch
from torch import nn

from ampere.core import work
from ampere.tracing.inputs import parse_input
from ampere.tracing.trace import trace

from .zoo import ZOO
from .zoo_edges import Line, linear


def doubly_transformed(x: torch.Tensor) -> torch.Tensor:
    """No worker replays double precision alone."""
    return torch.fft.fft(x.double()).real.float()


def test_module_with_an_unknown_operation_is_one_layer() -> None:
    network = trace(*ZOO["fourier"]())
    layer = next(layer for layer in network.layers if layer.kind == "opaque")
    assert (layer.config["path"], layer.config["class"], layer.config["batch"]) == ("1.1", "Mixing", 3)
    assert (layer.config["shape_in"], layer.config["shape_out"]) == ((3, 5, 8), (3, 5, 8))
    assert work(layer).flops == 3 * 2 * 15 * 8 * 8
    assert work(layer).parameters == 72
    assert layer.trainable
    assert layer.input_grad


def test_its_inputs_can_be_made_again() -> None:
    network = trace(*ZOO["fourier"]())
    layer = next(layer for layer in network.layers if layer.kind == "opaque")
    assert [spec.shape for spec in parse_input(",".join(layer.config["inputs"]))] == [(3, 5, 8)]


def test_it_is_named() -> None:
    (note,) = trace(*ZOO["fourier"]()).notes
    assert note == "_fft_r2c in 1.1 is of no known kind: it cannot be replayed alone, and is uncertain"


def test_unknown_operation_in_the_model_itself_is_trailing_and_named() -> None:
    network = trace(*linear(lambda m, x: torch.fft.fft(m.linear(x).double()).real))
    assert [layer.kind for layer in network.layers] == ["linear"]
    assert "other" in [op.op for op in network.layers[0].trailing]
    assert [note.partition(":")[0] for note in network.notes] == ["_fft_r2c in the model itself is of no known kind"]


def test_smallest_module_is_taken() -> None:
    inner = Line(lambda m, x: doubly_transformed(x))
    model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), inner), nn.Linear(4, 2))
    assert [layer.name for layer in trace(model, torch.empty(3, 4)).layers] == ["0", "1.0", "1.1", "2"]


def test_module_around_an_opaque_one_takes_it_in_if_it_is_strange_itself() -> None:
    inner = Line(lambda m, x: doubly_transformed(x))
    outer = linear(lambda m, x: doubly_transformed(m.inner(m.linear(x))), inner=inner)[0]
    model = nn.Sequential(nn.Linear(4, 4), outer, nn.Linear(4, 2))
    network = trace(model, torch.empty(3, 4))
    assert [(layer.name, layer.kind) for layer in network.layers][1] == ("1", "opaque")
    assert len(network.layers) == 3


def test_bookkeeping_on_whole_numbers_makes_no_module_opaque() -> None:
    embed = Line(lambda m, tokens: m.table(tokens.cumsum(1)), table=nn.Embedding(20, 4))
    network = trace(nn.Sequential(embed, nn.Linear(4, 2)), torch.zeros(2, 5, dtype=torch.long))
    assert [layer.kind for layer in network.layers] == ["nonparametric", "embedding", "linear"]
    assert [op.op for op in network.layers[0].trailing] == ["other"]


def test_frozen_opaque_module_before_the_first_trained_layer_costs_no_backward() -> None:
    model = nn.Sequential(linear(lambda m, x: doubly_transformed(m.linear(x)))[0], nn.Linear(4, 2))
    model[0].requires_grad_(False)
    wide = trace(model, torch.empty(10_000, 4)).layers[0]
    assert (wide.kind, wide.backward, work(wide).parameters) == ("opaque", False, 0)
    assert work(wide).flops == 2 * 10_000 * 16
