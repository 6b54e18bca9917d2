"""A new device from what others of its kind know, and a handful of its own measurements.

    s           a source: another device's surrogate, or physics at its prior prices, which knows no device
    f_s(net)    log of what the source says that a network costs        w_l  a layer's share of that
    y           log of what was measured here

    v_g(net)    the share of overheads, arithmetic and memory in that, which sum to 1

    y(net) = f_s(net) + speed + log sum_g v_g exp(part_g) + size(log2 f_s) + sum_l w_l layer_l + noise
    speed ~ N(0, SPEED^2), part_g ~ N(0, c^2), size ~ GP(0, a^2 Matern52), layer ~ GP(0, b^2 Matern52) for each kind

An accelerator may compute ten times as fast as another and start operations no faster, so parts are far from equal: the
logarithm is linear around the most probable parts (`tangent`), not around equal ones.

Nothing is chosen: estimates are averages over the sources and over a grid of a, b, c and the noise, weighted by how
probable each makes what was measured here. A source that is alike gets the weight; where none is, a and b are large,
and so are intervals. Two surrogates of this device's own measurements take part with the weight that their estimates of
held-out measurements earn, so that sources that mislead cost little: one that knows no source, and one that begins with
the likeliest source's prices and is fitted to what its deviations from physics leave. Intervals hold nine tenths of
this average of normal distributions: an unlikely part that is far off does not widen them as it would its variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple, Protocol

import numpy as np

from ampere.core import Layer, Network
from ampere.core.kinds import USUAL_WIDTH, group

from .additive import Additive, Answer, Data
from .design_matrix import scale
from .features import Array, layer_position, network_features
from .gaussian_process import kernel
from .hyperparameters import Hyperparameters
from .interval import Z90
from .learning import learn
from .prices import SPEED_GROUPS

SPEED = 1.5  # log of the factor between two devices, before anything is measured
SIZE_OCTAVES = 4.0  # along which the factor changes with size
SIZES = (0.05, 0.3)  # a
PARTS = (0.15, 0.8)  # c
TANGENT_STEPS, TANGENT_NOISE = 8, 0.15  # of the search for the most probable parts
LARGEST_PART = 3.0  # log of a part's factor
LAYERS = (0.05, 0.15, 0.4, 0.9)  # b
NOISES = (0.03, 0.1, 0.25)
OWN = 0.15  # share of a layer's variance that it shares with no other
PHYSICS_PRIOR = 0.3  # relative prior weight of physics that knows no device, against one source
# The surrogate guided by a source has a price for each quantity of work: fitted to few measurements it follows their
# noise, and as few held-out ones need not show that.
GUIDED_PRIOR = 0.3  # relative prior weight of it, against the average over components
ALONE_FROM = 3  # measurements, from which the surrogate of this device alone takes part
FOLDS = 10
TELLING, TELLING_POWER = 0.14, 12  # standard deviation from physics, found by a source, that is worth asking it for
LEAST_TELLING = 1e-6
# Shares of a source's deviations from physics that may hold here too, and how probable that is before measuring.
TAKEN = {0.0: 0.25, 0.5: 0.25, 1.0: 0.5}
ALL = {1.0: 1.0}
AVERAGED_UP_TO = 8  # measurements, from which on the smaller error counts for more than its inverse square
HALVINGS = 30  # of the search for the width of an interval
LEAST_ERROR, LARGEST_ERROR = 0.02, 1.5  # of a held-out measurement, as a log


class Source(Protocol):
    """What says what a network costs on another device."""

    def answer(self, network: Network, system: bool = False) -> Answer: ...


@dataclass(frozen=True)
class _Said:
    """What a source says of some networks."""

    logs: Array  # [networks]
    variances: Array  # of the logs, as the source knows them
    layers: tuple[tuple[Layer, ...], ...]
    shares: tuple[Array, ...]
    parts: Array  # [networks, 3] shares of overheads, arithmetic and memory
    deviations: Array  # of the logs from what the source's prices alone would say

    def taking(self, share: float) -> _Said:
        """The same with only a share of the deviations from physics."""
        return replace(self, logs=self.logs - (1 - share) * self.deviations, variances=share**2 * self.variances)

    def around(self, at: Array) -> _Said:
        """The same where the parts' logarithms are near `at`: `logs` plus the new shares of parts times them."""
        whole = self.parts @ np.exp(at)
        known = whole > 0
        shares = np.where(known[:, None], self.parts * np.exp(at) / np.maximum(whole, 1e-300)[:, None], self.parts)
        logs = np.where(known, np.log(np.maximum(whole, 1e-300)) - shares @ at, 0.0)
        return replace(self, logs=self.logs + logs, parts=shares)


