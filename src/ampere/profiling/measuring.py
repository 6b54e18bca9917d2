"""Training a model itself: the truth that estimates are held against.

    warm up | yardstick | steps | yardstick | steps | ... | yardstick

Here, where a plain process trains it, another one reads the yardstick, and both take turns. Each round is a process of
its own: processes differ (where memory lies, what the allocator does), so there are several.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from ampere.core import Meter, TrainingSetup
from ampere.core.display import frame, html_table
from ampere.core.errors import DeviceError
from ampere.core.measurement import YARDSTICK_EARLY, clock_of, seconds_per_iteration
from ampere.core.units import joules, seconds
from ampere.devices import Device, Worker, Yardstick
from ampere.estimation.estimate import COVERS, Estimate
from ampere.estimation.fitting import drift_share_in
from ampere.estimation.normalization import (
    NormalizedCost,
    Reference,
    costs_of,
    normalized,
    reference_of,
    to_reference,
    usable,
)
from ampere.storage.profile import Observation, Profile

from .experiment import Experiment
from .overheads import OVERHEADS, Timed
from .plain_processes import ROUND_SECONDS, Effort, can_be_plain, plain_rounds

PAIRING = {"system": "window", "tuned": "step"}
FIRST_GUESS = 20  # steps of the first round, before it is known how long one takes
FEWEST_STEPS, MOST_STEPS = 8, 400  # of a round in a worker
WARMUP = 5


@dataclass(frozen=True)
class MeasuredStep:
    """What an iteration of a model costs, as measured by training it."""

    network: str
    joules: float
    seconds: float
    busy_seconds: float
    spread: float | None  # relative, of the rounds; None of a single one
    rounds: int
    iterations: int
    flags: tuple[str, ...]
    meter: Meter
    allocator: str
    setup: TrainingSetup
    batch: int
    device: str
    own_code: bool  # else it was built from the description of its layers
    estimate: Estimate | None = None  # of a stored profile, where there is one
    overheads: tuple[Timed, ...] = ()  # of data and evaluation, where they were timed

    @classmethod
    def of(
        cls,
        measured: NormalizedCost,
        network: str,
        setup: TrainingSetup,
        batch: int,
        device: str,
        own_code: bool,
        estimate: Estimate | None = None,
        overheads: tuple[Timed, ...] = (),
    ) -> MeasuredStep:
        return cls(
            network=network,
            joules=measured.joules,
            seconds=measured.seconds,
            busy_seconds=measured.busy_seconds,
            spread=measured.spread,
            rounds=len(measured.rounds),
            iterations=measured.iterations,
            flags=measured.flags,
            meter=measured.meter,
            allocator=measured.allocator,
            setup=setup,
            batch=batch,
            device=device,
            own_code=own_code,
            estimate=estimate,
            overheads=overheads,
        )

    @property
    def difference(self) -> float | None:
        """How far the estimate is from what was measured, relative."""
        return self.estimate.joules / self.joules - 1 if self.estimate else None

    def to_json(self) -> dict[str, Any]:
        timed = {timed.what: timed.to_json() for timed in self.overheads}
        return {
            "network": self.network,
            "joules_per_iteration": self.joules,
            "seconds_per_iteration": self.seconds,
            "busy_seconds_per_iteration": self.busy_seconds,
            "spread": self.spread,
            "rounds": self.rounds,
            "iterations": self.iterations,
            "flags": list(self.flags),
            "meter": self.meter.to_json(),
            "allocator": self.allocator,
            "setup": self.setup.to_json(),
            "batch": self.batch,
            "device": self.device,
            "own_code": self.own_code,
            "covers": COVERS,
            "estimate": self.estimate.to_json() if self.estimate else None,
            "difference": self.difference,
            **{what: timed.get(what) for what in OVERHEADS},
        }

    def to_frame(self) -> Any:
        """A pandas DataFrame: what was measured, and what was estimated."""
        return frame(self._rows())

    def _repr_html_(self) -> str:
        return html_table(f"{self.network}: {joules(self.joules)} per iteration, {seconds(self.seconds)}", self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        setup = {**self.setup.to_json(), "batch": self.batch, "device": self.device}
        found = [{"what": "measured", "joules": self.joules, "seconds": self.seconds, **setup}]
        if self.estimate:
            found += [{"what": "estimated", "joules": self.estimate.joules, "seconds": self.estimate.seconds, **setup}]
        return found


@dataclass(frozen=True)
class MeasureProgress:
    elapsed: float
    seconds: float
    round: int


def measure_experiment(
    experiment: Experiment,
    setup: TrainingSetup,
    seconds: float,
    device: Device,
    watts_per_core: float,
    profile: Profile | None = None,
    on_progress: Callable[[MeasureProgress], None] = lambda _: None,
) -> NormalizedCost:
    """The cost of an iteration, in the condition that the profile refers to, or as it is now where there is none."""
    nominal = reference_of(profile) if profile else None
    seen, nominal = rounds_of(experiment, setup, Effort(seconds), device, watts_per_core, nominal, on_progress)
    return _at(nominal, normalized(seen, nominal)[0], profile)


def rounds_of(
    experiment: Experiment,
    setup: TrainingSetup,
    effort: Effort,
    device: Device,
    watts_per_core: float,
    nominal: Reference | None,
    on_progress: Callable[[MeasureProgress], None],
    step_seconds: float | None = None,
) -> tuple[list[Observation], Reference]:
    """An observation of each fresh process that trained it, and the condition that they refer to.

    `step_seconds` is a guess, where there is one.
    """

    def report(elapsed: float, number: int) -> None:
        on_progress(MeasureProgress(elapsed, effort.seconds, number))

    if can_be_plain(experiment, setup, device):
        seen = plain_rounds(experiment, setup, effort, device, watts_per_core, report)
        clock = clock_of(setup.threads)
        made = [o.measurement for o in seen]
        alone = (m.conditions.get(YARDSTICK_EARLY) or seconds_per_iteration(m.yardstick, clock) for m in made)
        nominal = nominal or Reference(median(alone), clock=clock)
        seen = [o for o in seen if usable(o.measurement, nominal)]
    else:
        seen, nominal = _rounds_of_workers(
            experiment, setup, effort, device, watts_per_core, nominal, report, step_seconds
        )
    if not seen:
        raise DeviceError("no round gave a usable figure: close other programs and try again")
    return seen, nominal


def _rounds_of_workers(
    experiment: Experiment,
    setup: TrainingSetup,
    effort: Effort,
    device: Device,
    watts_per_core: float,
    nominal: Reference | None,
    report: Callable[[float, int], None],
    step_seconds: float | None,
) -> tuple[list[Observation], Reference]:
    elapsed, seen = 0.0, list[Observation]()
    steps = _steps(step_seconds, effort) if step_seconds else FIRST_GUESS
    for number in range(effort.most):
        if elapsed > effort.seconds and number >= effort.fewest:
            break
        report(elapsed, number + 1)
        with device.fresh(watts_per_core, number + 1) as workers:
            worker = workers[experiment.allocator]
            began = worker.clock()
            nominal = nominal or _nominal(worker.yardstick(0.5, setup.threads, setup.runtime), setup.threads)
            seen += _round(experiment, setup, worker, nominal, steps)
            elapsed += worker.clock() - began
        if seen:
            steps = _steps(seen[-1].measurement.wall_seconds, effort)
    assert nominal is not None
    return seen, nominal


def _steps(step_seconds: float, effort: Effort) -> int:
    fewest = 1 if effort.ends_sharply else FEWEST_STEPS
    return max(fewest, min(MOST_STEPS, round(min(ROUND_SECONDS, effort.each or math.inf) / step_seconds)))


def _at(nominal: Reference, measured: NormalizedCost, profile: Profile | None) -> NormalizedCost:
    if profile is None:
        return measured
    return to_reference(measured, nominal, drift_share_in(costs_of(profile), reference_of(profile)).part)


def _nominal(yardstick: Yardstick, threads: int) -> Reference:
    return Reference(yardstick.seconds(threads), yardstick.joules, clock_of(threads))


def _round(
    experiment: Experiment, setup: TrainingSetup, worker: Worker, nominal: Reference, steps: int
) -> list[Observation]:
    found = worker.block(
        experiment.workload,
        setup,
        iterations=steps,
        warmup=min(WARMUP, steps),
        pairing=PAIRING[experiment.allocator],
        isolation="inline",
    )
    return [experiment.observed(found)] if usable(found, nominal) else []
