"""What an estimate of a step does not cover, timed by itself: loading data, evaluating, accumulating, checkpoints.

    host                                         a process of its own
    timed({"what": "data", ...})  --arguments-->  warm up one batch, then batches until the seconds are over
                                  <--one line---  {"batches": ..., "seconds": ..., "cpu_seconds": ...}

CPU seconds include those of a loader's own worker processes. Parts that train or run the model are timed in turns with
its training step: what comes out is their cost in steps, which does not depend on how fast the machine is just then.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, stdev
from typing import Any

from ampere.core import Meter, TrainingSetup
from ampere.core.errors import DeviceError, ModelError, UsageError
from ampere.core.processes import python_program
from ampere.core.setup import CPU
from ampere.devices.environment import worker_environment
from ampere.meters import CpuTimeMeter

OVERHEADS = ("data", "evaluation")
GRACE_SECONDS = 120.0  # for imports, and for a first batch that is slow to come


@dataclass(frozen=True)
class Timed:
    """Per batch, as fast or slow as the machine was just then."""

    what: str
    joules: float
    seconds: float
    cpu_seconds: float
    batches: int
    meter: Meter
    epoch_batches: int | None = None  # of a loader that ended, or says how long it is
    shape: tuple[int, ...] = ()  # of the first tensor in the loader's first batch; () where it holds none
    overlaps: bool = False  # whether the loader's own processes load while others train

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "meter": self.meter.to_json()}


def time_loading(loader: str, batch: int, seconds: float, watts_per_core: float) -> Timed:
    """`file.py:function` that returns what a training loop would iterate over, or a data set such as `mnist:FOLDER`."""
    task = {"what": "data", "loader": loader, "batch": batch, "seconds": seconds}
    return _timed(task, TrainingSetup(), "system", watts_per_core)


def time_evaluating(
    name: str, workload: Mapping[str, Any], setup: TrainingSetup, seconds: float, watts_per_core: float
) -> Timed:
    """Forward passes only, without gradients, in evaluation mode, of a model by its own code."""
    _refuse_untimed(setup, "evaluation")
    if "factory" not in workload:
        raise ModelError(f"evaluation of {name} needs its own code: name the model as file.py:function")
    task = {"what": "evaluation", "name": name, "workload": dict(workload), "seconds": seconds}
    return _timed({**task, "setup": setup.to_json()}, setup, "system", watts_per_core)


def _timed(task: dict[str, Any], setup: TrainingSetup, allocator: str, watts_per_core: float) -> Timed:
    answer = _in_a_process(task, worker_environment(os.environ, allocator, setup.threads))
    batches = answer["batches"]
    cpu_seconds = answer["cpu_seconds"] / batches
    return Timed(
        what=task["what"],
        joules=cpu_seconds * watts_per_core,
        seconds=answer["seconds"] / batches,
        cpu_seconds=cpu_seconds,
        batches=batches,
        meter=Meter(**CpuTimeMeter(watts_per_core).describe()),
        epoch_batches=answer.get("epoch_batches"),
        shape=tuple(answer.get("shape", ())),
        overlaps=bool(answer.get("overlaps")),
    )


@dataclass(frozen=True)
class InSteps:
    """The cost of one part of a run, in training steps of the same model."""

    joules: float  # by CPU time
    seconds: float  # by the clock
    stddev: float  # of the joules, between rounds

    @classmethod
    def of(cls, rounds: Sequence[Sequence[float]]) -> InSteps:
        """From the CPU and wall seconds of the part over those of a step, of each round."""
        busy = [row[0] for row in rounds]
        spread = stdev(busy) / len(busy) ** 0.5 if len(busy) > 1 else 0.5 * busy[0]
        return cls(median(busy), median(row[1] for row in rounds), spread)

    @property
    def beyond_a_step(self) -> InSteps:
        """What is left without the step that was done with it."""
        return InSteps(max(0.0, self.joules - 1), max(0.0, self.seconds - 1), self.stddev)


def time_parts(
    name: str,
    workload: Mapping[str, Any],
    setup: TrainingSetup,
    parts: Mapping[str, int],
    seconds: float,
    loader: str | None = None,
    batch: int = 1,
) -> dict[str, InSteps]:
    """`evaluation` (a batch), `accumulation` (so many batches and an update), `checkpoint` (one), in steps.

    `loading` is a batch of the loader where steps are between batches: what it leaves in the processor's caches, and
    what it takes from them, is in it.
    """
    _refuse_untimed(setup, " and ".join(parts))
    task = {"what": "parts", "name": name, "workload": dict(workload), "parts": dict(parts), "seconds": seconds}
    environment = worker_environment(os.environ, "system", setup.threads)
    answer = _in_a_process({**task, "setup": setup.to_json(), "loader": loader, "batch": batch}, environment)
    found = {part: InSteps.of(rounds) for part, rounds in answer["rounds"].items()}
    return {part: cost.beyond_a_step if part == "loading" else cost for part, cost in found.items()}


def can_time_parts(setup: TrainingSetup) -> bool:
    """They are timed by the CPU's clock, which says nothing of an accelerator, and without autocast."""
    return setup.on == CPU and not setup.dtype.startswith("autocast")


def _refuse_untimed(setup: TrainingSetup, what: str) -> None:
    if setup.on != CPU:
        raise UsageError(f"{what} is timed on the CPU only, not on {setup.on}: leave it out, or leave out --on")
    if setup.dtype.startswith("autocast"):
        raise UsageError(f"{what} is timed without autocast: leave it out, or use --dtype float32 or bfloat16")


def _in_a_process(task: dict[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    command = [*python_program("ampere.profiling.overheads_process"), json.dumps(task)]
    try:
        ran = subprocess.run(
            command, stdout=subprocess.PIPE, env=dict(environment), timeout=3 * task["seconds"] + GRACE_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise DeviceError(f"timing {task['what']} did not end: try it in Python by itself first") from None
    try:
        answer: dict[str, Any] = json.loads(ran.stdout)
    except ValueError:
        raise DeviceError(f"timing {task['what']} ended the process (exit code {ran.returncode})") from None
    if "error" in answer:
        raise ModelError(answer["error"])
    return answer