class _View(NamedTuple):
    """A source of which a share of its deviations from physics is believed."""

    source: int
    taken: float


@dataclass(frozen=True)
class _Component:
    """One view of a source with one choice of a, b, c and noise."""

    view: int
    size: float
    part: float
    layer: float
    noise: float


GRID = tuple(product(SIZES, PARTS, LAYERS, NOISES))


class Transferred:
    """The surrogate of a device that has few measurements of its own and other devices' surrogates."""

    def __init__(self, sources: Sequence[Source], data: Data, alone: Additive | None = None) -> None:
        """`alone` has learnt from `data`; it is learnt here where it is not given."""
        self.sources = (*sources, Additive(data.only(np.zeros(len(data), dtype=bool)), Hyperparameters()))
        self.data = data
        self._logs = np.log(data.costs)
        heard = [said(source, data.networks, data.system) for source in self.sources]
        self._views = [_View(n, share) for n, source in enumerate(self.sources) for share in _shares_taken(source)]
        equal = [heard[view.source].taking(view.taken) for view in self._views]
        self._tangents = [tangent(of, self._logs) for of in equal]
        self._said = [of.around(at) for of, at in zip(equal, self._tangents, strict=True)]
        self._components = [_Component(v, *of) for v in range(len(self._views)) for of in GRID]
        self._kernels = [_Kernels.of(of, of) for of in self._said]
        prior = np.array([self._prior(self._views[c.view]) for c in self._components])
        evidence = np.array([self._evidence(c, slice(None)) for c in self._components])
        self.weights = _normalized(prior * np.exp(evidence - np.max(evidence)))
        self._own: list[_Own] = []
        self.own_weights = self.own_errors = np.zeros(0)
        if len(data) >= ALONE_FROM:
            self._own = [_Own(alone or learn(data)), *(_Own.guided(s, taken, data) for s, taken in self._guides())]
            self.own_weights, self.own_errors = self._earned(prior)

    def _guides(self) -> list[tuple[Additive, float]]:
        """The likeliest source, where it has measurements of its own, and the share of its deviations to expect."""
        if len(self.sources) == 1:
            return []
        found = int(np.argmax(self._shares()[:-1]))
        source, mine = self.sources[found], np.array([view.source == found for view in self._views])
        taken = _normalized(self._of_views() * mine) @ [view.taken for view in self._views]
        return [(source, float(taken))] if isinstance(source, Additive) and len(source.data) else []

    def _of_views(self) -> Array:
        """The weight of each view among the components."""
        return np.asarray(np.bincount([c.view for c in self._components], self.weights, len(self._views)), dtype=float)

    def _shares(self) -> Array:
        """The weight of each source among the components."""
        found = np.bincount([view.source for view in self._views], self._of_views(), len(self.sources))
        return np.asarray(found, dtype=float)

    def _prior(self, view: _View) -> float:
        others = len(self.sources) - 1
        return (
            PHYSICS_PRIOR if view.source == others and others else _shares_taken(self.sources[view.source])[view.taken]
        )

    @property
    def likeness(self) -> Array:
        """The probability of each source given what was measured here; the last is of none of them."""
        found = self._shares() * (1 - np.sum(self.own_weights))
        found[int(np.argmax(self._shares()[:-1]))] += np.sum(self.own_weights[1:])
        return np.asarray(found)

    def answer(self, network: Network, system: bool = False) -> Answer:
        """The cost of one step of a network; a layer has the share of it that the likely sources give it."""
        logs, deviations = self.logs([network], np.array([float(system)]))
        mostly = self.sources[int(np.argmax(self._shares()))].answer(network, system)
        seconds = float(np.exp(logs[0]))
        factor, relative = seconds / mostly.seconds, float(deviations[0])
        return replace(
            mostly,
            seconds=seconds,
            stddev=relative * seconds,
            layer_seconds=mostly.layer_seconds * factor,
            layer_stddevs=np.hypot(mostly.layer_stddevs * factor, relative * mostly.layer_seconds * factor),
            step_seconds=mostly.step_seconds * factor,
        )

    def logs(self, networks: Sequence[Network], system: Array) -> tuple[Array, Array]:
        """Logs of the costs of networks, and the standard deviations of measuring them."""
        means, variances = self._mixture(networks, system, slice(None), self.weights)
        parts = [(means, np.sqrt(variances))]
        for own, error in zip(self._own, self.own_errors, strict=True):
            logs, deviations = own.logs(networks, system)
            parts.append((logs, np.maximum(deviations, error)))
        weights = np.array([1 - np.sum(self.own_weights), *self.own_weights])
        return average(weights, np.array([m for m, _ in parts]), np.array([d for _, d in parts]))

    def _mixture(self, networks: Sequence[Network], system: Array, seen: Any, weights: Array) -> tuple[Array, Array]:
        """Mean and variance over all components, which have seen the measurements `seen`."""
        total = np.zeros(len(networks))
        square = np.zeros(len(networks))
        heard = dict[int, _Said]()
        for index, view in enumerate(self._views):
            mine = [(c, w) for c, w in zip(self._components, weights, strict=True) if c.view == index]
            if sum(w for _, w in mine) < 1e-4:
                continue
            if view.source not in heard:
                heard[view.source] = said(self.sources[view.source], networks, system)
            there = heard[view.source].taking(view.taken).around(self._tangents[index])
            cross = _Kernels.of(there, self._said[index])
            own = _Kernels.diagonal(there)
            parts = np.sum(there.parts**2, axis=1)
            for component, weight in mine:
                if weight < 1e-5:
                    continue
                mean, variance = self._conditioned(component, there, cross, own, parts, seen)
                total += weight * mean
                square += weight * (variance + mean**2)
        return total, np.maximum(square - total**2, 1e-8)

    def _conditioned(
        self, c: _Component, there: _Said, cross: _Kernels, own: Array, parts: Array, seen: Any
    ) -> tuple[Array, Array]:
        residual = (self._logs - self._said[c.view].logs)[seen]
        prior = SPEED**2 + c.size**2 + c.part**2 * parts + c.layer**2 * own + there.variances + c.noise**2
        if len(residual) == 0:
            return there.logs, prior
        inverse = np.linalg.inv(self._covariance(c)[seen][:, seen])
        reach = cross.weighed(c)[:, seen]
        mean = there.logs + reach @ (inverse @ residual)
        return mean, np.maximum(prior - np.einsum("ij,jk,ik->i", reach, inverse, reach), c.noise**2)

    def _covariance(self, c: _Component) -> Array:
        kernels, heard = self._kernels[c.view], self._said[c.view]
        noise = np.diag(c.noise**2 + self.data.noise + heard.variances)
        return np.asarray(kernels.weighed(c) + noise)

    def _evidence(self, c: _Component, seen: Any) -> float:
        """Log probability of what was measured here."""
        values = (self._logs - self._said[c.view].logs)[seen]
        if len(values) == 0:
            return 0.0
        whole = self._covariance(c)[seen][:, seen]
        return float(-0.5 * (values @ np.linalg.solve(whole, values) + np.linalg.slogdet(whole)[1]))

    def _earned(self, prior: Array) -> tuple[Array, Array]:
        """The weights of the own surrogates, and their errors on held-out measurements, as logs.

        Two estimates that err independently are best averaged by the inverse squares of their errors. With many
        measurements the worse one is ruled out: a source that misleads must not cost what its share of the mean does.
        """
        count = len(self.data)
        folds = np.arange(count) % min(FOLDS, count)
        errors = np.zeros((1 + len(self._own), count))
        for fold in range(min(FOLDS, count)):
            held, seen = folds == fold, np.flatnonzero(folds != fold)
            rest, system = self.data.only(folds != fold), self.data.system[held]
            networks = [n for n, h in zip(self.data.networks, held, strict=True) if h]
            evidence = np.array([self._evidence(c, seen) for c in self._components])
            weights = _normalized(prior * np.exp(evidence - np.max(evidence)))
            errors[0, held] = self._logs[held] - self._mixture(networks, system, seen, weights)[0]
            for own, of in enumerate(self._own, 1):
                errors[own, held] = self._logs[held] - of.without(rest).logs(networks, system)[0]
        # Absolute errors: among five held-out measurements, one that is far off would decide alone by its square.
        absolute = np.mean(np.minimum(np.abs(errors), LARGEST_ERROR), axis=1)
        squares = absolute**2 * np.pi / 2 + LEAST_ERROR**2
        telling, alike = self._telling(), float(np.max(self._shares()[:-1], initial=0.0))
        taught = np.array([telling, 1.0, *(GUIDED_PRIOR * telling * alike for _ in self._own[1:])])
        earned = _normalized(taught * (np.min(squares) / squares) ** max(1.0, count / AVERAGED_UP_TO))
        # Errors found from few measurements are uncertain themselves: Student's t, of one further measurement.
        from scipy.special import stdtrit

        wider = stdtrit(count - 1, 0.95) / Z90 * np.sqrt(1 + 1 / count)
        return earned[1:], wider * np.sqrt(squares[1:])

    def _telling(self) -> float:
        """Prior odds of sources against none.

        They are the share of its own costs that a source finds without having measured them. Of lone layers that cost
        what physics says five measurements tell all: there the deviations from physics that it finds count too.
        """
        if not (guides := self._guides()):
            return 1.0
        known, _ = guides[0]
        missed = float(np.var(known.leave_one_out()[0] / known.data.costs))
        found = max(0.0, 1 - missed / max(float(np.var(np.log(known.data.costs))), 1e-300))
        if self.data.isolated:
            deviations = float(np.var(np.log(known.data.costs / known.design.physics)))
            found *= min(1.0, np.sqrt(max(0.0, deviations - missed)) / TELLING) ** TELLING_POWER
        return max(LEAST_TELLING, found)


