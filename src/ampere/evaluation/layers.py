"""Layers as the paper's experiments describe them, and small networks of them."""

from __future__ import annotations

from collections.abc import Sequence

from ampere.core import Layer, Network, TrailingOp, work
from ampere.core.kinds.convolution import usual_config
from ampere.estimation.normalization import NormalizedCost

from .plan import title_of


def conv(channels_in: int, channels_out: int, size: int, batch: int) -> Layer:
    """3x3 with padding, and the ReLU that follows it."""
    values = float(batch * channels_out * size * size)
    return Layer(
        "conv", usual_config(batch, size), channels_in, channels_out, (TrailingOp("elementwise", values, values),)
    )


def linear(features_in: int, features_out: int, batch: int) -> Layer:
    return Layer("linear", {"lead": (batch,), "bias": True}, features_in, features_out)


def flops_of(layers: Sequence[Layer] | Network) -> float:
    return float(sum(work(layer).flops for layer in (layers.layers if isinstance(layers, Network) else layers)))


def measured(device: str, cost: NormalizedCost) -> dict[str, object]:
    """What a record says of what one network costs, per iteration."""
    return {
        "device": device,
        "device_title": title_of(device),
        "meter": cost.meter.name,
        "meter_measures": cost.meter.measured,
        "joules": cost.joules,
        "seconds": cost.seconds,
        "spread": cost.spread,
        "flags": list(cost.flags),
    }
