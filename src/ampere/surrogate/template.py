"""A network whose widths are still open: every layer's channels as a linear function of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ampere.network import Layer, Network

from .features import Array


@dataclass(frozen=True)
class Channels:
    """channels = constant + coefficient * widths[variable]"""

    variable: int | None
    coefficient: int
    constant: int

    def at(self, widths: Array) -> Array:
        if self.variable is None:
            return np.full(widths.shape[:-1], self.constant)
        return self.constant + self.coefficient * widths[..., self.variable]


@dataclass(frozen=True)
class Template:
    layers: tuple[Layer, ...]
    channels_in: tuple[Channels, ...]
    channels_out: tuple[Channels, ...]
    largest: tuple[int, ...]  # of each width
    batch: int

    def network(self, widths: Sequence[int]) -> Network:
        open_widths = np.asarray(widths)
        layers = [
            layer.with_channels(int(cin.at(open_widths)), int(cout.at(open_widths)))
            for layer, cin, cout in zip(self.layers, self.channels_in, self.channels_out, strict=True)
        ]
        return Network(tuple(layers), self.batch)


def template(largest: Sequence[int], trace: Callable[[list[int]], Network]) -> Template:
    """Learnt by tracing the network at its largest widths and with each of them halved."""
    base = trace(list(largest))
    responses = []
    for variable, width in enumerate(largest):
        changed = list(largest)
        changed[variable] = max(1, width // 2)
        responses.append((changed[variable], trace(changed)))
    ins = [_channels(base, responses, largest, i, "channels_in") for i in range(len(base.layers))]
    outs = [_channels(base, responses, largest, i, "channels_out") for i in range(len(base.layers))]
    return Template(base.layers, tuple(ins), tuple(outs), tuple(largest), base.batch)


def _channels(
    base: Network, responses: list[tuple[int, Network]], largest: Sequence[int], index: int, side: str
) -> Channels:
    at_largest = getattr(base.layers[index], side)
    for variable, (width, network) in enumerate(responses):
        change = at_largest - getattr(network.layers[index], side)
        if change:
            coefficient = change // (largest[variable] - width)
            return Channels(variable, coefficient, at_largest - coefficient * largest[variable])
    return Channels(None, 0, at_largest)
