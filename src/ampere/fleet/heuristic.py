"""Assignments of very many jobs, with a bound on how much better the best one could be.

1. Prices for a device's seconds and battery (prices.py): with prices, each job chooses its device by itself. What that
   costs, less what the resources are worth, is a bound for every assignment.
2. Jobs are placed one by one, those first that lose most by their second choice, each where its cost and the prices of
   what it takes are least and where there is room.
3. Jobs that found no room, and small groups of devices with all their jobs, are solved again exactly (solving.py).
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .prices import GOOD_ENOUGH, Prices, prices_of
from .problem import MOST_SLOTS, Array, Problem, Slots
from .solving import NOWHERE, Assignment, best, completion, earliest_end, timeline

GROUP_PAIRS = 300  # jobs times devices that are solved again at a time
GROUP_SECONDS = 1.0
COMPLETION_STEPS = 6
AT_A_TIME = 32  # devices whose hours are looked at together
FRUITLESS = 30  # groups, and three for each device, after which nothing more is tried


class Room:
    """What is still free while jobs are placed. Cheap and late seconds are taken first."""

    def __init__(self, problem: Problem, slots: Slots) -> None:
        latest_first = np.broadcast_to(-np.arange(len(slots.edges) - 1), slots.rates.shape)
        self.problem, self.slots, self.batteries = problem, slots, problem.batteries.copy()
        self._priced, self._order = slots.priced, np.lexsort((latest_first, slots.rates), axis=-1)
        self._left = slots.free.copy()  # [devices, slots]
        self._until = np.zeros((len(slots.edges), len(slots.free)))  # [edges, devices]: seconds left before an edge
        self._until[1:] = np.cumsum(slots.free, axis=1).T

    def fits(self, job: int) -> NDArray[np.bool_]:
        """Which devices have room for the job now."""
        problem, first, end = self.problem, self.slots.first[job], self.slots.end[job]
        seconds = (self._until[end] - self._until[first]) * (1 + 1e-9) >= problem.reserved[job]
        return np.asarray((end > first) & seconds & (problem.drawn[job] <= self.batteries) & problem.possible[job])

    def cheapest(self, job: int, wished: Array, least: Array) -> int:
        """The device where the job costs least now, with what `wished` adds to the `least` it costs in free hours."""
        able = np.flatnonzero(self.fits(job))
        if len(able) == 0:
            return NOWHERE
        if not self._priced:
            return int(able[np.argmin(wished[able])])
        able = able[np.argsort(wished[able], kind="stable")]
        found, lowest = NOWHERE, np.inf
        for begin in range(0, len(able), AT_A_TIME):
            some = able[begin : begin + AT_A_TIME]
            if wished[some[0]] >= lowest:  # hours that are left cost no less than free ones
                break
            costs = self._cost(job, some) + wished[some] - least[some]
            if np.min(costs) < lowest:
                found, lowest = int(some[np.argmin(costs)]), float(np.min(costs))
        return found

    def take(self, job: int, device: int) -> None:
        """Gives a job its seconds and joules on a device."""
        self.batteries[device] -= self.problem.drawn[job, device]
        left, order = self._left[device], self._order[device]
        mine = order[(order >= self.slots.first[job]) & (order < self.slots.end[job])]
        used = left[mine].cumsum()  # of the slots in turn
        left[mine] = np.minimum(left[mine], np.maximum(0.0, used - self.problem.reserved[job, device]))
        left.cumsum(out=self._until[1:, device])

    def _cost(self, job: int, devices: NDArray[np.intp]) -> Array:
        paid = np.sum(self._shares(job, devices) * self.slots.rates[devices], axis=1)
        return np.asarray(
            self.problem.joules[job, devices] * paid / np.maximum(self.problem.reserved[job, devices], 1e-300)
        )

    def _shares(self, job: int, devices: NDArray[np.intp]) -> Array:
        """Seconds of each slot that the job would take, [devices, slots]."""
        order = self._order[devices]
        within = (order >= self.slots.first[job]) & (order < self.slots.end[job])
        usable = np.where(within, np.take_along_axis(self._left[devices], order, -1), 0.0)
        taken = np.minimum(np.cumsum(usable, axis=1), self.problem.reserved[job, devices][:, None])
        shares = np.empty_like(taken)
        np.put_along_axis(shares, order, np.diff(taken, axis=1, prepend=0.0), -1)
        return shares


def approximate(problem: Problem, seconds: float = 45.0, seed: int = 0) -> Assignment:
    """A good assignment of many jobs, found within about so many seconds, and a bound for all."""
    began = time.monotonic()
    if problem.objective == "completion":
        return _soonest(problem, seconds, seed)
    fitting = [int(j) for j in np.flatnonzero(np.any(problem.possible, axis=1))]
    device = np.full(len(problem.jobs), NOWHERE)
    if not fitting:
        return Assignment(device, 0.0, True, time.monotonic() - began)
    some = problem.only(fitting, range(len(problem.devices)))
    slots = Slots.of(some, MOST_SLOTS)
    costs = _least_costs(some, slots)
    rough = _placed(some, slots, costs, None)
    prices = prices_of(some, slots, costs, _total(costs, rough), 0.6 * seconds, seed)
    found = rough
    if prices.bound > 0:
        guided = _placed(some, slots, costs, prices)
        found = min((rough, guided), key=lambda a: (np.sum(a == NOWHERE), _total(costs, a)))
    found = _improved(some, costs, found, prices.bound, began + seconds, seed)
    device[fitting] = found
    missing = bool(np.any(found == NOWHERE))
    return Assignment(device, 0.0 if missing else prices.bound, False, time.monotonic() - began)


def _total(costs: Array, device: NDArray[np.int64]) -> float:
    runs = np.flatnonzero(device != NOWHERE)
    return float(np.sum(costs[runs, device[runs]]))


def _least_costs(problem: Problem, slots: Slots) -> Array:
    """What a job costs on a device at the cheapest rate before its deadline, which may lie inside the next slot."""
    if not slots.priced:
        return np.asarray(problem.joules * slots.rates[:, 0])
    spans = [(max(0, int(first) - 1), int(end) + 1) for first, end in zip(slots.first, slots.end, strict=True)]
    open_ = np.where(slots.free > 0, slots.rates, np.inf)
    least = {span: np.min(open_[:, span[0] : span[1]], axis=1, initial=np.inf) for span in set(spans)}
    rates = np.array([least[span] for span in spans])
    return np.asarray(problem.joules * np.where(np.isfinite(rates), rates, 0.0))


def _placed(problem: Problem, slots: Slots, least: Array, prices: Prices | None) -> NDArray[np.int64]:
    """Jobs one by one, those first that lose most by their second choice."""
    room = Room(problem, slots)
    wished = np.where(problem.possible, least, np.inf)
    if prices is not None:
        end = np.clip(slots.end - 1, 0, len(slots.edges) - 2)
        for j, row in enumerate(wished):  # a row at a time: arrays of all would not fit a processor's cache
            row += problem.reserved[j] * prices.seconds[end[j]] + problem.drawn[j] * prices.joules
        wished[np.isnan(wished)] = np.inf
    device = np.full(len(problem.jobs), NOWHERE)
    for j in np.argsort(-_regrets(wished), kind="stable"):
        device[j] = room.cheapest(int(j), wished[j], least[j])
        if device[j] != NOWHERE:
            room.take(int(j), int(device[j]))
    return device


def _regrets(wished: Array) -> Array:
    if wished.shape[1] < 2:
        return np.full(len(wished), np.inf)
    two = np.partition(wished, 1, axis=1)[:, :2]
    return np.where(np.isfinite(two[:, 1]), two[:, 1] - two[:, 0], np.inf)


def _improved(
    problem: Problem, costs: Array, device: NDArray[np.int64], bound: float, until: float, seed: int
) -> NDArray[np.int64]:
    """Groups of devices solved again, with the jobs that found no room, until time is over or little can be gained."""
    rng, device = np.random.default_rng(seed), device.copy()
    total, useless, count = _total(costs, device), 0, len(problem.devices)
    while time.monotonic() < until and useless < FRUITLESS + 3 * count:
        missing = np.flatnonzero(device == NOWHERE)
        if len(missing) == 0 and not problem.timed and total - bound <= GOOD_ENOUGH * total:
            break
        group, jobs = _group(problem, device, missing, rng)
        part, number = problem.only(jobs, group), {d: n for n, d in enumerate(group)}
        before = np.array([number.get(int(d), NOWHERE) for d in device[jobs]])
        whole = len(jobs) == len(problem.jobs) and len(group) == count
        solved = best(part, max(0.1, min(until - time.monotonic(), np.inf if whole else GROUP_SECONDS)))
        after = solved.device
        fewer = np.sum(after == NOWHERE) - np.sum(before == NOWHERE)
        saved = _cost(part, before) - _cost(part, after)
        if fewer < 0 or (fewer == 0 and saved > 1e-9 * total):
            device[jobs] = np.where(after == NOWHERE, NOWHERE, np.array(group)[after])
            total, useless = total - saved, 0
        else:
            useless += 1
        if whole and solved.proved:
            break
    return device


def _cost(problem: Problem, device: NDArray[np.int64]) -> float:
    return float(np.sum(timeline(problem, device)[1]))


def _group(
    problem: Problem, device: NDArray[np.int64], missing: NDArray[np.int64], rng: np.random.Generator
) -> tuple[list[int], list[int]]:
    """A few devices that could exchange jobs, or hold a job that runs nowhere, and their jobs; or all, if few."""
    if problem.joules.size <= GROUP_PAIRS:
        return [*range(len(problem.devices))], [*range(len(problem.jobs))]
    around = missing if len(missing) and rng.random() < 0.5 else np.arange(len(problem.jobs))
    job = int(rng.choice(around))
    able = np.flatnonzero(problem.possible[job])
    costs = problem.joules[job, able] * rng.uniform(0.8, 1.25, len(able))
    group = [int(device[job])] if device[job] != NOWHERE else []
    jobs = [job]
    for d in able[np.argsort(costs)]:
        mine = np.flatnonzero(device == d)
        if int(d) in group and len(group) == 1 and len(jobs) == 1:
            jobs += [int(j) for j in mine if j != job]
            continue
        if int(d) in group:
            continue
        if (len(group) + 1) * (len(jobs) + len(mine)) > GROUP_PAIRS and len(group) >= 2:
            break
        group.append(int(d))
        jobs += [int(j) for j in mine if j != job]
    first = group[0]
    jobs += [int(j) for j in np.flatnonzero(device == first) if int(j) not in jobs]
    others = [j for j in rng.permutation(missing).tolist() if j != job]  # one of them may run instead of another
    jobs += others[: max(0, GROUP_PAIRS // len(group) - len(jobs))]
    return group, jobs


def _soonest(problem: Problem, seconds: float, seed: int) -> Assignment:
    """The earliest end found by halving: jobs are placed with that end as the deadline of all."""
    began = time.monotonic()
    plain = replace(problem, objective="joules")
    found = _placed(plain, Slots.of(plain, MOST_SLOTS), plain.joules, None)
    runs = [int(j) for j in np.flatnonzero(found != NOWHERE)]
    if len(runs) < len(problem.jobs):
        device = np.full(len(problem.jobs), NOWHERE)
        if runs:
            some = _soonest(problem.only(runs, range(len(problem.devices))), seconds, seed)
            device[runs] = some.device
        return Assignment(device, 0.0, False, time.monotonic() - began)
    low, high = max(earliest_end(problem), _work_bound(problem)), completion(problem, found)
    bound = low
    for _ in range(COMPLETION_STEPS):
        if high - low <= 0.01 * high or time.monotonic() - began > seconds:
            break
        middle = (low + high) / 2
        ending = plain.ending_by(middle)
        trial = _placed(ending, Slots.of(ending, MOST_SLOTS), ending.seconds, None)
        if np.any(trial == NOWHERE):
            low = middle
        else:
            found, high = trial, completion(problem, trial)
    return Assignment(found, bound, False, time.monotonic() - began)


def _work_bound(problem: Problem) -> float:
    """All jobs on their fastest devices, spread over all devices."""
    least = np.min(np.where(problem.possible, problem.reserved, np.inf), axis=1)
    work = float(np.sum(least[np.isfinite(least)]))
    return work / max(1, len(problem.devices))