@dataclass(frozen=True)
class _Own:
    """A surrogate of this device's measurements: of their costs, or of what a source's deviations leave of them."""

    model: Additive
    source: Additive | None = None
    taken: float = 1.0  # share of the source's deviations

    @classmethod
    def guided(cls, source: Additive, taken: float, data: Data) -> _Own:
        factors = np.exp(taken * said(source, data.networks, data.system).deviations)
        model = Additive(replace(data, costs=data.costs / factors), source.hyper, before=source.prices)
        return cls(model, source, taken)

    def without(self, rest: Data) -> _Own:
        """Fitted anew to the rest, without hyperparameters that have seen the held-out measurements and flatter it."""
        if self.source is not None:
            return self.guided(self.source, self.taken, rest)
        return _Own(learn(rest, Hyperparameters(one_by_one=self.model.hyper.one_by_one), evaluations=0))

    def logs(self, networks: Sequence[Network], system: Array) -> tuple[Array, Array]:
        means, posterior = self.model.joint(networks, system)
        variances = np.maximum(np.diag(posterior), 0.0) + self.model.measurement_variance(means)
        logs = np.log(means)
        if self.source is not None:
            logs = logs + self.taken * said(self.source, networks, system).deviations
        return logs, self.model.hyper.calibration * np.sqrt(variances) / means


