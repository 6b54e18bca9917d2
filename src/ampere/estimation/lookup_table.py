"""Estimates of a million networks at once: tables of each layer's cost over its open widths.

A template is a network whose widths are still open: every layer's channels are a linear function of them. A layer
depends on at most two widths, so all its possible costs fit a small table. A whole network's deviation from its
layers' sum depends smoothly on its arithmetic and memory: that is a grid, interpolated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from ampere.core import KINDS, Layer, Network
from ampere.core.kinds import group

from .additive import Additive
from .design_matrix import SUMMED, Wholes, layer_sums, own_covariance, scale, summed, whole_covariance
from .features import COLUMNS, STEP, Array, layer_columns
from .gaussian_process import kernel, similarity

Widths = NDArray[np.int64]  # one row a network, one column a width

CHUNK = 4096  # networks or table rows computed at once
GRID = 96  # points along each axis of the interpolated deviation


@dataclass(frozen=True)
class Channels:
    """A layer's channels: constant + coefficient * widths[variable]."""

    variable: int | None
    coefficient: int
    constant: int

    def at(self, widths: Array) -> Array:
        """The channels at these widths."""
        if self.variable is None:
            return np.full(widths.shape[:-1], self.constant)
        return self.constant + self.coefficient * widths[..., self.variable]

    def of(self, widths: Sequence[int]) -> int:
        """The channels of one network."""
        return self.constant + (0 if self.variable is None else self.coefficient * widths[self.variable])


@dataclass(frozen=True)
class Template:
    """A network with open widths."""

    layers: tuple[Layer, ...]
    channels_in: tuple[Channels, ...]
    channels_out: tuple[Channels, ...]
    largest: tuple[int, ...]  # the maximum of each width
    batch: int

    def network(self, widths: Sequence[int]) -> Network:
        """The network with these widths."""
        whole = [int(width) for width in widths]
        layers = []
        for layer, cin, cout in zip(self.layers, self.channels_in, self.channels_out, strict=True):
            channels = cin.of(whole), cout.of(whole)
            same = channels == (layer.channels_in, layer.channels_out)
            layers.append(layer if same else layer.with_channels(*channels))
        return Network(tuple(layers), self.batch)


def template(largest: Sequence[int], trace: Callable[[list[int]], Network]) -> Template:
    """The template of a network, found by tracing it at its largest widths and with each of them halved."""
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


@dataclass(frozen=True)
class _LayerTable:
    """A layer at all its widths, one row for each: sums for the total's mean, vectors for its uncertainty."""

    index: tuple[int | None, int | None]
    stride: int
    sums: Array  # (points, SUMMED)
    whitened: Array  # (points, data)
    price_deviations: Array  # (points, columns): amount of each column times its price's standard deviation
    positions: Array  # (points, coordinates), scaled

    @cached_property
    def physics(self) -> Array:
        return np.asarray(self.sums[:, 3:].sum(axis=1))

    def rows(self, widths: Widths) -> Widths:
        """The table row of each network."""
        first, second = self.index
        place = np.zeros(len(widths), dtype=np.int64)
        if first is not None:
            place += (widths[:, first] - 1) * self.stride
        if second is not None:
            place += widths[:, second] - 1
        return place


