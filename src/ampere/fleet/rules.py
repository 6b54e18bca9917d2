"""Simpler rules to compare a plan with: round robin, the fastest device, FLOPs-guided.

A rule takes jobs in the order of their deadlines, and puts each where it fits and the rule likes it best. It sees the
same batteries, memory and deadlines as the plan, with the same caution, so that only the choice differs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .heuristic import Room
from .problem import MOST_SLOTS, Array, Problem, Slots
from .solving import NOWHERE

Preference = Callable[[Problem], Array]  # [jobs, devices]: the lower, the better


def round_robin(problem: Problem) -> Array:
    """Each job's next device in turn."""
    jobs, devices = problem.joules.shape
    turns = (np.arange(devices)[None, :] - np.arange(jobs)[:, None]) % devices
    return turns.astype(float)


def fastest(problem: Problem) -> Array:
    return problem.seconds


def by_flops(problem: Problem) -> Array:
    """Joules as a line through the origin of FLOPs, one for each device: what is known without looking at layers."""
    flops = np.array([job.flops for job in problem.jobs])
    per_flop = np.nanmedian(problem.joules / np.maximum(flops, 1.0)[:, None], axis=0)
    return np.asarray(flops[:, None] * per_flop)


RULES: dict[str, Preference] = {"round robin": round_robin, "fastest device": fastest, "FLOPs-guided": by_flops}


def by_rule(problem: Problem, rule: str) -> NDArray[np.int64]:
    """The device of each job by a rule; NOWHERE where nothing has room."""
    slots = Slots.of(problem, MOST_SLOTS)
    room, wished = Room(problem, slots), RULES[rule](problem)
    device = np.full(len(problem.jobs), NOWHERE)
    for j in np.argsort(problem.deadlines, kind="stable"):
        able = room.fits(int(j))
        if np.any(able):
            device[j] = int(np.argmin(np.where(able, wished[j], np.inf)))
            room.take(int(j), int(device[j]))
    return device
