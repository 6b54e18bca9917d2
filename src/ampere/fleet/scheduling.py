"""Which job runs where and when: solved exactly where that is possible, else with a bound on what is lost.

jobs x devices up to EXACT_PAIRS   -> HiGHS (solving.py); its bound where time runs out
more                               -> heuristic.py, whose bound is the Lagrangian dual's
both                               -> a timeline, jobs that fit nowhere with what would help, simpler rules beside it
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ampere.core import units
from ampere.core.errors import UsageError

from .chains import with_spans
from .heuristic import approximate
from .problem import FOREVER, Array, Problem
from .rules import RULES, by_rule
from .solving import NOWHERE, Assignment, Piece, best, completion, timeline

EXACT_PAIRS = 2_000  # jobs times devices
SOONER = 0.001  # relative: a plan that ends so much earlier is worth another try
EXACT_PIECES = 40_000  # jobs times devices times slots, where it matters when a job runs


@dataclass(frozen=True)
class Span:
    """A job trains on a device from `begin` to `end`, in seconds from the start of the plan."""

    job: str
    device: str
    begin: float
    end: float


@dataclass(frozen=True)
class Scheduled:
    """A job, where it runs and what that costs."""

    job: str
    device: str
    joules: float
    stddev: float
    seconds: float
    cost: float  # in the units of the objective; joules where that is the end of all jobs
    ends: float  # at the latest, with the confidence asked for
    deadline: float | None


@dataclass(frozen=True)
class Unscheduled:
    """A job that runs nowhere: why, and what would help."""

    job: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """Which job runs where and when."""

    objective: str
    confidence: float
    jobs: tuple[Scheduled, ...]
    spans: tuple[Span, ...]
    unscheduled: tuple[Unscheduled, ...]
    value: float  # of the objective
    bound: float | None  # no plan has less; None where some jobs run nowhere and the best is not known
    proved: bool  # whether no better plan exists, but for a ten-thousandth
    batteries: Mapping[
        str, tuple[float, float]
    ]  # device: joules drawn at most with the confidence asked for, joules held
    solving_seconds: float
    baselines: Mapping[str, tuple[float, int]]  # rule: its value, and the jobs that it leaves out
    chained: bool = False  # whether jobs follow others: `bound` and `proved` are then for these spans of their time

    @property
    def gap(self) -> float | None:
        """How much less the best plan could cost, relative to this one."""
        return None if self.bound is None or not self.value else max(0.0, 1 - self.bound / self.value)

    @property
    def joules(self) -> float:
        return sum(job.joules for job in self.jobs)

    @property
    def ends(self) -> float:
        return max((job.ends for job in self.jobs), default=0.0)

    def to_json(self) -> dict[str, Any]:
        return {
            "objective": self.objective,
            "confidence": self.confidence,
            "value": self.value,
            "joules": self.joules,
            "ends_seconds": self.ends,
            "proved": self.proved,
            "chained": self.chained,
            "bound": self.bound,
            "gap": self.gap,
            "solving_seconds": self.solving_seconds,
            "jobs": [vars(job) for job in self.jobs],
            "spans": [vars(span) for span in self.spans],
            "unscheduled": [vars(job) for job in self.unscheduled],
            "batteries": {
                name: {"drawn_joules": drawn, "held_joules": held} for name, (drawn, held) in self.batteries.items()
            },
            "baselines": {
                rule: {"value": value, "unscheduled": left} for rule, (value, left) in self.baselines.items()
            },
        }


def plan(problem: Problem, seconds: float = 30.0, baselines: Sequence[str] = tuple(RULES), seed: int = 0) -> Plan:
    """The plan of a problem, found within about so many seconds."""
    if not problem.jobs or not problem.devices:
        raise UsageError("there is nothing to schedule: give at least one job and one device")
    if not any(job.after for job in problem.jobs):
        return _plan(problem, problem, _assigned(problem, seconds, seed), baselines)
    spanned = with_spans(problem, problem.horizon)
    found = _plan(problem, spanned, _assigned(spanned, seconds, seed), baselines)
    return _sooner(problem, found, seconds, seed) if problem.objective == "completion" else found


def _sooner(problem: Problem, found: Plan, seconds: float, seed: int) -> Plan:
    """Spans of chains that end when the plan before did show where time is short: planned again while that helps."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        spanned = with_spans(problem, found.ends)
        other = _plan(problem, spanned, _assigned(spanned, seconds, seed), ())
        if len(other.jobs) < len(found.jobs) or other.value > (1 - SOONER) * found.value:
            break
        found = replace(other, baselines=found.baselines)
    return found