class LookupTable:
    """Costs of all networks of a template, by one fitted model."""

    def __init__(self, model: Additive, template: Template, system: bool = False, stddevs: bool = True) -> None:
        """Without `stddevs` the tables hold sums only, which takes a hundredth of the memory."""
        self._model, self._template, self._system, self._stddevs = model, template, system, stddevs
        self._columns = np.zeros(len(COLUMNS), dtype=bool)
        self._tables = [self._table(i) for i in range(len(template.layers))]
        self._grid()

    def _table(self, index: int) -> _LayerTable:
        template = self._template
        layer, cin, cout = template.layers[index], template.channels_in[index], template.channels_out[index]
        variables = [c.variable for c in (cin, cout)]
        if variables[0] == variables[1]:
            variables[1] = None
        sizes = [1 if v is None else template.largest[v] for v in variables]
        a, b = (
            g.ravel().astype(float)
            for g in np.meshgrid(np.arange(1.0, sizes[0] + 1), np.arange(1.0, sizes[1] + 1), indexing="ij")
        )
        first = _on_grid(cin, variables, a, b)
        second = _on_grid(cout, variables, a, b)
        parts = [self._surface(layer, first[i : i + CHUNK], second[i : i + CHUNK]) for i in range(0, len(a), CHUNK)]
        sums, whitened, deviations, positions = (np.concatenate(p) for p in zip(*parts, strict=True))
        return _LayerTable((variables[0], variables[1]), sizes[1], sums, whitened, deviations, positions)

    def _surface(self, layer: Layer, cin: Array, cout: Array) -> tuple[Array, Array, Array, Array]:
        """`Additive._layer_posteriors` for many widths of one layer."""
        model, opened, kind = self._model, layer.with_channels(cin, cout), group(layer)
        rows = np.zeros((len(cin), len(COLUMNS)))
        for column, value in layer_columns(opened, model.hyper.vector_width, kind).items():
            rows[:, column] = value
        coordinates = [
            np.broadcast_to(np.asarray(c, dtype=float), cin.shape)
            for c in KINDS[layer.kind].coordinates(opened, model.hyper.vector_width)
        ]
        positions = scale(kind, np.log2(np.maximum(np.stack(coordinates, axis=1), 1e-9)), model.hyper)
        physics = rows @ model.prices
        relative = np.zeros(len(cin))
        near: Array | None = None
        if kind in model.design.positions:
            near = kernel(positions, scale(kind, model.design.positions[kind], model.hyper), model.hyper.own)
            relative = near @ model.alpha[kind]
        sums = layer_sums(model.layer_means(rows, physics, relative), rows, model.prices)
        if not self._stddevs:
            none = np.zeros((len(cin), 0))
            return sums, none, none, none
        with_data = rows @ (model.design.rows * model.price_stddev**2).T
        if near is not None:
            together = (model.design.weights[kind] @ near.T).T
            with_data += model.hyper.residual_of(kind) ** 2 * physics[:, None] * together
        return sums, model.whiten(with_data.T).T, rows * model.price_stddev, positions

    def _grid(self) -> None:
        """Fills the grid of relative deviations of whole networks, over octaves of arithmetic and of memory.

        What depends on the shares of overheads, arithmetic and memory is a sum of its own.
        """
        model = self._model
        low = np.log2(1e3 + sum(t.sums[:, 1:3].min(axis=0) for t in self._tables))
        high = np.log2(1e3 + sum(t.sums[:, 1:3].max(axis=0) for t in self._tables)) + 1e-9
        axes = [np.linspace(low[i], high[i], GRID) for i in range(2)]
        flops, values = np.meshgrid(*axes, indexing="ij")
        depth = np.log2(1.0 + len(self._tables))
        places = np.stack([flops.ravel(), values.ravel(), np.full(flops.size, depth)], axis=1)
        groups = model.design.wholes.shares.shape[1]
        nodes = Wholes(places, np.zeros((len(places), groups)), np.full(len(places), float(self._system)))
        relative = whole_covariance(nodes, model.design.wholes, model.hyper)
        self._deviation = (relative @ (model.design.physics * model.solved)).reshape(GRID, GRID)
        self._low, self._step = low, (high - low) / (GRID - 1)

    def _sums(self, widths: Widths) -> Array:
        total = np.zeros((len(widths), SUMMED))
        for table in self._tables:
            total += table.sums[table.rows(widths)]
        return total

    def seconds(self, widths: Widths) -> Array:
        """Seconds of a step for each row of widths."""
        return self._seconds(self._sums(widths))

    def _seconds(self, sums: Array) -> Array:
        step = self._model.step
        physics, wholes = self._summed(sums)
        relative = self._interpolate((wholes.places[:, :2] - self._low) / self._step)
        if self._system:
            relative = relative + wholes.shares @ self._model.loop_shift
        return np.asarray(self._model.whole_means(sums[:, 0] + step.mean, physics, relative))

    def _summed(self, sums: Array) -> tuple[Array, Wholes]:
        return summed(sums, len(self._tables), self._model.step.physics, self._system)

    def _interpolate(self, place: Array) -> Array:
        cell = np.clip(place.astype(np.int64), 0, GRID - 2)
        u, v = (place - cell).T
        flat, corner = self._deviation.ravel(), cell[:, 0] * GRID + cell[:, 1]
        low = flat[corner] * (1 - v) + flat[corner + 1] * v
        high = flat[corner + GRID] * (1 - v) + flat[corner + GRID + 1] * v
        return low * (1 - u) + high * u

    def seconds_and_stddevs(self, widths: Widths) -> tuple[Array, Array]:
        """Seconds of a step and their standard deviation for each row of widths."""
        parts = [self._with_stddevs(widths[i : i + CHUNK]) for i in range(0, len(widths), CHUNK)]
        seconds, stddevs = zip(*parts, strict=True)
        return np.concatenate(seconds), np.concatenate(stddevs)

    def _with_stddevs(self, widths: Widths) -> tuple[Array, Array]:
        model, hyper = self._model, self._model.hyper
        rows = [table.rows(widths) for table in self._tables]
        sums = self._sums(widths)
        seconds, (physics, wholes) = self._seconds(sums), self._summed(sums)
        relative = whole_covariance(wholes, model.design.wholes, hyper)
        whitened = model.whiten((relative * (model.design.physics * physics[:, None])).T).T + model.step.whitened
        deviations = np.tile(STEP * model.price_stddev, (len(widths), 1))
        for table, row in zip(self._tables, rows, strict=True):
            whitened += table.whitened[row]
            deviations += table.price_deviations[row]
        own = own_covariance(wholes, hyper)
        variance = own * physics**2 + np.sum(deviations**2, axis=1) + self._residual_variance(rows)
        variance -= np.sum(whitened**2, axis=1)
        return seconds, model.stddev(variance, seconds, physics)

    def _residual_variance(self, rows: list[Widths]) -> Array:
        """Prior variance of the sum of the layers' residuals."""
        variance: Array = np.zeros(len(rows[0]))
        layers = self._template.layers
        for i, j in combinations_with_replacement(range(len(layers)), 2):
            if group(layers[i]) != group(layers[j]):
                continue
            a, b = self._tables[i], self._tables[j]
            both = self._model.hyper.residual_of(group(layers[i])) ** 2 * a.physics[rows[i]] * b.physics[rows[j]]
            if i == j:
                variance += both
            else:
                apart = np.sqrt(np.sum((a.positions[rows[i]] - b.positions[rows[j]]) ** 2, axis=1))
                variance += 2 * both * similarity(apart, self._model.hyper.own)
        return variance


def _on_grid(channels: Channels, variables: list[int | None], a: Array, b: Array) -> Array:
    if channels.variable is None:
        return np.full(len(a), channels.constant)
    return channels.constant + channels.coefficient * (a if channels.variable == variables[0] else b)
