"""Modules of flax that are one layer, though their jaxpr has many equations: norms, attention, recurrent ones."""

from __future__ import annotations

from math import prod
from typing import Any

from flax import nnx

from .drafts import Draft
from .equations import Equation

NORMS = (nnx.BatchNorm, nnx.LayerNorm, nnx.RMSNorm, nnx.GroupNorm)
CELLS = ((nnx.LSTMCell, "lstm"), (nnx.OptimizedLSTMCell, "lstm"), (nnx.GRUCell, "gru"), (nnx.SimpleCell, "rnn"))


def norm_draft(module: Any, shapes: tuple[Any, ...], first: Equation) -> Draft | None:
    """Of the norm that this is the first equation of."""
    if not isinstance(module, NORMS) or not shapes or not shapes[0]:
        return None
    shape = shapes[0]
    channels, places = shape[-1], shape[1:-1]
    bias = getattr(module, "bias", None) is not None
    grad = any(value.grad and value.owners is None for value in first.inputs)
    if isinstance(module, nnx.BatchNorm):
        config = {"batch": shape[0], "size": places, "bias": bias}
        return Draft("norm_batch", config, channels, channels, grad)
    if isinstance(module, nnx.GroupNorm):
        config = {"lead": (shape[0], prod(places)), "groups": module.num_groups, "bias": bias}
        return Draft("norm_layer", config, channels, channels, grad)
    return Draft("norm_layer", {"lead": shape[:-1], "bias": bias}, channels, channels, grad)


def attention_draft(module: Any, products: list[Equation]) -> Draft | None:
    """Of the two products between activations that attention has: queries with keys, weights with values."""
    if not isinstance(module, nnx.MultiHeadAttention) or len(products) != 2:
        return None
    scores, mixed = (_sizes(product) for product in products)
    pairs, heads = scores[0], int(module.num_heads)
    config: dict[str, Any] = {"batch": pairs // heads, "heads": heads, "queries": scores[1], "keys": scores[3]}
    if getattr(module, "dropout_rate", 0) > 0:
        config["dropout"] = True
    head_values = mixed[1] * mixed[3] // scores[1] if scores[1] in (mixed[1], mixed[3]) else mixed[3]
    return Draft("attention", config, scores[2], head_values, any(value.grad for value in products[0].inputs))


def recurrent_draft(module: Any, shapes: tuple[Any, ...], loop: Equation) -> Draft | None:
    """Of a cell that a loop carries along a sequence; its own initial state has no gradient."""
    cell: Any = module.cell if isinstance(module, nnx.RNN) else None
    kind = next((kind for known, kind in CELLS if isinstance(cell, known)), None)
    if kind is None or not shapes or len(shapes[0] or ()) != 3:
        return None
    batch, length, channels = shapes[0] if not module.time_major else (shapes[0][1], shapes[0][0], shapes[0][2])
    config = {"batch": batch, "length": length, "layers": 1, "directions": 1, "bias": True}
    grad = any(value.grad and value.owners is None for value in loop.inputs)
    return Draft(kind, config, channels, int(cell.hidden_features), grad)


def _sizes(product: Equation) -> tuple[int, int, int, int]:
    """Batch, rows, inner, last."""
    left, right = product.inputs
    (inner_left, _), (batch_left, _) = product.parameters["dimension_numbers"]
    batch, inner = prod(left.shape[i] for i in batch_left), prod(left.shape[i] for i in inner_left)
    return batch, left.size // (batch * inner), inner, right.size // (batch * inner)
