"""Operations that begin a layer: what kind it is, at which channels, and which operands decide its backward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from torch import Tensor


@dataclass
class Draft:
    """A layer before it is known whether a gradient reaches it.

    A gradient with respect to any of `weights` makes it trainable; one with respect to any of
    `sources` goes on to what is before it.
    """

    kind: str
    config: dict[str, Any]
    channels_in: int
    channels_out: int
    weights: tuple[Tensor, ...] = ()
    sources: tuple[Tensor, ...] = ()
    trainable: bool = field(default=False, init=False)
    input_grad: bool = field(default=False, init=False)

    def settle(self) -> None:
        """Reads what the operands ask for, and lets go of them."""
        self.trainable = any(w.requires_grad for w in self.weights)
        self.input_grad = any(s.requires_grad for s in self.sources)
        self.weights = self.sources = ()


Owned = Callable[[Any], bool]  # whether a tensor is a parameter, a view of one, or computed from parameters alone


def convolution(args: Sequence[Any], owned: Owned) -> Draft:
    x, weight, bias, stride, padding, dilation, transposed, output_padding, groups = args[:9]
    spatial = x.dim() - 2
    channels_in = int(x.shape[1])
    channels_out = int(weight.shape[1] * groups if transposed else weight.shape[0])
    config: dict[str, Any] = {
        "batch": int(x.shape[0]),
        "size_in": tuple(x.shape[2:]),
        "kernel": tuple(weight.shape[2:]),
        "stride": _each(stride, spatial),
        "padding": _each(padding, spatial),
        "dilation": _each(dilation, spatial),
        "groups": 0 if groups > 1 and groups == channels_in else int(groups),
        "bias": bias is not None,
    }
    if transposed:
        config["output_padding"] = _each(output_padding, spatial)
    kind = "conv_transposed" if transposed else "conv" if groups == 1 else "conv_grouped"
    return Draft(kind, config, channels_in, channels_out, (weight,), (x,))


def _each(values: Sequence[int], dimensions: int) -> tuple[int, ...]:
    return tuple(int(v) for v in values) * (dimensions // len(values))


def matrix_product(a: Tensor, b: Tensor, owned: Owned, bias: bool = False) -> Draft:
    """`a` is (..., rows, inner), `b` is (..., inner, last)."""
    batch, last = prod(a.shape[:-2]), int(b.shape[-1])
    rows, inner = int(a.shape[-2]), int(a.shape[-1])
    if owned(b):
        lead = (batch, rows) if batch > 1 else (rows,)
        return Draft("linear", {"lead": lead, "bias": bias}, inner, last, (b,), (a,))
    if owned(a):
        lead = (batch, last) if batch > 1 else (last,)
        return Draft("linear", {"lead": lead, "bias": bias}, inner, rows, (a,), (b,))
    config: dict[str, Any] = {"batch": batch, "rows": rows}
    if a.requires_grad != b.requires_grad:
        config["gradients"] = 1
    return Draft("matmul", config, inner, last, (), (a, b))


def added_product(args: Sequence[Any], owned: Owned) -> Draft:
    return matrix_product(args[1], args[2], owned, bias=owned(args[0]))


def plain_product(args: Sequence[Any], owned: Owned) -> Draft:
    return matrix_product(args[0], args[1], owned)


def batch_norm(args: Sequence[Any], owned: Owned) -> Draft:
    x, weight, bias = args[:3]
    channels = int(x.shape[1])
    config = {"batch": int(x.shape[0]), "size": tuple(x.shape[2:]), "bias": bias is not None}
    return Draft("norm_batch", config, channels, channels, _present(weight, bias), (x,))


def layer_norm(args: Sequence[Any], owned: Owned) -> Draft:
    x, shape, weight = args[:3]
    bias = args[3] if isinstance(args[3], Tensor) else None
    channels = prod(shape)
    config = {"lead": tuple(x.shape[: x.dim() - len(shape)]), "bias": bias is not None}
    return Draft("norm_layer", config, channels, channels, _present(weight, bias), (x,))


def group_norm(args: Sequence[Any], owned: Owned) -> Draft:
    x, weight, bias, batch, channels, places, groups = args[:7]
    config = {"lead": (int(batch), int(places)), "groups": int(groups), "bias": bias is not None}
    return Draft("norm_layer", config, int(channels), int(channels), _present(weight, bias), (x,))


def embedding(args: Sequence[Any], owned: Owned) -> Draft | None:
    table, tokens = args[:2]
    if not owned(table):
        return None
    return Draft("embedding", {"lead": tuple(tokens.shape)}, int(table.shape[0]), int(table.shape[1]), (table,))


def _present(*tensors: Any) -> tuple[Tensor, ...]:
    return tuple(t for t in tensors if isinstance(t, Tensor))


RECOGNISERS: dict[str, Callable[[Sequence[Any], Owned], Draft | None]] = {
    "convolution": convolution,
    **dict.fromkeys(("mm", "bmm"), plain_product),
    **dict.fromkeys(("addmm", "baddbmm"), added_product),
    **dict.fromkeys(
        ("native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_functional"), batch_norm
    ),
    **dict.fromkeys(("_batch_norm_with_update", "_batch_norm_no_update"), batch_norm),
    "native_layer_norm": layer_norm,
    "_fused_rms_norm": layer_norm,
    "native_group_norm": group_norm,
    "embedding": embedding,
}
