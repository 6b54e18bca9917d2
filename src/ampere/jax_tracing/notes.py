"""What people should know of a trace: what no table knew, what is not trained, what its kind would do otherwise."""

from __future__ import annotations

from collections import defaultdict

from ampere.network import Layer

from .classes import PRODUCT, UNKNOWN
from .equations import Equation

WITH_WEIGHTS = ("conv", "conv_grouped", "conv_transposed", "linear")
FACTORS = {"matmul": 1, "attention": 2}  # products of activations in forward


def notes_of(
    paths: list[str],
    layers: list[Layer],
    forward: list[Equation],
    backward: dict[str, list[Equation]],
    idle: list[str],
) -> tuple[str, ...]:
    strangers = [
        f"{e.name} in {e.path or 'the model itself'} is of no known class" for e in forward if e.op_class == UNKNOWN
    ]
    several = f" and {len(idle) - 1} more" if len(idle) > 1 else ""
    untrained = [f"no equation reads {idle[0]}{several}: not counted as trained"] if idle else []
    return tuple(dict.fromkeys((*strangers, *untrained, *_odd(paths, layers, backward))))


def _odd(paths: list[str], layers: list[Layer], backward: dict[str, list[Equation]]) -> list[str]:
    found = {path: sum(e.op_class == PRODUCT for e in equations) for path, equations in backward.items()}
    return [
        f"backward of {path or 'the model itself'} has {found.get(path, 0)} products, and not the {told} of its kind"
        for path, told in _products(paths, layers).items()
        if found.get(path, 0) != told
    ]


def _products(paths: list[str], layers: list[Layer]) -> dict[str, int]:
    """How many the backward pass of each path has, by the table of kinds; of what is opaque nothing is known."""
    expected: dict[str, int] = defaultdict(int)
    opaque = {path for path, layer in zip(paths, layers, strict=True) if layer.kind == "opaque"}
    for path, layer in zip(paths, layers, strict=True):
        if path in opaque:
            continue
        if layer.kind in WITH_WEIGHTS:
            expected[path] += int(layer.trainable) + int(layer.input_grad)
        elif layer.kind in FACTORS:
            expected[path] += FACTORS[layer.kind] * layer.config.get("gradients", 2) * int(layer.input_grad)
    return expected
