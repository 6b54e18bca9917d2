"""The best assignment of jobs to devices, proved with HiGHS.

x_jd        1 where job j runs on device d                          y_jds   seconds of it in slot s

minimise    sum of what x costs           (where prices change with time: of what y costs)
so that     sum_d x_jd = 1                                          every job runs once
            sum_j drawn_jd x_jd <= battery_d                        batteries hold with the confidence asked for
            sum of reserved_jd x_jd over jobs due by t <= seconds that d is free until t, for every deadline t

The last line is exact, because training pauses and goes on: jobs on one device meet their deadlines in the order of
these, or not at all. Where jobs have releases or prices change, y replaces it: sum_s y_jds = reserved_jd x_jd, and
sum_j y_jds <= seconds that d is free in s.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import coo_array, csr_array

from .problem import Array, Problem

GAP = 1e-4  # relative, at which a solution counts as the best
COMPLETION_STEPS = 12  # halvings of the time between what is possible at best and what was found

NOWHERE = -1
INFEASIBLE = 2  # a status of HiGHS
SHORTEST = 1e-6  # seconds: what rounding leaves of a job is no piece of it


@dataclass(frozen=True)
class Assignment:
    """Which device each job runs on, and how good that is at best."""

    device: NDArray[np.int64]  # of each job; NOWHERE where it runs on none
    bound: float  # no assignment of as many jobs costs less
    proved: bool  # whether the solver ended by itself
    seconds: float = 0.0  # of solving


class _Rows:
    """Rows of a sparse matrix, each with its largest value; equal to it where `equal`."""

    def __init__(self, columns: int) -> None:
        self.columns, self.rows = columns, 0
        self.entries: tuple[list[NDArray[Any]], list[NDArray[Any]], list[NDArray[Any]]] = ([], [], [])
        self.upper: list[float] = []
        self.lower: list[float] = []

    def add(self, columns: NDArray[Any], values: NDArray[Any], upper: float, equal: bool = False) -> None:
        if len(columns) == 0:
            return
        self.entries[0].append(np.full(len(columns), self.rows))
        self.entries[1].append(columns)
        self.entries[2].append(values)
        self.upper.append(upper)
        self.lower.append(upper if equal else -np.inf)
        self.rows += 1

    def constraint(self) -> LinearConstraint:
        rows, columns, values = (np.concatenate(part) if part else np.zeros(0) for part in self.entries)
        matrix = csr_array(coo_array((values, (rows.astype(int), columns.astype(int))), (self.rows, self.columns)))
        return LinearConstraint(matrix, self.lower, self.upper)


def best(problem: Problem, seconds: float = 30.0) -> Assignment:
    """The assignment of as many jobs as can run, with the least objective; found within about so many seconds."""
    began = time.monotonic()
    if problem.objective == "completion":
        return _soonest(problem, seconds)
    found = _solve(problem, seconds, all_jobs=True)
    if found is None:  # not all can run together: as many as possible, and then the cheapest so many
        most = _solve(problem, seconds, all_jobs=False, count_only=True)
        count = 0 if most is None else int(np.sum(most.device != NOWHERE))
        if most is None or count == 0:
            nothing = np.full(len(problem.jobs), NOWHERE)
            return Assignment(nothing, 0.0, most is None or most.proved, time.monotonic() - began)
        left = max(1.0, seconds - (time.monotonic() - began))
        found = _solve(problem, left, all_jobs=False, least_count=count)
        if found is None or np.all(found.device == NOWHERE):
            found = _Solved(most.device, 0.0, False)
    return Assignment(found.device, found.bound, found.proved, time.monotonic() - began)


def _soonest(problem: Problem, seconds: float) -> Assignment:
    """The earliest time by which all jobs can have been trained, by halving, and the fewest joules for that."""
    began = time.monotonic()
    found = _solve(problem, seconds, all_jobs=True)
    if found is None:
        most = _solve(problem, seconds, all_jobs=False, count_only=True)
        runs = [] if most is None else [int(j) for j in np.flatnonzero(most.device != NOWHERE)]
        device = np.full(len(problem.jobs), NOWHERE)
        if not runs:
            return Assignment(device, 0.0, False, time.monotonic() - began)
        some = _soonest(problem.only(runs, range(len(problem.devices))), seconds)
        device[runs] = some.device
        return Assignment(device, some.bound, some.proved, time.monotonic() - began)
    if np.any(found.device == NOWHERE):  # nothing was found in time
        return Assignment(found.device, 0.0, False, time.monotonic() - began)
    low, high = earliest_end(problem), completion(problem, found.device)
    for _ in range(COMPLETION_STEPS):
        if high - low <= GAP * high or time.monotonic() - began > seconds:
            break
        middle = (low + high) / 2
        better = _solve(problem.ending_by(middle), max(0.5, seconds / COMPLETION_STEPS), all_jobs=True)
        if better is None:
            low = middle
        elif np.any(better.device == NOWHERE):
            break
        else:
            found, high = better, completion(problem, better.device)
    return Assignment(found.device, low, high - low <= 0.01 * high, time.monotonic() - began)


def earliest_end(problem: Problem) -> float:
    """A time before which the last job cannot have been trained."""
    alone = [
        min((_end_alone(problem, j, d) for d in np.flatnonzero(problem.possible[j]).tolist()), default=0.0)
        for j in range(len(problem.jobs))
    ]
    return max(alone, default=0.0)


def _end_alone(problem: Problem, job: int, device: int) -> float:
    left = float(problem.reserved[job, device])
    for since, to in sorted(problem.devices[device].available):
        free = max(0.0, to - max(since, problem.jobs[job].release))
        if left <= free:
            return max(since, problem.jobs[job].release) + left
        left -= free
    return float("inf")


def completion(problem: Problem, device: NDArray[np.int64]) -> float:
    """When the last job ends, where each device trains its jobs one after the other."""
    last = 0.0
    for d, limits in enumerate(problem.devices):
        now = 0.0
        for j in sorted(np.flatnonzero(device == d), key=lambda j: problem.jobs[j].release):
            now = _advance(limits.available, max(now, problem.jobs[j].release), float(problem.reserved[j, d]))
        last = max(last, now)
    return last


def _advance(available: Sequence[tuple[float, float]], now: float, seconds: float) -> float:
    for since, to in sorted(available):
        free = max(0.0, to - max(since, now))
        if seconds <= free:
            return max(since, now) + seconds
        seconds -= free
    return float("inf")


@dataclass(frozen=True)
class _Solved:
    device: NDArray[np.int64]
    bound: float
    proved: bool


def _solve(
    problem: Problem, seconds: float, all_jobs: bool, count_only: bool = False, least_count: int = 0
) -> _Solved | None:
    """What HiGHS finds; None where nothing is possible, and no job anywhere where it found nothing in time."""
    jobs, devices = np.nonzero(problem.possible)
    count = len(jobs)
    if all_jobs and not np.all(np.any(problem.possible, axis=1)):
        return None
    if count == 0:
        return None
    timed = problem.timed
    joules, reserved = problem.joules[jobs, devices], problem.reserved[jobs, devices]
    costs = joules * np.array([device.rates[0][1] for device in problem.devices])[devices]
    width = count
    if timed:
        slots = problem.slots
        pieces = [(k, s) for k in range(count) for s in range(slots.first[jobs[k]], slots.end[jobs[k]])]
        pieces = [(k, s) for k, s in pieces if slots.free[devices[k], s] > 0]
        of, at = np.array(pieces, dtype=int).reshape(-1, 2).T
        width = count + len(of)
        share = (joules / np.maximum(reserved, 1e-300))[of] * slots.rates[devices[of], at]
        costs = np.concatenate([np.zeros(count), share])
    if count_only:
        costs = np.concatenate([-np.ones(count), np.zeros(width - count)])
    rows = _Rows(width)
    for j in range(len(problem.jobs)):
        mine = np.flatnonzero(jobs == j)
        rows.add(mine, np.ones(len(mine)), 1.0, equal=all_jobs)
    if least_count:
        rows.add(np.arange(count), -np.ones(count), -float(least_count))
    drawn = problem.drawn[jobs, devices]
    for d, battery in enumerate(problem.batteries):
        mine = np.flatnonzero(devices == d)
        if np.isfinite(battery):
            rows.add(mine, drawn[mine] / max(battery, 1e-300), 1.0)
        if timed:
            continue
        due = problem.deadlines[jobs[mine]]
        for end in np.unique(due):
            some, free = mine[due <= end], problem.devices[d].seconds_free(0.0, float(end))
            if np.isfinite(free) and float(np.sum(reserved[some])) > free:
                rows.add(some, reserved[some] / max(free, 1e-300), 1.0)
    if timed:
        for k in range(count):
            mine = np.flatnonzero(of == k)
            row = np.concatenate([[k], count + mine])
            rows.add(row, np.concatenate([[-1.0], np.ones(len(mine)) / max(reserved[k], 1e-300)]), 0.0, equal=True)
        for d in range(len(problem.devices)):
            for s in range(len(slots.edges) - 1):
                mine = np.flatnonzero((devices[of] == d) & (at == s))
                rows.add(count + mine, np.ones(len(mine)) / max(slots.free[d, s], 1e-300), 1.0)
    scale = float(np.max(np.abs(costs))) or 1.0
    found = milp(
        costs / scale,
        integrality=np.concatenate([np.ones(count), np.zeros(width - count)]),
        bounds=Bounds(0, np.concatenate([np.ones(count), np.full(width - count, np.inf)])),
        constraints=rows.constraint(),
        options={"time_limit": max(0.1, seconds), "mip_rel_gap": GAP},
    )
    if found.x is None:
        return None if found.status == INFEASIBLE else _Solved(np.full(len(problem.jobs), NOWHERE), 0.0, False)
    chosen = found.x[:count] > 0.5
    device = np.full(len(problem.jobs), NOWHERE)
    device[jobs[chosen]] = devices[chosen]
    bound = float(found.mip_dual_bound) if found.mip_dual_bound is not None else float(found.fun)
    return _Solved(device, bound * scale, found.status == 0)


# When each job runs, on the device that it was given.


@dataclass(frozen=True)
class Piece:
    """A span in which a job trains on a device."""

    job: int
    device: int
    begin: float
    end: float


def timeline(problem: Problem, device: NDArray[np.int64]) -> tuple[list[Piece], Array]:
    """When each job trains, and what that costs by the objective's rates; in the order of deadlines."""
    pieces: list[Piece] = []
    costs = np.zeros(len(problem.jobs))
    for d in range(len(problem.devices)):
        mine = [int(j) for j in np.flatnonzero(device == d)]
        if not mine:
            continue
        if not problem.timed:
            pieces += _one_after_another(problem, d, mine)
            costs[mine] = problem.joules[mine, d] * problem.devices[d].rates[0][1]
        else:
            some, paid = _in_cheap_hours(problem, d, mine)
            pieces += some
            costs[mine] = paid
    return pieces, costs


