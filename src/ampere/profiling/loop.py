"""The profiling loop of the additive method.

sample networks -> plan (most informative per second) -> train in shuffled rounds -> journal -> refit
      ^                                                                                      |
      +--------------------- until the target error or the time budget <---------------------+
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import numpy as np

from ampere.devices import VariantDied, VariantFailed
from ampere.estimation.additive import Additive
from ampere.estimation.batch import BatchTotals
from ampere.estimation.features import Array
from ampere.estimation.fitting import TYPICAL_SPREAD, VARIANT_STDDEV, counted, data_of, joules_data_of
from ampere.estimation.hyperparameters import Hyperparameters
from ampere.estimation.learning import CALIBRATED_FROM, calibrated, few_factor, learn
from ampere.estimation.normalization import NormalizedCost, Reference, normalized, with_slowdowns
from ampere.estimation.page_faults import page_faults_in
from ampere.profiling.strategies.strategy import Collected, Goal, MeasurementContext, Progress
from ampere.storage.profile import Observation, yardstick_readings

from .experiment import Experiment, slices
from .observing import block_seconds
from .planner import FAMILY, Compiling, TimeAllocation, expected_error, plan, time_allocation
from .sources import DeviceSource

FEWEST = 8  # measurements, up to which hyperparameters are left as they are
REFIT_EVALUATIONS, LAST_EVALUATIONS = 25, 60  # in a search of hyperparameters: between batches, and at the end
ROUNDS = 2
BATCHES, BATCHES_TO_TARGET = 4, 12  # batches of a run; more where it may end early
PLANNED_FROM = 32  # networks: the planner chooses from the latest ones
TARGETS = 6
COMPILED_FIRST = 2  # experiments, before compile times are known
LEAST_BATCH = 0.02  # of the budget: a smaller batch is not worth planning
HOPELESS = 8  # variants that could not be trained, where none could: the device is asked no more
LAST_FIT_SHARE = 0.03  # of the budget, for the last fit
FITTING_SHARE = 0.01  # of the budget, for one search of hyperparameters


def joules_learnt(
    costs: Sequence[NormalizedCost], reference: Reference, time: Hyperparameters, seconds: float = float("inf")
) -> Additive:
    """The model of joules, searched from the hyperparameters of `time` in about `seconds` at most."""
    data = joules_data_of(costs, reference)
    model = learn(data, time, LAST_EVALUATIONS if len(data) > FEWEST else 0, seconds)
    return calibrated(model, whole_networks(costs))


def whole_networks(costs: Sequence[NormalizedCost]) -> Array:
    """For each cost, whether it is that of a whole network."""
    return np.array([c.purpose == "network" for c in costs], dtype=bool)


class Profiling:
    """One profiling run of the additive method."""

    def __init__(
        self,
        context: MeasurementContext,
        seen: tuple[Observation, ...] = (),
        hyper: Hyperparameters | None = None,
        seed: int = 0,
    ) -> None:
        self._context, self._source, self._yardstick = context, context.source, context.yardstick_seconds
        self._seen: list[Observation] = list(seen)
        self._rng = Random(seed)
        self._pool: list[Experiment] = []
        self._targets: list[Experiment] = []
        self._refused: list[str] = []
        self._compiling = Compiling(context.compiles)
        self._thinking = self._fitting = 0.0
        self._patience, self._time_allocation = float("inf"), FAMILY
        self._model = self._fit(hyper, 0)

    def run(self, goal: Goal, began: float, on_progress: Callable[[Progress], None]) -> Collected:
        """Trains experiments until the goal is reached, and returns the observations and the fitted models.

        `began` is when the run started by the context's clock; the time to start the device counts.
        """
        self._patience = FITTING_SHARE * goal.seconds if self._context.clock is time.monotonic else float("inf")
        for batch in range(2 * BATCHES_TO_TARGET):
            elapsed = self._context.clock() - began
            training_ends = goal.seconds - self._ending_seconds(goal)
            left = training_ends - elapsed
            hopeless = not self._seen and len(self._refused) >= HOPELESS
            if left <= LEAST_BATCH * goal.seconds or hopeless or self._context.full():
                break
            if batch:
                self._model = self._fit(self._model.hyper, REFIT_EVALUATIONS)
            batch_seconds = goal.seconds / (BATCHES_TO_TARGET if goal.target else BATCHES)
            chosen, error = self._choose(goal, min(left, batch_seconds))
            if error < goal.target and batch > 1:
                break
            if not chosen:
                break  # the whole recording was replayed, or no other network can be compiled in time
            report = Progress(elapsed, goal.seconds, len(self._seen), error, "")
            self._train(chosen, began + training_ends, report, on_progress, began)
        self._model = self._calibrated(self._fit(self._model.hyper, LAST_EVALUATIONS))
        return self.outcome()

    def outcome(self) -> Collected:
        """The observations so far, and the models fitted to them."""
        joules = self._learn_joules() if counted(self._costs()) else None
        self._choose_targets()  # a run that was out of time at once has none
        model, count = joules or self._model, len(self._seen)
        few = max(few_factor(count), model.hyper.calibration) if count < CALIBRATED_FROM else 1.0
        error = few * expected_error(model, self._targets)
        return Collected(tuple(self._seen), error, self._thinking, tuple(self._refused), self._model, joules)

    def _costs(self) -> tuple[NormalizedCost, ...]:
        seen = normalized(self._seen, self._reference)
        return page_faults_in(seen).at_usual(seen)

    @property
    def _reference(self) -> Reference:
        """The condition that costs refer to, as the profile will have it."""
        plain = self._context.reference
        return with_slowdowns(plain, yardstick_readings(self._seen, plain.clock))

    def _ending_seconds(self, goal: Goal) -> float:
        """Seconds to keep for the last fit: twice the latest one, because it is more thorough and calibrated."""
        return LAST_FIT_SHARE * goal.seconds + (2 * self._fitting if self._context.clock is time.monotonic else 0.0)

    def _learn_joules(self) -> Additive:
        """The model of joules. Its search starts from the model of time, which guides profiling as in the paper."""
        started = time.monotonic()
        model = joules_learnt(self._costs(), self._reference, self._model.hyper, self._patience)
        self._thinking += time.monotonic() - started
        return model

    def _fit(self, hyper: Hyperparameters | None, evaluations: int) -> Additive:
        started = time.monotonic()
        data = data_of(self._costs(), self._reference)
        model = learn(data, hyper, evaluations if len(data) > FEWEST else 0, self._patience)
        self._fitting = time.monotonic() - started
        self._thinking += self._fitting
        return model

    def _calibrated(self, model: Additive) -> Additive:
        started = time.monotonic()
        model = calibrated(model, whole_networks(self._costs()))
        self._thinking += time.monotonic() - started
        return model

    def _choose(self, goal: Goal, seconds: float) -> tuple[list[Experiment], float]:
        """The experiments of the next batch, and the error expected before it."""
        started = time.monotonic()
        share = self._time_allocation = self._current_time_allocation(goal)
        self._sample(self._context.clock() + share.sampling * goal.seconds)
        pieces = [p for whole in self._pool[-share.networks :] for p in slices(whole.network, self._rng, 1)]
        drawn, used = self._drawn(self._pool, share.drawn * seconds)
        if "system" in self._context.trainers:
            wholes = [e.under("system") for e in self._pool if e.purpose == "network"]
            more, spent = self._drawn(wholes, share.plain * seconds)
            drawn, used = [*drawn, *more], used + spent
        if share.pieces:
            more, spent = self._drawn(pieces, share.pieces * seconds)
            drawn, used = [*drawn, *more], used + spent
        drawn += [] if share.plans else [e for e in self._source.opaque() if not self._compiling.is_compiled(e)]
        if share.plans or not (drawn or self._seen):
            planned = plan(self._model, self._candidates(), self._targets, self._seconds_of, _noise_of, seconds - used)
            chosen, error = [*drawn, *(e for e in planned.chosen if e not in drawn)], planned.expected_error
        else:
            chosen, error = drawn, expected_error(self._model, self._targets)
        self._thinking += time.monotonic() - started
        return chosen[: None if self._compiling.informed else COMPILED_FIRST], error

    def _current_time_allocation(self, goal: Goal) -> TimeAllocation:
        compiling = self._compiling.seconds_of_new(self._source.original()) if self._context.compiles else None
        whole_device = isinstance(self._source, DeviceSource)
        return time_allocation(goal.seconds, self._context.window_seconds, compiling, whole_device)

    def _drawn(self, pool: list[Experiment], seconds: float) -> tuple[list[Experiment], float]:
        """Random experiments that fit the seconds, expensive ones too, and their seconds.

        The planner trusts the model; these test it.
        """
        drawn: list[Experiment] = []
        used = 0.0
        steps = BatchTotals(self._model, bool(pool) and pool[0].system)([whole.network for whole in pool])
        for whole, step in zip(reversed(pool), reversed(steps), strict=True):
            cost = self._seconds_of(whole, float(step))
            fits = used + cost <= seconds and not self._compiling.is_compiled(whole)
            if fits and all(whole is not other for other in drawn) and self._possible(whole):
                drawn.append(whole)
                used += cost
        return drawn, used

    def _choose_targets(self) -> None:
        if not self._targets:
            original = self._source.original()
            count = getattr(self._source, "targets", TARGETS)
            wanted = [original, *(self._source.sample(self._rng) for _ in range(count))]
            plain = [e.under("system") for e in wanted[: len(wanted) // 2] if "system" in self._context.trainers]
            self._targets = [*wanted, *plain]
            self._pool.append(original)

    def _sample(self, until: float) -> None:
        self._choose_targets()
        fresh = 0
        while fresh < self._time_allocation.networks and (fresh < 2 or self._context.clock() < until):
            self._pool.append(self._source.sample(self._rng))
            fresh += 1

    def _candidates(self) -> list[Experiment]:
        found = self._source.opaque()
        # The system allocator's worker would compile everything again: the random networks are enough for it.
        allocators = ("tuned",) if self._context.compiles else tuple(self._context.trainers)
        for whole in self._pool[-PLANNED_FROM:]:
            # A lone layer's memory is new in each step, a network's is not: it would tell nothing of a user's loop.
            found += [whole.under(name) for name in (allocators if whole.purpose == "network" else ("tuned",))]
            found += slices(whole.network, self._rng, 2)
        return [e for e in found if self._possible(e)]

    def _possible(self, experiment: Experiment) -> bool:
        return self._context.memory.fits(experiment.network) and self._context.offers(experiment)

    def _seconds_of(self, experiment: Experiment, step_seconds: float) -> float:
        window, rounds = self._context.window_seconds, 1 if experiment.system else 1 + self._time_allocation.repeated
        trained = rounds * block_seconds(experiment.allocator, step_seconds, self._yardstick, window)
        return trained + self._compiling.seconds(experiment)

    def _train(
        self,
        chosen: list[Experiment],
        deadline: float,
        report: Progress,
        on_progress: Callable[[Progress], None],
        began: float,
    ) -> None:
        for number in range(ROUNDS):
            self._rng.shuffle(chosen)
            for experiment in self._repeated(chosen) if number else sorted(chosen, key=lambda e: e.system):
                now = self._context.clock()
                if now > deadline or self._context.full():
                    return
                doing = f"{experiment.purpose} of {len(experiment.network.layers)} layers"
                now_at = {"elapsed": now - began, "compile_seconds": self._compiling.spent}
                on_progress(replace(report, experiments=len(self._seen), doing=doing, **now_at))
                self._observe(experiment, chosen)

    def _repeated(self, chosen: list[Experiment]) -> list[Experiment]:
        """Experiments to train again. With the system's allocator networks differ more than rounds: none of those."""
        tuned = [e for e in chosen if not e.system]
        return tuned[: round(self._time_allocation.repeated * len(tuned))]

    def _observe(self, experiment: Experiment, chosen: list[Experiment]) -> None:
        guess = self._model.answer(experiment.network, experiment.system).seconds
        try:
            seen = self._context.observe(experiment, guess)
        except (VariantDied, VariantFailed) as error:
            self._refuse(experiment, error)
            chosen.remove(experiment)
            return
        if seen is not None:
            self._seen.append(seen)
            self._compiling.learn(seen)

    def _refuse(self, experiment: Experiment, error: VariantDied | VariantFailed) -> None:
        self._refused.append(f"{experiment.purpose} of {experiment.network.name or self._source.name}: {error}")
        self._pool = [e for e in self._pool if e.network != experiment.network]


def _noise_of(experiment: Experiment) -> float:
    variant = 0.0 if experiment.purpose == "network" else VARIANT_STDDEV**2
    rounds = 1 if experiment.system else ROUNDS
    return TYPICAL_SPREAD[experiment.allocator] ** 2 / rounds + variant + 0.01**2
