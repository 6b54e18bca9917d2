"""Layers as the paper's experiments describe them, and small networks of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from random import Random

import numpy as np

from ampere.core import Layer, Network, TrailingOp, work
from ampere.core.kinds.convolution import usual_config
from ampere.estimation.normalization import NormalizedCost
from ampere.estimation.sequential import PAPERS_KERNEL, ChannelGP
from ampere.profiling.strategies.sequential import POINTS_AT_MOST, TARGET_DEVIATION

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


Channels = tuple[int, ...]


def corners(points: Iterable[Channels]) -> list[Channels]:
    """The bounds of a grid: where profiling starts."""
    return list(product(*({min(axis): None, max(axis): None} for axis in zip(*points, strict=True))))


def guided(
    truth: Mapping[Channels, float],
    kernel: str = PAPERS_KERNEL,
    at_random: Random | None = None,
    at_most: int | None = None,
    target: float = TARGET_DEVIATION,
) -> tuple[ChannelGP, list[Channels]]:
    """The paper's profiling, replayed on points that were all measured: the process, and what it asked for.

    It starts at the bounds, goes where it is most uncertain (or anywhere), and ends by the paper's rules.
    """
    known = corners(truth)
    most = POINTS_AT_MOST[len(known[0]) == 1] if at_most is None else at_most
    while True:
        process = ChannelGP(np.array(known, dtype=float), np.array([truth[c] for c in known]), kernel)
        left = [c for c in truth if c not in known]
        if not left or len(known) >= most:
            return process, known
        deviations = process.deviations(np.array(left, dtype=float))
        if deviations.max() < target * process.typical:
            return process, known
        known.append(at_random.choice(left) if at_random else left[int(np.argmax(deviations))])