def _one_after_another(problem: Problem, d: int, jobs: list[int]) -> list[Piece]:
    pieces, now = [], 0.0
    for j in sorted(jobs, key=lambda j: (problem.deadlines[j], j)):
        left = float(problem.reserved[j, d])
        for since, to in sorted(problem.devices[d].available):
            begin = max(since, now)
            if left <= SHORTEST or to <= begin:
                continue
            end = min(to, begin + left)
            pieces.append(Piece(j, d, begin, end))
            left -= end - begin
            now = end
    return pieces


def _in_cheap_hours(problem: Problem, d: int, jobs: list[int]) -> tuple[list[Piece], Array]:
    """The cheapest hours before each deadline: a small linear program, since jobs share the hours."""
    slots = problem.only(jobs, [d]).slots
    open_ = [range(first, end) for first, end in zip(slots.first, slots.end, strict=True)]
    pieces = [(k, s) for k, mine in enumerate(open_) for s in mine if slots.free[0, s] > 0]
    of, at = np.array(pieces, dtype=int).reshape(-1, 2).T
    reserved = problem.reserved[jobs, d]
    rate = (problem.joules[jobs, d] / np.maximum(reserved, 1e-300))[of] * slots.rates[0, at]
    whole = _Rows(len(of))
    for k in range(len(jobs)):
        whole.add(np.flatnonzero(of == k), np.ones(int(np.sum(of == k))), 1.0)
    free = _Rows(len(of))
    for s in range(len(slots.edges) - 1):
        mine = np.flatnonzero(at == s)
        free.add(mine, reserved[of[mine]] / max(slots.free[0, s], 1e-300), 1.0 + 1e-7)
    early = 1e-5 * at / len(slots.edges)  # of equal hours the first ones; less would be lost in HiGHS's tolerances
    costs = rate * reserved[of]
    found = linprog(
        costs / max(float(np.max(costs, initial=0.0)), 1e-300) + early,
        A_ub=free.constraint().A,
        b_ub=free.upper,
        A_eq=whole.constraint().A,
        b_eq=np.ones(len(jobs)),
    )
    if found.x is None:  # only by rounding: it was assigned because it fits
        return _one_after_another(problem, d, jobs), problem.joules[jobs, d] * np.max(slots.rates[0])
    share = found.x
    seconds = share * reserved[of]
    placed: list[Piece] = []
    for s in range(len(slots.edges) - 1):
        now = float(slots.edges[s])
        for n in np.flatnonzero((at == s) & (seconds > SHORTEST) & (share > 1e-5)):
            for since, to in sorted(problem.devices[d].available):
                begin, left = max(since, now), float(seconds[n])
                if left > SHORTEST and to > begin:
                    end = min(to, begin + left)
                    placed.append(Piece(jobs[of[n]], d, begin, end))
                    seconds[n] -= end - begin
                    now = end
    paid: Array = np.bincount(of, share * costs, len(jobs)).astype(float)
    return _joined(placed), paid


def _joined(pieces: list[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for piece in sorted(pieces, key=lambda p: (p.device, p.begin)):
        last = joined[-1] if joined else None
        if last and (last.job, last.device) == (piece.job, piece.device) and piece.begin - last.end < 1e-6:
            joined[-1] = Piece(last.job, last.device, last.begin, piece.end)
        else:
            joined.append(piece)
    return joined
