"""The paper's strategy: each layer kind at its bounds, then wherever the uncertainty is largest.

parse networks -> kinds -> output, input, hidden ones at their bounds -> the most uncertain kind, where it is largest
                                                                          ^                                       |
                                                                          +------ until 5 %, limit or time <------+

The paper profiles the kinds one after the other, and so does a run to its own end. Where time is limited, the most
uncertain kind is next: a short run then has some points of every kind instead of all points of one. Time stands for
energy, as in the paper. Differences of costs need all of them at one scale, so variants are trained in a loop and the
yardstick (reference step) settles before it is timed: right after a large network it takes up to 1.4 times as long.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

import numpy as np

from ampere.core import Network
from ampere.devices import VariantDied, VariantFailed
from ampere.estimation.fitting import data_of
from ampere.estimation.normalization import normalized
from ampere.estimation.sequential import PAPERS_KERNEL, Sequential
from ampere.estimation.units import Kind
from ampere.profiling.experiment import Experiment
from ampere.profiling.variants import Point, UnitKind, layers_of, unit_kinds, variant
from ampere.storage.profile import ENDS, Observation

from .strategy import Collected, Guess, MeasurementContext, Progress, Strategy, Task

TARGET_DEVIATION = 0.05  # relative standard deviation, below which a kind is finished
POINTS_AT_MOST = {True: 12, False: 40}  # by whether a kind is a line: with one free axis, and with two


@dataclass(frozen=True)
class Settings:
    """What can be changed about the paper's method. The paper prints no limit of points."""

    kernel: str = PAPERS_KERNEL
    guided: bool = True  # else the next point is any
    target_deviation: float = TARGET_DEVIATION
    points_on_line: int = POINTS_AT_MOST[True]
    points_on_surface: int = POINTS_AT_MOST[False]

    def most_points(self, kind: UnitKind) -> int:
        return self.points_on_line if kind.is_line else self.points_on_surface


PAPERS = Settings()
NETWORKS_AT_LEAST, NETWORKS_AT_MOST = 6, 32
SAMPLING_SHARE = 0.02  # of the time, for sampling the source's networks


