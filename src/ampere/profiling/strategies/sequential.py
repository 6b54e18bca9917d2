"""The paper's strategy: each layer kind at its bounds, then wherever the uncertainty is largest.

parse networks -> kinds -> output, input, hidden ones at their bounds -> the most uncertain kind, where it is largest
                                                                          ^                                       |
                                                                          +------ until 5 %, limit or time <------+

The paper profiles the kinds one after the other. Here time is limited, so the most uncertain kind is next: a short run
then has some points of every kind instead of all points of one. Time stands for energy, as in the paper.
"""

from __future__ import annotations

import time
from random import Random

import numpy as np

from ampere.core import Network
from ampere.devices import VariantDied, VariantFailed
from ampere.estimation.fitting import data_of
from ampere.estimation.normalization import normalized
from ampere.estimation.sequential import Sequential
from ampere.estimation.units import Kind
from ampere.profiling.experiment import Experiment
from ampere.profiling.variants import Point, UnitKind, layers_of, unit_kinds, variant
from ampere.storage.profile import Observation

from .strategy import Collected, Guess, MeasurementContext, Progress, Strategy, Task

TARGET_DEVIATION = 0.05  # relative standard deviation, below which a kind is finished
POINTS_AT_MOST = {True: 12, False: 40}  # by whether a kind is a line: with one free axis, and with two
NETWORKS_AT_LEAST, NETWORKS_AT_MOST = 6, 32
SAMPLING_SHARE = 0.02  # of the time, for sampling the source's networks


class Run:
    """One profiling run of the paper's strategy."""

    def __init__(self, context: MeasurementContext, task: Task) -> None:
        self._context, self._task = context, task
        self._deadline = task.began + task.goal.seconds
        self._networks = self._sampled()
        self._kinds = unit_kinds(self._networks)
        self._seen, self._refused = list(task.known), list[str]()
        self._guess, self._thinking = Guess(task.known), 0.0
        data = data_of(normalized(self._seen, context.reference), context.reference)
        self._model = Sequential(data.networks, data.costs)
        self._done: dict[Kind, set[Point]] = {}
        self._largest: dict[Kind, tuple[float, Point] | None] = {}

    def run(self) -> Collected:
        """Measures opaque modules, every kind at its bounds, then wherever the uncertainty is largest."""
        context = self._context
        for experiment in context.source.opaque():
            self._observe(experiment)
        for kind in self._kinds.in_order:
            for point in kind.bounds():
                self._measure(kind, point)
        while (chosen := self._next()) is not None and context.clock() < self._deadline:
            self._measure(*chosen)
        return self._collected()

    def _sampled(self) -> list[Network]:
        """The source's networks to parse, the original first."""
        source, rng = self._context.source, Random(self._task.seed)
        until = self._context.clock() + SAMPLING_SHARE * self._task.goal.seconds
        found = [source.original().network]
        while len(found) < NETWORKS_AT_LEAST or (len(found) < NETWORKS_AT_MOST and self._context.clock() < until):
            found.append(source.sample(rng).network)
        return found

    def _next(self) -> tuple[UnitKind, Point] | None:
        """The most uncertain kind and its most uncertain point; None where every kind is finished."""
        started = time.monotonic()
        unfinished = [(at, kind) for kind in self._kinds.in_order if (at := self._most_uncertain(kind)) is not None]
        self._thinking += time.monotonic() - started
        if not unfinished:
            return None
        (_, point), kind = max(unfinished, key=lambda found: found[0][0])
        return kind, point

    def _most_uncertain(self, kind: UnitKind) -> tuple[float, Point] | None:
        """A kind's largest relative deviation and where it is; None where the kind is finished."""
        if kind.kind not in self._largest:
            self._largest[kind.kind] = self._largest_deviation(kind)
        return self._largest[kind.kind]

    def _largest_deviation(self, kind: UnitKind) -> tuple[float, Point] | None:
        process, done = self._model.processes.get(kind.kind), self._done.get(kind.kind, set())
        points = [point for point in kind.candidates() if point not in done]
        if process is None or not points or len(done) >= POINTS_AT_MOST[kind.is_line]:
            return None
        deviations = process.deviations(np.array(points, dtype=float)) / max(process.typical, 1e-12)
        best = int(np.argmax(deviations))
        return None if deviations[best] < TARGET_DEVIATION else (float(deviations[best]), points[best])

    def _measure(self, kind: UnitKind, point: Point) -> None:
        done = self._done.setdefault(kind.kind, self._known_points(kind))
        if point in done:
            return
        done.add(point)
        self._largest.pop(kind.kind, None)
        network = Network(layers_of(variant(self._kinds, kind, point)), self._kinds.batch)
        purpose = "layer" if len(network.layers) == 1 else "variant"
        self._observe(Experiment(network, {"layers": network.to_json()}, purpose))

    def _known_points(self, kind: UnitKind) -> set[Point]:
        process = self._model.processes.get(kind.kind)
        return {(round(a), round(b)) for a, b in process.channels} if process else set()

    def _observe(self, experiment: Experiment) -> None:
        elapsed, goal = self._context.clock() - self._task.began, self._task.goal
        if elapsed > goal.seconds:
            return
        doing = f"{experiment.purpose} of {len(experiment.network.layers)} layers"
        self._task.on_progress(Progress(elapsed, goal.seconds, len(self._seen), None, doing))
        try:
            seen = self._context.observe(experiment, self._guess.seconds(experiment.network))
        except (VariantDied, VariantFailed) as error:
            self._refused.append(f"{experiment.purpose} of {self._context.source.name}: {error}")
            return
        if seen is not None:
            self._learn(seen)

    def _learn(self, seen: Observation) -> None:
        started = time.monotonic()
        self._seen.append(seen)
        self._guess.learn(seen)
        for cost in normalized([seen], self._context.reference):
            self._model.learn(cost.network, cost.ratio * self._context.yardstick_seconds)
        self._thinking += time.monotonic() - started

    def _collected(self) -> Collected:
        data = data_of(normalized(self._seen, self._context.reference), self._context.reference)
        model = Sequential(data.networks, data.costs)
        answers = [model.answer(network) for network in self._networks]
        error = float(np.mean([a.stddev / a.seconds for a in answers]) * np.sqrt(2 / np.pi)) if self._seen else None
        return Collected(tuple(self._seen), error, self._thinking, tuple(self._refused))


def collect(context: MeasurementContext, task: Task) -> Collected:
    """Runs the paper's strategy."""
    return Run(context, task).run()


STRATEGY = Strategy(collect)
