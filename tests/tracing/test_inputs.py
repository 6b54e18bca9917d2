"""Inputs as text, as specs and as tensors."""

import json
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ampere.core.errors import UsageError
from ampere.core.network import InputSpec
from ampere.runtimes.torch_model import specs_of, tensors_of
from ampere.tracing.inputs import parse_input, parse_shapes
from ampere.tracing.trace import trace

from .zoo import ZOO

SPECS = st.builds(
    InputSpec,
    st.lists(st.integers(1, 9), min_size=1, max_size=5).map(tuple),
    st.sampled_from(["float32", "int64", "bool", "bfloat16"]),
)


def test_shapes() -> None:
    assert parse_input("10x1x28x28") == [InputSpec((10, 1, 28, 28))]
    assert parse_input("8x32:int64<1000") == [InputSpec((8, 32), "int64", 1000)]
    assert parse_input("8x32<1000") == [InputSpec((8, 32), "int64", 1000)]
    assert parse_input("2x3, 2:bool") == [InputSpec((2, 3)), InputSpec((2,), "bool")]


@given(st.lists(SPECS, min_size=1, max_size=3))
def test_what_is_written_is_read(specs: list[InputSpec]) -> None:
    assert parse_input(",".join(map(str, specs))) == specs


@given(SPECS)
def test_round_trip_through_json(spec: InputSpec) -> None:
    assert InputSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0x3",
        "10x0",
        "axb",
        "10 x 3",
        "3x",
        "-1x3",
        "2x3:float99",
        "2x3<5:int64",
        "2:float32<9",
        "2:int64<0",
        "1,,2",
    ],
)
def test_nonsense_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_input(text)
    assert "\n" not in str(raised.value)


def test_shapes_have_shares_that_add_up() -> None:
    assert parse_shapes("8x32") == [(1.0, "8x32")]
    assert parse_shapes("3*8x32:int64<9 | 8x64:int64<9") == [(0.75, "8x32:int64<9"), (0.25, "8x64:int64<9")]


@pytest.mark.parametrize("text", ["0*8x32 | 8x64", "-1*8x32 | 8x64", "much*8x32 | 8x64", "nan*8x32 | 8x64"])
def test_a_weight_that_is_none_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match="has no weight above 0: write") as raised:
        parse_shapes(text)
    assert "\n" not in str(raised.value)


@given(SPECS)
def test_tensors_are_like_their_specs(spec: InputSpec) -> None:
    for device in ("cpu", "meta"):
        tensor = tensors_of([spec], device)[0]
        assert (tuple(tensor.shape), str(tensor.dtype), tensor.device.type) == (
            spec.shape,
            f"torch.{spec.dtype}",
            device,
        )


def test_tokens_stay_below_their_limit() -> None:
    tokens = tensors_of(InputSpec((50,), "int64", 7))
    assert 0 <= int(tokens.min()) <= int(tokens.max()) < 7


@pytest.mark.parametrize("name", ["cnn5", "two_inputs", "hf_gpt2"])
def test_specs_of_examples_make_the_same_network(name: str) -> None:
    model, inputs = ZOO[name]()
    specs: Any = specs_of(inputs)
    assert trace(model, specs) == trace(model, inputs)
    assert not isinstance(inputs, dict) or list(specs) == list(inputs)


def test_specs_of_tokens_know_their_limit() -> None:
    assert specs_of(torch.tensor([[1, 8]])) == [InputSpec((1, 2), "int64", 9)]


class Views(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, batch: dict[str, Any]) -> torch.Tensor:
        for view in batch["views"]:
            self.seen.add_(view.mean(0))
        return self.last(sum(self.first(view) for view in batch["views"]) + batch["more"]["bias"])


def test_tensors_deep_in_lists_and_dictionaries_need_no_real_step() -> None:
    batch = {"views": [torch.ones(3, 4), torch.ones(3, 4)], "more": {"bias": torch.ones(3, 8), "name": "a"}}
    network = trace(Views(), (batch,))
    assert network.notes == ()
    assert [layer.kind for layer in network.layers] == ["nonparametric", "linear", "linear", "linear"]
    assert network.batch == 3
