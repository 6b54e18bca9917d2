"""Seconds of many networks at once, without uncertainty: each distinct layer is computed once, the rest is sums.

The same seconds as `Additive.answer`, about a hundred times faster, for searches over thousands of networks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ampere.core import Layer, Network
from ampere.core.kinds import group

from .additive import Additive
from .design_matrix import SUMMED, layer_sums, scale, summed, whole_covariance
from .features import Array, layer_position, layer_row
from .gaussian_process import kernel


class BatchTotals:
    """A function from networks to the seconds of a step of each."""

    def __init__(self, model: Additive, system: bool = False) -> None:
        self._model, self._system = model, system
        self._place: dict[Layer, int] = {}
        self._sums = np.zeros((0, SUMMED))
        self._pull = model.design.physics * model.solved

    def __call__(self, networks: Sequence[Network]) -> Array:
        """Seconds of a step of each network."""
        self._add({layer: None for network in networks for layer in network.layers if layer not in self._place})
        sums = np.array([self._sums[[self._place[x] for x in n.layers]].sum(axis=0) for n in networks]).reshape(
            -1, SUMMED
        )
        model, depth = self._model, np.array([float(len(network.layers)) for network in networks])
        physics, wholes = summed(sums, depth, model.step.physics, self._system)
        relative = whole_covariance(wholes, model.design.wholes, model.hyper) @ self._pull
        return np.asarray(model.whole_means(sums[:, 0] + model.step.mean, physics, relative))

    def _add(self, layers: dict[Layer, None]) -> None:
        by_kind: dict[str, list[Layer]] = {}
        for layer in layers:
            by_kind.setdefault(group(layer), []).append(layer)
        for kind, members in by_kind.items():
            self._place.update({layer: len(self._sums) + i for i, layer in enumerate(members)})
            self._sums = np.concatenate([self._sums, self._layer_sums(kind, members)])

    def _layer_sums(self, kind: str, layers: list[Layer]) -> Array:
        """The sums of many layers of a kind: `Additive._layer_posteriors`, vectorized."""
        model, width = self._model, self._model.hyper.vector_width
        rows = np.array([layer_row(layer, width) for layer in layers])
        physics, relative = rows @ model.prices, np.zeros(len(layers))
        if kind in model.design.positions:
            places = scale(kind, np.array([layer_position(layer, width) for layer in layers]), model.hyper)
            measured = scale(kind, model.design.positions[kind], model.hyper)
            relative = kernel(places, measured, model.hyper.own) @ model.alpha[kind]
        return layer_sums(model.layer_means(rows, physics, relative), rows, model.prices)