def is_small(problem: Problem) -> bool:
    """Whether the best assignment can be proved in seconds."""
    pairs = problem.joules.size
    if pairs > EXACT_PAIRS:
        return False
    return not problem.timed or pairs * (len(problem.slots.edges) - 1) <= EXACT_PIECES


def _assigned(problem: Problem, seconds: float, seed: int) -> Assignment:
    able = [int(j) for j in np.flatnonzero(np.any(problem.possible, axis=1))]
    device = np.full(len(problem.jobs), NOWHERE)
    if not able:
        return Assignment(device, 0.0, True)
    some = problem.only(able, range(len(problem.devices)))
    if not is_small(some):
        found = approximate(some, seconds, seed)
    else:
        found = best(some, seconds)
        if not found.proved:  # time ran out: another way may have found a better one
            other = approximate(some, seconds / 2, seed)
            if _rank(some, other.device) < _rank(some, found.device):
                found = replace(found, device=other.device)
    device[able] = found.device
    return replace(found, device=device)


def _rank(problem: Problem, device: NDArray[np.int64]) -> tuple[int, float]:
    value, left = _value_of(problem, device)
    return left, value


def _value_of(problem: Problem, device: NDArray[np.int64]) -> tuple[float, int]:
    """The objective of an assignment, and how many jobs it leaves out."""
    left = int(np.sum(device == NOWHERE))
    if problem.objective == "completion":
        chained = any(job.after for job in problem.jobs)
        return float(np.max(_timed(problem, device)[2])) if chained else completion(problem, device), left
    return float(np.sum(timeline(problem, device)[1])), left


def _plan(problem: Problem, spanned: Problem, found: Assignment, baselines: Sequence[str]) -> Plan:
    """The plan of an assignment that was found for the same problem with spans for jobs that follow each other."""
    device, deadlines = found.device, problem.deadlines
    problem = spanned
    pieces, costs, ends = _timed(problem, device)
    runs = [int(j) for j in np.flatnonzero(device != NOWHERE)]
    jobs = tuple(
        Scheduled(
            problem.jobs[j].name,
            problem.devices[device[j]].name,
            float(problem.joules[j, device[j]]),
            float(problem.stddev[j, device[j]]),
            float(problem.seconds[j, device[j]]),
            float(costs[j]),
            float(ends[j]),
            float(deadlines[j]) if deadlines[j] < FOREVER else None,
        )
        for j in runs
    )
    value = float(np.max(ends, initial=0.0)) if problem.objective == "completion" else float(np.sum(costs))
    drawn = {
        limits.name: (float(np.sum(problem.drawn[np.flatnonzero(device == d), d])), limits.battery_joules)
        for d, limits in enumerate(problem.devices)
        if limits.battery_joules < FOREVER
    }
    chained = any(job.after for job in problem.jobs)
    bound = found.bound if found.proved or len(runs) == len(problem.jobs) else None
    if chained and problem.objective == "completion":  # it is of plans where a chain waits for the ends of its spans
        bound = None
    return Plan(
        problem.objective,
        problem.confidence,
        jobs,
        tuple(Span(problem.jobs[p.job].name, problem.devices[p.device].name, p.begin, p.end) for p in pieces),
        tuple(
            Unscheduled(problem.jobs[j].name, why_not(problem, j, device))
            for j in np.flatnonzero(device == NOWHERE).tolist()
        ),
        value,
        None if bound is None or not np.isfinite(bound) else min(bound, value),
        found.proved and bound is not None,
        drawn,
        found.seconds,
        {rule: _value_of(problem, by_rule(problem, rule)) for rule in baselines},
        chained,
    )


