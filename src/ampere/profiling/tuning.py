"""Which changes make training cheaper: paired processes, with and without each change, and a second run that confirms.

    screening    [without | with]  [with | without]  ...    each change in turn, as often as the time allows
    confirming   the same again, for those that seemed to save: only this run's figures are reported

Two processes of a pair start together and train in turn, window by window: the machine's drift cancels in their ratio.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import zip_longest
from statistics import NormalDist, mean, median, variance
from types import MappingProxyType
from typing import Any, NamedTuple

from ampere.core import KINDS, Meter, Network, TrainingSetup
from ampere.core.display import frame, html_table
from ampere.core.measurement import windows_from_json
from ampere.core.optimizers import OPTIMIZERS
from ampere.core.protocol import THREAD_VARIABLES
from ampere.core.units import joules, percent
from ampere.devices import VariantFailed
from ampere.devices.environment import TUNED
from ampere.estimation.interval import Z90

from .experiment import Experiment, Workload
from .plain_processes import TRAINING_SHARE, Effort, PlainProcess

FEWEST_PAIRS, MOST_PAIRS = 3, 6  # of a change, in each of the two runs
SCREENING_SHARE = 0.6  # of the seconds
PAIR_SPREAD, PRIOR_PAIRS = 0.07, 3.0  # relative spread of a pair's ratio before any was seen, and how much it counts
PROMISING = 1.0  # standard errors of saving, from which on a change is tried again
TRAINED_SECONDS = 1.3  # of each process, at most
FUSED = ("sgd", "momentum", "adam", "adamw")  # optimizers whose update PyTorch has in one operation on a CPU


class Change(NamedTuple):
    """Something to try: how a process is changed, and what a user writes for it."""

    name: str
    words: str
    paste: tuple[str, ...]
    allocator: str | None = None
    threads: int | None = None
    changes: Mapping[str, Any] = MappingProxyType({})
    batch_factor: int = 1
    alters: str = ""  # what is learnt, where it changes that: tried only if the user allows it


ALLOWABLE = ("bfloat16", "compile", "batch")


def changes_for(network: Network, setup: TrainingSetup, cores: int, allowed: Sequence[str] = ()) -> list[Change]:
    """The changes that may make sense for a network in a setup; those that alter what is learnt only if `allowed`."""
    optimizer = OPTIMIZERS[setup.optimizer].made_by["torch"][0].rpartition(":")[2]
    found = [
        Change(
            "allocator",
            "the allocator keeps its memory",
            tuple(f"export {name}={value}" for name, value in TUNED.items()),
            allocator="tuned",
        )
    ]
    for threads in sorted({1, cores} - {setup.threads}):
        paste = (*(f"export {name}={threads}" for name in THREAD_VARIABLES), f"torch.set_num_threads({threads})")
        found.append(Change(f"threads {threads}", f"{threads} thread{'s' * (threads > 1)}", paste, threads=threads))
    if any(layer.kind.startswith("conv") and len(KINDS[layer.kind].shape_out(layer)) == 4 for layer in network.layers):
        lines = tuple(f"{what} = {what}.to(memory_format=torch.channels_last)" for what in ("model", "images"))
        found.append(Change("channels_last", "images, weights channels last", lines, changes={"channels_last": True}))
    if setup.optimizer in FUSED:
        lines = (f"optimizer = torch.optim.{optimizer}(model.parameters(), ..., fused=True)",)
        found.append(Change("fused", "a fused optimizer", lines, changes={"optimizer": {"fused": True}}))
    if OPTIMIZERS[setup.optimizer].made_by["torch"][0].startswith("torch.optim"):
        lines = (f"optimizer = torch.optim.{optimizer}(model.parameters(), ..., foreach=True)",)
        found.append(Change("foreach", "all parameters in one update", lines, changes={"optimizer": {"foreach": True}}))
    return [*found, *(change for change in _altering() if change.name in allowed)]


def _altering() -> list[Change]:
    autocast = 'with torch.autocast("cpu", dtype=torch.bfloat16): loss = ...'
    return [
        Change("bfloat16", "bfloat16 by autocast", (autocast,), changes={"autocast": True}, alters="precision"),
        Change("compile", "a compiled model", ("model = torch.compile(model)",), changes={"compile": True}),
        Change("batch", "batches twice as large", ("batch_size *= 2",), batch_factor=2, alters="the batch"),
    ]


@dataclass(frozen=True)
class Advice:
    """What one change saves, by the second of two runs."""

    change: str
    words: str
    saving: float  # share of the joules of a sample; negative where it costs more
    interval: tuple[float, float]  # 90 %
    joules_saved: float  # in an iteration of the original batch
    probability: float  # that it saves anything
    confirmed: bool  # the second run shows it as well, with its whole interval
    pairs: int
    paste: tuple[str, ...] = ()
    alters: str = ""
    failed: str = ""  # why it could not be tried

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "interval": list(self.interval), "paste": list(self.paste)}


@dataclass(frozen=True)
class Tuning:
    """What was tried on a model, what saves most first."""

    network: str
    joules: float  # of an iteration as it is
    setup: TrainingSetup
    batch: int
    meter: Meter
    tried: tuple[Advice, ...]

    @property
    def advice(self) -> tuple[Advice, ...]:
        """The changes that save, as both runs say."""
        return tuple(one for one in self.tried if one.confirmed)

    def to_json(self) -> dict[str, Any]:
        return {
            "network": self.network,
            "joules_per_iteration": self.joules,
            "setup": self.setup.to_json(),
            "batch": self.batch,
            "meter": self.meter.to_json(),
            "tried": [one.to_json() for one in self.tried],
        }

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each change."""
        return frame([one.to_json() for one in self.tried])

    def _repr_html_(self) -> str:
        rows = [{"change": one.words, "saves": percent(one.saving), "confirmed": one.confirmed} for one in self.tried]
        return html_table(f"{self.network}: {joules(self.joules)} per iteration", rows)