class Run:
    """One profiling run of the paper's strategy."""

    def __init__(self, context: MeasurementContext, task: Task, settings: Settings) -> None:
        self._context, self._task, self._settings = context, task, settings
        self._any = Random(f"points {task.seed}")
        self._deadline = task.began + task.goal.seconds
        self._networks = self._sampled()
        self._kinds = unit_kinds(self._networks)
        self._order = self._kinds.in_order if self._kinds else []
        self._seen, self._refused = list(task.known), list[str]()
        self._guess, self._thinking = Guess(task.known), 0.0
        data = data_of(normalized(self._seen, context.reference), context.reference)
        self._model = Sequential(data.networks, data.costs, settings.kernel)
        self._done: dict[Kind, set[Point]] = {}
        self._largest: dict[Kind, tuple[float, Point] | None] = {}

    def run(self) -> Collected:
        """Measures opaque modules, every kind at its bounds, then wherever the uncertainty is largest."""
        context = self._context
        for experiment in context.source.opaque():
            self._observe(experiment)
        one_by_one = self._task.goal.own_end
        for several in [[kind] for kind in self._order] if one_by_one else [self._order]:
            for kind in several:
                for point in kind.bounds():
                    self._measure(kind, point)
            while context.clock() < self._deadline and (chosen := self._next(several)) is not None:
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

    def _next(self, kinds: Sequence[UnitKind]) -> tuple[UnitKind, Point] | None:
        """The most uncertain kind and its most uncertain point; None where every kind is finished."""
        started = time.monotonic()
        unfinished = [(at, kind) for kind in kinds if (at := self._most_uncertain(kind)) is not None]
        self._thinking += time.monotonic() - started
        if not unfinished:
            return None
        if not self._settings.guided:
            _, kind = self._any.choice(unfinished)
            return kind, self._any.choice(self._left(kind))
        (_, point), kind = max(unfinished, key=lambda found: found[0][0])
        return kind, point

    def _most_uncertain(self, kind: UnitKind) -> tuple[float, Point] | None:
        """A kind's largest relative deviation and where it is; None where the kind is finished."""
        if kind.kind not in self._largest:
            self._largest[kind.kind] = self._largest_deviation(kind)
        return self._largest[kind.kind]

    def _largest_deviation(self, kind: UnitKind) -> tuple[float, Point] | None:
        process, points = self._model.processes.get(kind.kind), self._left(kind)
        if process is None or not points or self._is_full(kind):
            return None
        deviations = process.deviations(np.array(points, dtype=float)) / max(process.typical, 1e-12)
        best = int(np.argmax(deviations))
        within = deviations[best] < self._settings.target_deviation
        return None if within else (float(deviations[best]), points[best])

    def _left(self, kind: UnitKind) -> list[Point]:
        return [point for point in kind.candidates() if point not in self._done.get(kind.kind, set())]

    def _is_full(self, kind: UnitKind) -> bool:
        return len(self._done.get(kind.kind, ())) >= self._settings.most_points(kind)

    def _ended(self) -> dict[str, int]:
        """How many kinds ended by which of `ENDS`: by time where they are neither certain nor at their limit.

        Kinds that could not be trained at all are not counted.
        """
        ended = dict.fromkeys(ENDS, 0)
        for kind in self._order:
            tried = self._done.get(kind.kind, set()).issuperset(kind.bounds())
            if not tried or self._most_uncertain(kind) is not None:
                ended["time"] += 1
            elif kind.kind in self._model.processes:
                ended["limit" if self._is_full(kind) else "rule"] += 1
        return ended

    def _measure(self, kind: UnitKind, point: Point) -> None:
        done = self._done.setdefault(kind.kind, self._known_points(kind))
        if point in done or self._context.clock() > self._deadline:
            return
        assert self._kinds is not None  # this kind is one of them
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
        share = self._share() if goal.own_end else None
        self._task.on_progress(Progress(elapsed, goal.seconds, len(self._seen), None, doing, share=share))
        try:
            seen = self._context.observe(experiment, self._guess.seconds(experiment.network), settled=True)
        except (VariantDied, VariantFailed) as error:
            self._refused.append(f"{experiment.purpose} of {self._context.source.name}: {error}")
            return
        if seen is not None:
            self._learn(seen)

    def _share(self) -> float:
        """About how much of a run to its own end is done: kinds that are begun, of all."""
        return max(0, len(self._done) - 1) / len(self._order)

    def _learn(self, seen: Observation) -> None:
        started = time.monotonic()
        self._seen.append(seen)
        self._guess.learn(seen)
        for cost in normalized([seen], self._context.reference):
            self._model.learn(cost.network, cost.ratio * self._context.yardstick_seconds)
        self._thinking += time.monotonic() - started

    def _collected(self) -> Collected:
        data = data_of(normalized(self._seen, self._context.reference), self._context.reference)
        model = Sequential(data.networks, data.costs, self._settings.kernel)
        answers = [model.answer(network) for network in self._networks]
        error = float(np.mean([a.stddev / a.seconds for a in answers]) * np.sqrt(2 / np.pi)) if self._seen else None
        fit = {} if self._settings.kernel == PAPERS_KERNEL else {"kernel": self._settings.kernel}
        refused = tuple(self._refused)
        return Collected(tuple(self._seen), error, self._thinking, refused, fit=fit, ended=self._ended())


def collect(context: MeasurementContext, task: Task, settings: Settings = PAPERS) -> Collected:
    """Runs the paper's strategy."""
    return Run(context, task, settings).run()


def strategy_with(settings: Settings) -> Strategy:
    """The paper's strategy with other settings than the paper's, as `make_profile` takes it."""
    return Strategy(partial(collect, settings=settings), ends_itself=True, any_iterations=True)


STRATEGY = strategy_with(PAPERS)
