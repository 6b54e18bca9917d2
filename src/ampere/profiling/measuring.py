"""Training a model itself: the truth that estimates are held against.

    a plain process, here         [yardstick]  warm up | steps | steps | ... | steps  [yardstick]
    elsewhere, or by a counter     warm up | yardstick | steps | yardstick | steps | ... | yardstick

The yardstick in brackets is read in another process. Each round is a process of its own: processes differ (where memory
lies, what the allocator does), so there are several.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from ampere.core import Meter, TrainingSetup
from ampere.core.display import frame, html_table
from ampere.core.errors import DeviceError
from ampere.core.measurement import WALL, Window, clock_of, windows_from_json
from ampere.core.processes import how_it_ended, python_program
from ampere.core.units import joules, seconds
from ampere.devices import Device, VariantFailed, Worker, Yardstick
from ampere.devices.environment import worker_environment
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
from ampere.meters import CpuTimeMeter, watts_in
from ampere.storage.profile import Observation, Profile

from .experiment import Experiment
from .overheads import OVERHEADS, Timed

PAIRING = {"system": "window", "tuned": "step"}
FIRST_GUESS = 20  # steps of the first round, before it is known how long one takes
ROUNDS_AT_LEAST, ROUNDS_AT_MOST = 3, 8
ROUND_SECONDS = 0.8
YARDSTICK_SECONDS = 0.3
GRACE_SECONDS = 300.0  # for imports, building and the first steps of a plain loop
LOADED_WALL_PER_BUSY = 1.25


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
    if _in_plain_processes(experiment, setup, device):
        measured = _plain_rounds(experiment, setup, seconds, device, watts_per_core, nominal, on_progress)
        return _at(nominal, measured, profile)
    elapsed, seen, steps = 0.0, [], FIRST_GUESS
    for number in range(ROUNDS_AT_MOST):
        if elapsed > seconds and number >= ROUNDS_AT_LEAST:
            break
        on_progress(MeasureProgress(elapsed, seconds, number + 1))
        with device.fresh(watts_per_core, number + 1) as workers:
            worker = workers[experiment.allocator]
            began = worker.clock()
            nominal = nominal or _nominal(worker.yardstick(0.5, setup.threads, setup.runtime), setup.threads)
            seen += _round(experiment, setup, worker, nominal, steps)
            elapsed += worker.clock() - began
        if seen:
            steps = max(8, min(400, round(ROUND_SECONDS / seen[-1].measurement.wall_seconds)))
    if not seen:
        raise DeviceError("no round gave a usable figure: close other programs and try again")
    assert nominal is not None
    return _at(nominal, normalized(seen, nominal)[0], profile)


def _at(nominal: Reference | None, measured: NormalizedCost, profile: Profile | None) -> NormalizedCost:
    if profile is None or nominal is None:
        return measured
    return to_reference(measured, nominal, drift_share_in(costs_of(profile), reference_of(profile)).part)


def _in_plain_processes(experiment: Experiment, setup: TrainingSetup, device: Device) -> bool:
    """Whether a script without a yardstick and a meter can train it: by its own code, here, with modelled joules."""
    modelled = device.is_local and watts_in(device.meter.scope) is not None
    return modelled and experiment.system and setup.runtime == "torch" and "factory" in experiment.workload


def _plain_rounds(
    experiment: Experiment,
    setup: TrainingSetup,
    seconds: float,
    device: Device,
    watts_per_core: float,
    nominal: Reference | None,
    on_progress: Callable[[MeasureProgress], None],
) -> NormalizedCost:
    """The cost of a step from several plain processes, each between two readings of the yardstick."""
    began, ratios, yardsticks = time.monotonic(), list[float](), list[float]()
    rows, losses = list[Window](), list[float]()
    worker = device.worker("tuned", watts_per_core)
    clock = clock_of(setup.threads)
    before = worker.yardstick(YARDSTICK_SECONDS, setup.threads, setup.runtime).seconds(setup.threads)
    while len(ratios) < ROUNDS_AT_MOST:
        elapsed = time.monotonic() - began
        if elapsed > seconds and len(ratios) >= ROUNDS_AT_LEAST:
            break
        on_progress(MeasureProgress(elapsed, seconds, len(ratios) + 1))
        found = _plain_process(experiment, setup)
        after = worker.yardstick(YARDSTICK_SECONDS, setup.threads, setup.runtime).seconds(setup.threads)
        windows = windows_from_json(found["windows"])
        ratios.append(2 * median(w.per_iteration(clock) for w in windows) / (before + after))
        yardsticks.append((before + after) / 2)
        rows += windows
        losses += found["loss"]
        before = after
    reference = nominal or Reference(median(yardsticks), clock=clock)
    cost = median(ratios) * reference.seconds
    wall_per_busy = median(w.wall_seconds / w.busy_seconds for w in rows)
    wall, busy = (cost, cost / wall_per_busy) if clock == WALL else (cost * wall_per_busy, cost)
    flags = {
        "loaded": setup.threads == 1 and wall_per_busy > LOADED_WALL_PER_BUSY,
        "nonfinite_loss": not all(map(math.isfinite, losses)),
    }
    return NormalizedCost(
        experiment.network,
        experiment.purpose,
        experiment.stage,
        experiment.allocator,
        rounds=tuple(ratios),
        yardsticks=tuple(yardsticks),
        joules=busy * watts_per_core,
        joules_rounds=(),
        seconds=wall,
        busy_seconds=busy,
        iterations=sum(w.iterations for w in rows),
        meter=Meter(**CpuTimeMeter(watts_per_core).describe()),
        flags=tuple(flag for flag, applies in flags.items() if applies),
        clock=clock,
    )


def _plain_process(experiment: Experiment, setup: TrainingSetup) -> dict[str, Any]:
    task = {"workload": dict(experiment.workload), "setup": setup.to_json(), "seconds": ROUND_SECONDS}
    command = [*python_program("ampere.runtimes.plain_loop"), json.dumps(task)]
    environment = worker_environment(os.environ, experiment.allocator, setup.threads)
    try:
        ran = subprocess.run(command, stdout=subprocess.PIPE, env=environment, timeout=GRACE_SECONDS)
        answer: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        raise VariantFailed(f"training did not end within {GRACE_SECONDS:g} s: give a smaller batch") from None
    except (ValueError, IndexError):
        raise VariantFailed(
            f"the process that trained the model ended without an answer ({how_it_ended(ran.returncode)})"
        ) from None
    if "error" in answer:
        raise VariantFailed(f"the model cannot be trained: {answer['error']}")
    return answer


def _nominal(yardstick: Yardstick, threads: int) -> Reference:
    return Reference(yardstick.seconds(threads), yardstick.joules, clock_of(threads))


def _round(
    experiment: Experiment, setup: TrainingSetup, worker: Worker, nominal: Reference, steps: int
) -> list[Observation]:
    found = worker.block(
        experiment.workload,
        setup,
        iterations=steps,
        warmup=5,
        pairing=PAIRING[experiment.allocator],
        isolation="inline",
    )
    return [experiment.observed(found)] if usable(found, nominal) else []