def _timed(problem: Problem, device: NDArray[np.int64]) -> tuple[list[Piece], Array, Array]:
    """When each job trains, what it costs and when it ends. A job that follows others begins when these have ended."""
    number = {job.name: j for j, job in enumerate(problem.jobs)}
    followers = [j for j, job in enumerate(problem.jobs) if job.after]
    while True:
        pieces, costs = timeline(problem, device)
        ends = np.zeros(len(problem.jobs))
        for piece in pieces:
            ends[piece.job] = max(ends[piece.job], piece.end)
        jobs = list(problem.jobs)
        for j in followers:
            ended = {number[name]: float(ends[number[name]]) for name in jobs[j].after if name in number}
            begins = max([jobs[j].not_before, *ended.values()])
            jobs[j] = replace(jobs[j], release=min(jobs[j].release, begins))
            for other, end in ended.items():  # what begins earlier must not move these later
                jobs[other] = replace(jobs[other], deadline=min(jobs[other].deadline, end))
        if all(new.release > old.release - 1.0 for new, old in zip(jobs, problem.jobs, strict=True)):
            return pieces, costs, ends
        problem = replace(problem, jobs=tuple(jobs))


# Why a job runs nowhere. Each line names what would change that.


def why_not(problem: Problem, job: int, device: NDArray[np.int64]) -> str:
    """Why a job runs on no device, with what would make it possible."""
    limits = problem.jobs[job]
    trainable = ~np.isnan(problem.joules[job])
    if not np.any(trainable):
        named = [problem.notes.get((limits.name, d.name), "") for d in problem.devices]
        return next((note for note in named if note), "no device has an estimate for it: profile one for this model")
    there = trainable & problem.has_data[job]
    if not np.any(there):
        return (
            f"its data is only on {', '.join(sorted(limits.only_on))}, which cannot train it: copy the data elsewhere"
        )
    fits = there & problem.memory_fits[job]
    if not np.any(fits):
        most = max(problem.devices[d].memory_bytes for d in np.flatnonzero(there))
        return (
            f"it needs {units.bytes(limits.memory_bytes)} of memory, and the largest device has {units.bytes(most)}: "
            "use a smaller batch"
        )
    chosen = np.flatnonzero(fits)
    if not np.any(problem.possible[job]):
        return _alone(problem, job, chosen)
    return _together(problem, job, device)


def _alone(problem: Problem, job: int, devices: NDArray[np.int64]) -> str:
    """Too large for every device, even with nothing else to do."""
    enough = devices[problem.drawn[job, devices] <= problem.batteries[devices]]
    if len(enough) == 0:
        lacking = problem.drawn[job, devices] - problem.batteries[devices]
        d = int(devices[np.argmin(lacking)])
        return (
            f"{problem.devices[d].name} comes nearest, whose battery has {units.joules(problem.batteries[d])} of the "
            f"{units.joules(problem.drawn[job, d])} that it may need: charge {units.joules(float(np.min(lacking)))}, "
            f"or train {units.percent(problem.batteries[d] / problem.drawn[job, d])} of it"
        )
    limits = problem.jobs[job]
    ends = [problem.devices[d].done_by(limits.release, float(problem.reserved[job, d])) for d in enough]
    d, late = int(enough[np.argmin(ends)]), min(ends) - limits.deadline
    longer = f"allow {units.seconds(late)} more" if late < FOREVER else "let devices be available for longer"
    return (
        f"{problem.devices[d].name} comes nearest, free for {units.seconds(problem.free_alone[job, d])} of the "
        f"{units.seconds(problem.reserved[job, d])} that it may take before its deadline: {longer}"
    )


def _together(problem: Problem, job: int, device: NDArray[np.int64]) -> str:
    """It would fit alone; what is scheduled with more jobs leaves no room."""
    best_text, least = "", float("inf")
    for d in np.flatnonzero(problem.possible[job]):
        others = np.flatnonzero(device == d)
        battery = float(np.sum(problem.drawn[others, d])) + float(problem.drawn[job, d]) - float(problem.batteries[d])
        due = problem.deadlines[job]
        before = others[problem.deadlines[others] <= due]
        free = problem.devices[d].seconds_free(problem.jobs[job].release, float(due))
        late = float(np.sum(problem.reserved[before, d])) + float(problem.reserved[job, d]) - free
        lacking = max(
            battery / max(float(problem.drawn[job, d]), 1e-300), late / max(float(problem.reserved[job, d]), 1e-300)
        )
        if lacking < least:
            least = lacking
            name = problem.devices[d].name
            needs = [f"{units.joules(battery)} more in the battery"] if battery > 0 else []
            needs += [f"{units.seconds(late)} more time"] if late > 0 else []
            best_text = f"{name} comes nearest: give it {' and '.join(needs) or 'later deadlines of its other jobs'}"
    return f"it would fit alone, but not with the other jobs; {best_text}, or leave out another job"
