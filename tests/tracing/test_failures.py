"""One clear line: what, where, and what to do."""

from typing import Any

import pytest
import torch
from torch import nn

from ampere.core.errors import ModelError
from ampere.tracing.trace import trace

from .zoo import ZOO
from .zoo_edges import Line, linear


def message(model: nn.Module, inputs: Any, **options: Any) -> str:
    with pytest.raises(ModelError) as raised:
        trace(model, inputs, **options)
    text = str(raised.value)
    assert "\n" not in text
    return text


def test_wrong_shape() -> None:
    text = message(ZOO["lenet5"]()[0], torch.empty(4, 1, 20, 20))
    assert "2.0 (Linear)" in text
    assert "4x144 and 400x120" in text
    assert "it was given 4x144" in text
    assert "--input" in text


def test_wrong_channels() -> None:
    text = message(ZOO["resnet18"]()[0], torch.empty(2, 1, 64, 64))
    assert "0 (Conv2d)" in text
    assert "to have 3 channels, but got 1 channels" in text
    assert "--input" in text


def test_batch_of_one_where_statistics_need_more() -> None:
    said = message(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)), torch.randn(1, 4))
    assert said.endswith("it was given 1x8; train with batches of 2 or more, as in --batch 2")


def test_missing_input() -> None:
    text = message(ZOO["two_inputs"]()[0], torch.empty(3, 3, 8, 8))
    assert "missing 1 required positional argument: 'text'" in text
    assert "--input" in text


def test_float_tokens() -> None:
    assert "embedding (Embedding)" in message(ZOO["gru_text"]()[0], torch.empty(3, 7))


def test_nothing_to_train() -> None:
    model = nn.Linear(3, 2).requires_grad_(False)
    assert message(model, torch.empty(1, 3)).startswith("cannot train Linear: no parameter requires a gradient")


def test_no_parameters() -> None:
    assert (
        message(nn.ReLU(), torch.empty(1, 3)) == "cannot train ReLU: it has no parameters; give a model that has some"
    )


def test_a_scripted_model() -> None:
    assert "give the model that torch.jit was given" in message(torch.jit.script(nn.Linear(3, 2)), torch.empty(1, 3))


def test_output_that_depends_on_no_parameter() -> None:
    text = message(*linear(lambda m, x: m.linear(x).detach()))
    assert text.startswith("cannot train Line: no tensor in its output")


def test_a_models_own_error_is_reported_with_its_place() -> None:
    def line(model: Line, x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("the moon is full\nand more")

    text = message(nn.Sequential(nn.Linear(4, 4), Line(line)), torch.empty(2, 4))
    assert text.startswith("1 (Line) cannot be run: the moon is full;")


def test_loss_of_several_numbers() -> None:
    assert "the loss is 8 numbers" in message(nn.Linear(3, 2), torch.empty(4, 3), loss=lambda out: out)


def test_loss_that_is_no_tensor() -> None:
    assert "the loss depends on no" in message(nn.Linear(3, 2), torch.empty(4, 3), loss=lambda out: 3.0)


def test_users_own_loss() -> None:
    network = trace(nn.Linear(3, 2), torch.empty(4, 3), loss=lambda out: out.abs().sum())
    assert [op.op for op in network.layers[0].trailing] == ["elementwise", "reduce"]


def test_values_that_python_looks_at_take_a_real_step() -> None:
    network = trace(*ZOO["deciding"]())
    assert [layer.name for layer in network.layers] == ["a", "b", "head"]
    assert "traced with one real step on the CPU" in network.notes[-1]


def test_real_step_of_a_model_on_meta() -> None:
    model, inputs = ZOO["deciding"]()
    assert len(trace(model.to("meta"), inputs.to("meta")).layers) == 3
