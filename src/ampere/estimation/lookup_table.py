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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ampere.core import KINDS, Layer, Network
from ampere.core.kinds import group

from .additive import Additive
from .design_matrix import SUMMED, Wholes, layer_sums, own_covariance, scale, summed, whole_covariance
from .features import COLUMNS, STEP, Array, layer_columns
from .gaussian_process import kernel, similarity

Widths = NDArray[np.int64]  # one row a network, one column a width
Box = Sequence[tuple[int, int]]  # the first and the last value of each width: all networks between them

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
class LayerTable:
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


class SumTable:
    """Means of all networks of a template: what a search needs of every candidate. It is small, and can be sent."""

    def __init__(
        self, model: Additive, layers: int, system: bool, alone: Array, tables: dict[tuple[int, ...], Array],
        deviation: Array, low: Array, step: Array,
    ) -> None:  # fmt: skip
        """`alone` has the sums of layers without open widths; `tables` those of others, by one or two widths."""
        self._model, self._layers, self._system, self._alone = model, layers, system, alone
        self._deviation, self._low, self._step = deviation, low, step
        self._tables = [(v, t.shape[:-1], t.reshape(-1, SUMMED)) for v, t in tables.items()]

    def seconds(self, widths: Widths) -> Array:
        """Seconds of a step for each row of widths."""
        parts = [self.seconds_of(self.of(widths[i : i + CHUNK])) for i in range(0, len(widths), CHUNK)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def of(self, widths: Widths) -> Array:
        """Sums over layers, one row a network."""
        total = np.tile(self._alone, (len(widths), 1))
        for variables, shape, sums in self._tables:
            place = widths[:, variables[0]] - 1
            if len(variables) == 2:
                place = place * shape[1] + widths[:, variables[1]] - 1
            total += sums.take(place, axis=0)
        return total

    def seconds_of(self, sums: Array) -> Array:
        physics, wholes = self.summed(sums)
        relative = self._deviations(wholes.places[:, 0], wholes.places[:, 1])
        if self._system:
            relative = relative + wholes.shares @ self._model.loop_shift
        return np.asarray(self._model.whole_means(sums[:, 0] + self._model.step.mean, physics, relative))

    def seconds_in(self, box: Box) -> Array:
        """Seconds of a step of all networks in a box, with an axis for each width.

        Tables of one or two widths are added where they are as large as those widths: each network costs a few
        additions and no lookup of its own.
        """
        alone, tables = self._planes
        cuts = [alone.reshape(-1, *(1 for _ in box))]
        for variables, planes in tables:
            ranges = slice(None), *(slice(box[v][0] - 1, box[v][1]) for v in variables)
            axes = slice(None), *(slice(None) if axis in variables else None for axis in range(len(box)))
            cuts.append(planes[ranges][axes])
        total: Array = np.zeros(1)
        for cut in sorted(cuts, key=lambda cut: cut.size):
            shape = np.broadcast_shapes(total.shape, cut.shape)
            total = np.add(total, cut, out=total if total.shape == shape else None)
        parts, flops, values, physics, *shift = total
        relative = self._deviations(np.log2(flops, out=flops), np.log2(values, out=values))
        if shift:
            relative += np.divide(shift[0], physics, out=shift[0])
        return np.asarray(self._model.whole_means(parts, physics, relative))

    @cached_property
    def _planes(self) -> tuple[Array, list[tuple[tuple[int, ...], Array]]]:
        """What `seconds_in` adds up, one after the other: costs, arithmetic, memory, physics, and what a loop adds."""
        step, none = self._model.step, np.zeros((1, SUMMED))
        physics, wholes = self.summed(none)
        groups = wholes.shares * physics[:, None]  # of a step without layers

        def planes(sums: Array) -> Array:
            found = [sums[..., 0], sums[..., 1], sums[..., 2], sums[..., 3:].sum(axis=-1)]
            return np.stack([*found, sums[..., 3:] @ self._model.loop_shift] if self._system else found)

        alone = np.concatenate([[step.mean, 1e3, 1e3], groups[0]]) + self._alone
        return planes(alone), [(v, planes(sums.reshape(*shape, SUMMED))) for v, shape, sums in self._tables]

    def summed(self, sums: Array) -> tuple[Array, Wholes]:
        return summed(sums, self._layers, self._model.step.physics, self._system)

    def _deviations(self, flops: Array, values: Array) -> Array:
        """Relative deviations of whole networks at these octaves of arithmetic and memory, interpolated."""
        u, v = flops - self._low[0], values - self._low[1]
        u *= 1 / self._step[0]
        v *= 1 / self._step[1]
        row, column = u.astype(np.int64), v.astype(np.int64)
        u -= np.minimum(row, GRID - 2, out=row)
        v -= np.minimum(column, GRID - 2, out=column)
        row *= GRID - 1
        row += column
        base, along_u, along_v, twisted = (cells.take(row, mode="clip") for cells in self._cells)
        twisted *= u
        along_v += twisted
        along_v *= v
        along_u *= u
        base += along_u
        base += along_v
        return np.asarray(base)

    @cached_property
    def _cells(self) -> list[Array]:
        """The deviation in a cell of the grid: base + u along_u + v along_v + u v twisted."""
        d = self._deviation
        base, along_u, along_v = d[:-1, :-1], d[1:, :-1] - d[:-1, :-1], d[:-1, 1:] - d[:-1, :-1]
        return [c.ravel() for c in (base, along_u, along_v, d[1:, 1:] - d[1:, :-1] - along_v)]


class LookupTable:
    """Costs of all networks of a template, by one fitted model."""

    def __init__(
        self,
        model: Additive,
        template: Template,
        system: bool = False,
        stddevs: bool = True,
        known: dict[Any, LayerTable] | None = None,
    ) -> None:
        """Without `stddevs` the tables hold sums only, which takes a hundredth of the memory.

        `known` are tables of the same model's layers, made once and added to: blocks repeat layers, and so do shapes.
        """
        self._model, self._template, self._system, self._stddevs = model, template, system, stddevs
        self._known = {} if known is None else known
        self._tables = [self._table(i) for i in range(len(template.layers))]
        self.sums = SumTable(model, len(self._tables), system, *self._merged(), *self._grid())

    def _table(self, index: int) -> LayerTable:
        template = self._template
        layer, cin, cout = template.layers[index], template.channels_in[index], template.channels_out[index]
        variables = [c.variable for c in (cin, cout)]
        if variables[0] == variables[1]:
            variables[1] = None
        sizes = [1 if v is None else template.largest[v] for v in variables]
        key = (layer, cin, cout, *sizes)
        if key not in self._known:
            self._known[key] = self._made(layer, cin, cout, variables, sizes)
        return self._known[key]

    def _made(
        self, layer: Layer, cin: Channels, cout: Channels, variables: list[int | None], sizes: list[int]
    ) -> LayerTable:
        a, b = (
            g.ravel().astype(float)
            for g in np.meshgrid(np.arange(1.0, sizes[0] + 1), np.arange(1.0, sizes[1] + 1), indexing="ij")
        )
        first = _on_grid(cin, variables, a, b)
        second = _on_grid(cout, variables, a, b)
        parts = [self._surface(layer, first[i : i + CHUNK], second[i : i + CHUNK]) for i in range(0, len(a), CHUNK)]
        sums, whitened, deviations, positions = (np.concatenate(p) for p in zip(*parts, strict=True))
        return LayerTable((variables[0], variables[1]), sizes[1], sums, whitened, deviations, positions)

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

    def _merged(self) -> tuple[Array, dict[tuple[int, ...], Array]]:
        """The sums of all layers that depend on no width, and one table for those that depend on the same ones."""
        largest = self._template.largest
        alone, tables = np.zeros(SUMMED), dict[tuple[int, ...], Array]()
        for table in self._tables:
            variables = tuple(v for v in table.index if v is not None)
            sums = table.sums.reshape(*(largest[v] for v in variables), SUMMED)
            if variables[::-1] == tuple(sorted(variables)):
                variables, sums = variables[::-1], sums.transpose(*range(len(variables))[::-1], len(variables))
            if not variables:
                alone = alone + sums
            else:
                tables[variables] = tables.get(variables, 0.0) + sums
        pairs = [variables for variables in tables if len(variables) == 2]
        for (variable,) in [variables for variables in tables if len(variables) == 1]:
            if pair := next((both for both in pairs if variable in both), None):
                own = tables.pop((variable,))
                tables[pair] = tables[pair] + (own[:, None] if pair[0] == variable else own[None])
        return alone, tables

    def _grid(self) -> tuple[Array, Array, Array]:
        """Relative deviations of whole networks over octaves of arithmetic and memory; first place and step.

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
        deviation = (relative @ (model.design.physics * model.solved)).reshape(GRID, GRID)
        return deviation, low, (high - low) / (GRID - 1)

    def seconds(self, widths: Widths) -> Array:
        """Seconds of a step for each row of widths."""
        return self.sums.seconds(widths)

    def seconds_and_stddevs(self, widths: Widths) -> tuple[Array, Array]:
        """Seconds of a step and their standard deviation for each row of widths."""
        parts = [self._with_stddevs(widths[i : i + CHUNK]) for i in range(0, len(widths), CHUNK)]
        seconds, stddevs = zip(*parts, strict=True)
        return np.concatenate(seconds), np.concatenate(stddevs)

    def _with_stddevs(self, widths: Widths) -> tuple[Array, Array]:
        model, hyper = self._model, self._model.hyper
        rows = [table.rows(widths) for table in self._tables]
        sums = self.sums.of(widths)
        seconds, (physics, wholes) = self.sums.seconds_of(sums), self.sums.summed(sums)
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
