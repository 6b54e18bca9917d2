"""What people should know of a trace: what no table knew, what is not trained, what its kind would do otherwise."""

from __future__ import annotations

from collections import defaultdict

from ampere.network import Layer

from .classes import PRODUCT, UNKNOWN
from .equations import Equation

WITH_WEIGHTS = ("conv", "conv_grouped", "conv_transposed", "linear")
FACTORS = {"matmul": 1, "attention": 2}  # products of activations in forward


def notes_of(
    layers: list[Layer], forward: list[Equation], backward: dict[str, list[Equation]], idle: list[str]
) -> tuple[str, ...]:
    strangers = [
        f"{e.name} in {e.path or 'the model itself'} is of no known class" for e in forward if e.op_class == UNKNOWN
    ]
    several = f" and {len(idle) - 1} more" if len(idle) > 1 else ""
    untrained = [f"no equation reads {idle[0]}{several}: not counted as trained"] if idle else []
    return tuple(dict.fromkeys((*strangers, *untrained, *_odd(layers, backward))))


def _odd(layers: list[Layer], backward: dict[str, list[Equation]]) -> list[str]:
    found = {path: sum(e.op_class == PRODUCT for e in equations) for path, equations in backward.items()}
    return [
        f"backward of {path} has {found.get(path, 0)} products, and not the {told} of its kind"
        for path, told in _products(layers).items()
        if found.get(path, 0) != told
    ]


def _products(layers: list[Layer]) -> dict[str, int]:
    """How many the backward pass of each path has, by the table of kinds."""
    expected: dict[str, int] = defaultdict(int)
    for layer in layers:
        if layer.kind in WITH_WEIGHTS:
            expected[layer.name] += int(layer.trainable) + int(layer.input_grad)
        elif layer.kind in FACTORS:
            expected[layer.name] += FACTORS[layer.kind] * layer.config.get("gradients", 2) * int(layer.input_grad)
    return expected
