"""Processes that train a model as a user's script does, in turn with the yardstick in another process.

    start, import, build | warm up | yardstick | steps | yardstick | steps | ... | yardstick

While the yardstick is read, the process waits, so both meet the same machine (docs/decisions/0056). Where time is short
all of them start at once, and wait until it is their turn, with the library imported and the model built.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from statistics import median
from threading import Timer
from types import MappingProxyType
from typing import Any, NamedTuple

from ampere import runtimes
from ampere.core import Measurement, Meter, TrainingSetup, work
from ampere.core.measurement import (
    FIRST_PEAK_BYTES,
    PEAK_BYTES,
    PEAK_STEPS,
    YARDSTICK_EARLY,
    Window,
    windows_from_json,
)
from ampere.core.optimizers import OPTIMIZERS
from ampere.core.processes import end_group, how_it_ended, own_group, python_program
from ampere.core.setup import CPU
from ampere.devices import Device, VariantFailed, Yardstick
from ampere.devices.environment import worker_environment
from ampere.meters import CpuTimeMeter, watts_in
from ampere.runtimes.user_code import package_of
from ampere.storage.profile import Observation

from .experiment import Experiment, Workload

YARDSTICK_SHARE, YARDSTICK_SECONDS = 0.5, (0.08, 0.5)  # of a window's seconds, and between which limits
SPINNING_SECONDS = 0.02  # that threads of a process which waits still take a core, after its last step
TRAINING_SHARE = 0.45  # of the seconds of a process; the rest is the yardstick's, and some to spare
ROUND_SECONDS = 0.8
BARE = "import sys; sys.path[:] = [p for p in sys.path if p]\n"  # without the current folder
READY = b"ready"  # as a plain loop says it that waits; its module imports PyTorch, so it is not imported here
GRACE_SECONDS = 300.0  # for imports, building and the first steps of a plain loop
LOADED_WALL_PER_BUSY = 1.25
BUILT_AT_ONCE_BYTES = 1 << 29  # of weights, up to which several processes build a model before their turn
PEAK_STEPS_OF_FIRST = 8  # of the first process at most, for its peak alone: memory grows for some steps
SHOWN = (PEAK_BYTES, FIRST_PEAK_BYTES, PEAK_STEPS)  # what a plain loop answers, and a measurement keeps as conditions


class Effort(NamedTuple):
    """How long to train, in how many fresh processes."""

    seconds: float
    fewest: int = 3
    most: int = 8
    ends_sharply: bool = False  # the seconds are all that training may take, without starting Python

    @property
    def each(self) -> float | None:
        """Seconds of training in each process, at most."""
        return TRAINING_SHARE * self.seconds / self.most if self.ends_sharply else None


def can_be_plain(experiment: Experiment, setup: TrainingSetup, device: Device) -> bool:
    """Whether a script without a yardstick and a meter can train it: by its own code, here, with modelled joules."""
    modelled = device.is_local and watts_in(device.meter.scope) is not None and setup.on == CPU
    return modelled and experiment.system and setup.runtime == "torch" and "factory" in experiment.workload


def plain_rounds(
    experiment: Experiment,
    setup: TrainingSetup,
    effort: Effort,
    device: Device,
    watts_per_core: float,
    on_round: Callable[[float, int], None],
) -> list[Observation]:
    """One observation of each process; `on_round` is called before each with the seconds spent and its number."""
    found: list[Observation] = []
    with ExitStack() as ending:
        waiting = started_at_once(experiment, setup, effort, ending)
        worker = device.worker("tuned", watts_per_core)
        later = partial(PlainProcess, experiment, setup, effort, ending)
        readings: list[Yardstick] = []
        least, most = YARDSTICK_SECONDS

        def read(window_seconds: float) -> None:
            seconds = min(max(YARDSTICK_SHARE * window_seconds, least), most)
            time.sleep(SPINNING_SECONDS * (setup.threads > 1))
            readings.append(worker.yardstick(seconds, setup.threads, setup.runtime, count=False))

        read(0.0)  # the worker starts while the processes do, and before any of them trains
        for process in waiting:
            process.wait()
        for answer in in_turn(waiting, later, effort, on_round, read):
            found.append(experiment.observed(_measurement(answer, readings, experiment, setup, watts_per_core)))
    return found


def started_at_once(
    experiment: Experiment, setup: TrainingSetup, effort: Effort, ending: ExitStack
) -> list[PlainProcess]:
    """The processes that wait for their turn where time is short; the first one trains until its memory is steady."""
    return [
        PlainProcess(experiment, setup, effort, ending, peak_steps=0 if number else PEAK_STEPS_OF_FIRST)
        for number in range(effort.most * effort.ends_sharply)
    ]


def build_in_turn(experiment: Experiment) -> bool:
    """Whether several of them at once may take too much memory: large models, and steps with data of their own."""
    amounts = (work(layer) for layer in experiment.network.layers)
    weights = sum(max(amount.parameters, amount.weights) for amount in amounts)
    return bool(experiment.workload.get("step")) or 4 * weights > BUILT_AT_ONCE_BYTES


def in_turn(
    waiting: list[PlainProcess],
    later: Callable[[], PlainProcess],
    effort: Effort,
    on_round: Callable[[float, int], None] = lambda spent, number: None,
    between: Callable[[float], None] = lambda seconds: None,
) -> Iterator[dict[str, Any]]:
    """The answer of each process that there is time for: of those that wait, and then of others that start `later`.

    While it trains, `between` is called before each window and after the last, with the seconds of the one before.
    """
    began, trained, done = time.monotonic(), 0.0, 0
    while done < effort.most:
        spent = trained if effort.ends_sharply else time.monotonic() - began
        next_one = trained / max(1, done) if effort.ends_sharply else 0.0
        if spent + next_one > effort.seconds and done >= effort.fewest:
            return
        on_round(spent, done + 1)
        process, window_began = waiting.pop(0) if waiting else later(), math.inf  # before the first it builds the model
        for _ in process.turns():
            between(max(0.0, time.monotonic() - window_began))
            window_began = time.monotonic()
        trained, done = trained + float(process.answer["elapsed_seconds"]), done + 1
        yield process.answer


class PlainProcess:
    """A process that has built the model, and trains it when it is asked to.

    It is a bare script where that can train what is asked, and else, or `with_ampere`, one that imports Ampere.
    """

    def __init__(
        self,
        experiment: Experiment,
        setup: TrainingSetup,
        effort: Effort,
        ending: ExitStack,
        changes: Mapping[str, Any] = MappingProxyType({}),
        peak_steps: int = 0,
        with_ampere: bool = False,
    ) -> None:
        limits: dict[str, Any] = {"seconds": ROUND_SECONDS, "at_most": effort.each, "peak_steps": peak_steps}
        limits["build_in_turn"] = effort.ends_sharply and build_in_turn(experiment)
        task = {"workload": dict(experiment.workload), "setup": setup.to_json(), "changes": dict(changes), **limits}
        self._with_ampere = [*python_program("ampere.runtimes.plain_loop"), json.dumps(task)]
        self._environment = worker_environment(os.environ, experiment.allocator, setup.threads)
        bare = None if with_ampere or changes else bare_task(experiment.workload, setup)
        self._ending, self._is_bare = ending, bare is not None
        if bare is None:
            self._start(self._with_ampere)
        else:
            self._start([sys.executable, "-c", BARE + bare_script(), json.dumps({**bare, **limits})])

    def _start(self, command: list[str]) -> None:
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self._environment, **own_group()
        )
        self._waits, self._printed = False, b""
        self._ending.callback(_end, self._process)

    def wait(self) -> None:
        """Until it has built the model, so that it disturbs no other process; or has ended."""
        with self._in_time():
            self._waits = self._waits or self._waits_again()

    def trained(self) -> dict[str, Any]:
        """What the process answers once it has trained the model, without a pause."""
        for _ in self.turns():
            pass
        return self.answer

    def turns(self) -> Iterator[None]:
        """Train the model, and stop before each window and after the last, while others have a turn."""
        yield from self._until_it_ends()
        answer = self._last_answer()
        if self._is_bare and "windows" not in answer:
            self._is_bare = False
            self._start(self._with_ampere)
            yield from self._until_it_ends()
            answer = self._last_answer()
        if "error" in answer:
            raise VariantFailed(f"the model cannot be trained: {answer['error']}")
        if "windows" not in answer:
            raise VariantFailed(
                f"the process that trained the model ended without an answer ({how_it_ended(self._process.returncode)})"
            )
        self.answer: dict[str, Any] = answer

    def _until_it_ends(self) -> Iterator[None]:
        self.wait()
        with self._in_time():
            self._go_on()
            while self._waits_again():
                yield
                self._go_on()

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        late = Timer(GRACE_SECONDS, end_group, [self._process])
        late.start()
        try:
            yield
            if late.finished.is_set():
                raise VariantFailed(f"training did not end within {GRACE_SECONDS:g} s: give a smaller batch")
        finally:
            late.cancel()

    def _go_on(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, as its answer says
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()

    def _waits_again(self) -> bool:
        """Whether it waits for its turn once more; what it printed last is kept."""
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            if line.strip() == READY:
                return True
            self._printed = line
        return False

    def _last_answer(self) -> dict[str, Any]:
        self._process.wait()
        try:
            answer: dict[str, Any] = json.loads(self._printed)
            return answer
        except ValueError:
            return {}


def bare_task(workload: Workload, setup: TrainingSetup) -> dict[str, Any] | None:
    """What a script without Ampere is asked to train; None where it cannot: parts of models, cards, half precision."""
    known = {"factory", "arguments", "inputs", "step", "calls"}
    if setup.on != CPU or setup.dtype != "float32" or not known.issuperset(workload):
        return None
    usual: Workload = {"arguments": {}, "inputs": None, "step": False, "calls": 1}
    asked = {**usual, **{k: v for k, v in workload.items() if v is not None}}
    place, _, name = str(asked["factory"]).rpartition(":")
    if place.endswith(".py") and (package := package_of(Path(place).resolve())):
        asked |= {"factory": f"{package.module}:{name}", "folder": str(package.folder)}
    return {**asked, "optimizer": OPTIMIZERS[setup.optimizer].made_by["torch"], "threads": setup.threads}


@cache
def bare_script() -> str:
    return Path(runtimes.__file__).with_name("plain_script.py").read_text(encoding="utf-8")


def _end(process: subprocess.Popen[bytes]) -> None:
    end_group(process)
    for pipe in (process.stdin, process.stdout):
        with suppress(BrokenPipeError):
            if pipe:
                pipe.close()


def _measurement(
    answer: dict[str, Any],
    readings: list[Yardstick],
    experiment: Experiment,
    setup: TrainingSetup,
    watts_per_core: float,
) -> Measurement:
    """The windows of a process, with the newest readings: those of the yardstick around each."""
    target = [w._replace(joules=w.busy_seconds * watts_per_core) for w in windows_from_json(answer["windows"])]
    loaded = median(w.wall_seconds / max(w.busy_seconds, 1e-9) for w in target) > LOADED_WALL_PER_BUSY
    first, last = (loss if math.isfinite(loss) else None for loss in answer["loss"])
    flags = {"loaded": setup.threads == 1 and loaded, "nonfinite_loss": None in (first, last)}
    beside = readings[-len(target) - 1 :]
    return Measurement(
        target=tuple(target),
        yardstick=tuple(_window(reading, watts_per_core) for reading in beside),
        meter=Meter(**CpuTimeMeter(watts_per_core).describe()),
        allocator=experiment.allocator,
        parameters=int(answer["parameters"]),
        loss=(first, last),
        conditions={**{name: float(answer[name]) for name in SHOWN if answer.get(name)}, **_early(beside)},
        flags=tuple(flag for flag, applies in flags.items() if applies),
    )


def _early(readings: list[Yardstick]) -> dict[str, float]:
    """What a yardstick that is read in a loop would take alone, as it is in the blocks of a profile."""
    found = [reading.early_seconds for reading in readings if reading.early_seconds]
    return {YARDSTICK_EARLY: median(found)} if found else {}


def _window(reading: Yardstick, watts_per_core: float) -> Window:
    busy = reading.busy_seconds * reading.steps
    return Window(reading.steps, reading.wall_seconds * reading.steps, busy, busy * watts_per_core)