def _shares_taken(source: Source) -> dict[float, float]:
    """Physics itself deviates from nothing."""
    return TAKEN if isinstance(source, Additive) and len(source.data) else ALL


def tangent(heard: _Said, logs: Array) -> Array:
    """The most probable logarithms of parts, given what was measured; each step is linear around the last."""
    at = np.zeros(heard.parts.shape[1])
    for _ in range(TANGENT_STEPS if len(logs) else 0):
        near = heard.around(at)
        covariance = SPEED**2 + PARTS[-1] ** 2 * near.parts @ near.parts.T + TANGENT_NOISE**2 * np.eye(len(logs))
        at = PARTS[-1] ** 2 * near.parts.T @ np.linalg.solve(covariance, logs - near.logs)
    return np.asarray(np.clip(at, -LARGEST_PART, LARGEST_PART))


def average(weights: Array, means: Array, deviations: Array) -> tuple[Array, Array]:
    """The mean of normal distributions, one a row, and the deviation of a normal one whose 90 % interval holds 90 %."""
    from scipy.special import ndtr

    total = weights @ means
    low, high = np.zeros(len(total)), Z90 * np.max(deviations + np.abs(means - total), axis=0)
    for _ in range(HALVINGS):
        width = (low + high) / 2
        inside = weights @ (ndtr((total + width - means) / deviations) - ndtr((total - width - means) / deviations))
        low, high = np.where(inside < 0.9, width, low), np.where(inside < 0.9, high, width)
    return total, np.maximum(high / Z90, 1e-4)