class Ratios:
    """Logarithms of joules with a change over those without, one for each pair."""

    def __init__(self) -> None:
        self.logs: list[float] = []

    @property
    def mean(self) -> float:
        return mean(self.logs) if self.logs else 0.0

    @property
    def stderr(self) -> float:
        """Of the mean: the spread of pairs in general counts for some, so that two equal ones are not certain."""
        count = len(self.logs)
        if not count:
            return math.inf
        own = variance(self.logs) if count > 1 else 0.0
        one = (PRIOR_PAIRS * PAIR_SPREAD**2 + (count - 1) * own) / (PRIOR_PAIRS + count - 1)
        return math.sqrt(one / count)

    @property
    def promising(self) -> bool:
        return self.mean < -PROMISING * self.stderr


Pair = Callable[[Change, bool], tuple[float, float]]  # joules without a change and with it; whether that goes first


def try_changes(
    changes: Sequence[Change],
    measure: Pair,
    seconds: float,
    on_progress: Callable[[float, float, str], None] = lambda elapsed, expected, text: None,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[list[Advice], float]:
    """What each change saves, most first, and the joules of an iteration without any.

    `on_progress` gets the seconds that it has taken, those that it is expected to take, and what is tried.
    """
    began, without = clock(), list[float]()
    failed: dict[str, str] = {}

    def run(chosen: Sequence[Change], until: float, what: str) -> dict[str, Ratios]:
        found, run_began, done = {change.name: Ratios() for change in chosen}, clock(), 0
        for number in range(MOST_PAIRS):
            if number >= FEWEST_PAIRS and clock() - began > until:
                break
            for change in chosen:
                if change.name in failed:
                    continue
                now = clock()
                least = (now - run_began) * FEWEST_PAIRS * len(chosen) / max(done, 1)
                expected = max(seconds, run_began - began + least)
                on_progress(now - began, max(expected, now - began), f"{what} {change.name}")
                done += 1
                try:
                    plain, changed = measure(change, bool(number % 2))
                except VariantFailed as problem:
                    failed[change.name] = str(problem)
                    continue
                without.append(plain)
                found[change.name].logs.append(math.log(changed / plain))
        return found

    first = run(changes, SCREENING_SHARE * seconds, "trying")
    again = run([c for c in changes if first[c.name].promising], seconds, "confirming")
    if not without:
        raise VariantFailed(next(iter(failed.values()), "nothing was tried"))
    sample = median(without)
    found = [
        _advice(c, again.get(c.name, first[c.name]), c.name in again, sample, failed.get(c.name, "")) for c in changes
    ]
    return sorted(found, key=lambda one: (not one.confirmed, -one.saving)), sample


def _advice(change: Change, ratios: Ratios, second: bool, sample: float, failed: str) -> Advice:
    if failed or not ratios.logs:
        nothing = 0.0, (0.0, 0.0), 0.0, 0.0, False, 0
        return Advice(change.name, change.words, *nothing, alters=change.alters, failed=failed)
    middle, deviation = ratios.mean, ratios.stderr
    interval = 1 - math.exp(middle + Z90 * deviation), 1 - math.exp(middle - Z90 * deviation)
    saving = 1 - math.exp(middle)
    return Advice(
        change.name,
        change.words,
        saving,
        interval,
        saving * sample,
        NormalDist().cdf(-middle / deviation),
        second and interval[0] > 0,
        len(ratios.logs),
        change.paste,
        change.alters,
    )


def pairs_of(experiment: Experiment, setup: TrainingSetup, watts_per_core: float) -> Pair:
    """Pairs of processes that train the model; joules of a larger batch are those of as many samples as before."""
    effort = Effort(2 * TRAINED_SECONDS / TRAINING_SHARE, 1, 2, ends_sharply=True)

    def joules_of(process: PlainProcess, samples: int) -> float:
        windows = windows_from_json(process.answer["windows"])
        return median(window.per_iteration() for window in windows) * watts_per_core / samples

    def pair(change: Change, with_it_first: bool) -> tuple[float, float]:
        changed = experiment.under(change.allocator) if change.allocator else experiment
        if change.batch_factor > 1:
            changed = replace(changed, workload=_of_batch(changed, change.batch_factor * experiment.network.batch))
        with_threads = replace(setup, threads=change.threads or setup.threads)
        with ExitStack() as ending:
            without = PlainProcess(experiment, setup, effort, ending, with_ampere=bool(change.changes))
            having = PlainProcess(changed, with_threads, effort, ending, change.changes)
            both = (having, without) if with_it_first else (without, having)
            for process in both:
                process.wait()
            for _ in zip_longest(*(process.turns() for process in both)):
                pass  # a window of the one, a window of the other
            return joules_of(without, 1), joules_of(having, change.batch_factor)

    return pair


def _of_batch(experiment: Experiment, batch: int) -> Workload:
    """The same model with another batch: of its inputs where they are given as shapes, else of its function."""
    workload, before = experiment.workload, experiment.network.batch
    if "inputs" not in workload:
        return {**workload, "arguments": {**(workload.get("arguments") or {}), "batch": batch}}

    def one(spec: Mapping[str, Any]) -> dict[str, Any]:
        first, *rest = spec["shape"] or [None]
        return {**spec, "shape": [batch, *rest] if first == before else spec["shape"]}

    inputs = workload["inputs"]
    if isinstance(inputs, Mapping):
        return {**workload, "inputs": {name: one(spec) for name, spec in inputs.items()}}
    return {**workload, "inputs": [one(spec) for spec in inputs]}