def _normalized(weights: Array) -> Array:
    return np.asarray(weights / np.sum(weights))


def said(source: Source, networks: Sequence[Network], system: Array) -> _Said:
    """What a source says of networks, with the share of each layer."""
    if isinstance(source, Additive):
        source.posteriors_of([layer for network in networks for layer in network.distinct])
    answers = [source.answer(n, bool(s)) for n, s in zip(networks, system, strict=True)]
    shares = []
    for network, answer in zip(networks, answers, strict=True):
        counts = dict.fromkeys(answer.layers, 0)
        for layer in network.layers:
            counts[layer] = counts.get(layer, 0) + 1
        cost = np.array([counts[layer] for layer in answer.layers]) * answer.layer_seconds
        shares.append(cost / max(float(np.sum(cost)), 1e-300))
    seconds = np.array([a.seconds for a in answers])
    known = np.array([a.stddev for a in answers]) / np.maximum(seconds, 1e-300)
    variances = (
        np.minimum(known, 1.0) ** 2 if isinstance(source, Additive) and len(source.data) else np.zeros(len(known))
    )
    logs, layers = np.log(np.maximum(seconds, 1e-300)), tuple(a.layers for a in answers)
    if not isinstance(source, Additive):
        none = np.zeros((len(networks), SPEED_GROUPS.shape[1]))
        return _Said(logs, variances, layers, tuple(shares), none, np.zeros(len(networks)))
    rows = [network_features(n, source.hyper.vector_width).row * source.prices for n in networks]
    parts = np.array(rows).reshape(len(networks), len(source.prices)) @ SPEED_GROUPS
    physics = np.maximum(parts.sum(axis=1), 1e-300)
    return _Said(logs, variances, layers, tuple(shares), parts / physics[:, None], logs - np.log(physics))


@dataclass(frozen=True)
class _Kernels:
    """Unit covariances between networks: of the factor's change with size, of parts, of their layers' deviations."""

    size: Array
    part: Array
    layer: Array

    def weighed(self, c: _Component) -> Array:
        """The covariance of a component, without noise."""
        return np.asarray(SPEED**2 + c.size**2 * self.size + c.part**2 * self.part + c.layer**2 * self.layer)

    @classmethod
    def of(cls, a: _Said, b: _Said) -> _Kernels:
        x, y = a.logs[:, None] / np.log(2) / SIZE_OCTAVES, b.logs[:, None] / np.log(2) / SIZE_OCTAVES
        total = np.zeros((len(a.logs), len(b.logs)))
        mine, theirs = _by_kind(a), _by_kind(b)
        for kind in [kind for kind in mine if kind in theirs]:
            (positions, weights), (others, their_weights) = mine[kind], theirs[kind]
            total += weights @ kernel(positions, others, OWN) @ their_weights.T
        return cls(kernel(x, y), a.parts @ b.parts.T, total)

    @staticmethod
    def diagonal(a: _Said) -> Array:
        total = np.zeros(len(a.logs))
        for index, (layers, shares) in enumerate(zip(a.layers, a.shares, strict=True)):
            this = slice(index, index + 1)
            one = _Said(a.logs[this], a.variances[this], (layers,), (shares,), a.parts[this], a.deviations[this])
            for positions, weights in _by_kind(one).values():
                total[index] += float((weights @ kernel(positions, positions, OWN) @ weights.T)[0, 0])
        return total


def _by_kind(of: _Said) -> dict[str, tuple[Array, Array]]:
    """The positions of the different layers of each kind, and each network's shares of them."""
    usual, found = Hyperparameters(), dict[str, dict[Layer, int]]()
    for layers in of.layers:
        for layer in layers:
            mine = found.setdefault(group(layer), {})
            mine.setdefault(layer, len(mine))
    result = {}
    for kind, places in found.items():
        positions = scale(kind, np.array([layer_position(layer, USUAL_WIDTH) for layer in places]), usual)
        weights = np.zeros((len(of.layers), len(places)))
        for row, (layers, shares) in enumerate(zip(of.layers, of.shares, strict=True)):
            for layer, share in zip(layers, shares, strict=True):
                if group(layer) == kind:
                    weights[row, places[layer]] += share
        result[kind] = (positions, weights)
    return result
