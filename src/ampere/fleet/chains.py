"""Jobs that follow each other: circles among them, and a span of time for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from graphlib import TopologicalSorter

import numpy as np

from .problem import FOREVER, JobLimits, Problem


def in_cycles(after: Mapping[str, Sequence[str]]) -> set[str]:
    """The jobs that wait for themselves, directly or through others; `after` says which each waits for."""
    waits = {name: {*before} for name, before in after.items()}
    followers: dict[str, list[str]] = {}
    for name, before in waits.items():
        for other in before:
            followers.setdefault(other, []).append(name)
    free = [name for name, before in waits.items() if not before]
    while free:
        done = free.pop()
        waits.pop(done)
        for name in followers.get(done, ()):
            waits[name].discard(done)
            if not waits[name]:
                free.append(name)
    # What is left waits for a circle, or is in one: those that only wait have nobody of the rest waiting for them.
    while True:
        needed = {name for before in waits.values() for name in before}
        ends = [name for name in waits if name not in needed]
        if not ends:
            return set(waits)
        for name in ends:
            waits.pop(name)


def split_chains(
    jobs: Sequence[JobLimits], least_seconds: Mapping[str, float], start: float, horizon: float
) -> tuple[JobLimits, ...]:
    """The same jobs, where those that follow each other have spans of their own, from `start` on.

    The time of a chain is split in proportion to how long its jobs take at least, so that each is planned by itself: a
    job is due when the next one may begin. Jobs that are not there any more have ended.
    """
    there = {job.name for job in jobs}
    after = {job.name: [name for name in job.after if name in there] for job in jobs}
    followers: dict[str, list[str]] = {name: [] for name in after}
    for name, before in after.items():
        for other in before:
            followers[other].append(name)
    order = tuple(TopologicalSorter(after).static_order())
    ahead, behind = dict[str, float](), dict[str, float]()  # seconds of the longest chain up to a job, and from it on
    due = {job.name: min(job.deadline, horizon) for job in jobs}
    for name in order:
        ahead[name] = least_seconds[name] + max((ahead[n] for n in after[name]), default=0.0)
    for name in reversed(order):
        behind[name] = least_seconds[name] + max((behind[n] for n in followers[name]), default=0.0)
        due[name] = min([due[name], *(due[n] for n in followers[name])])
    result = []
    for job in jobs:
        name, own = job.name, least_seconds[job.name]
        if after[name] or followers[name]:
            whole, time = max(ahead[name] + behind[name] - own, 1e-9), max(0.0, due[name] - start)
            begins, ends = start + time * (ahead[name] - own) / whole, start + time * ahead[name] / whole
            begins = begins if after[name] else 0.0
            job = replace(
                job,
                release=max(job.release, begins),
                deadline=min(job.deadline, ends),
                after=tuple(after[name]),
                not_before=job.release,
            )
        result.append(job)
    return tuple(result)


def with_spans(problem: Problem, horizon: float) -> Problem:
    """The same problem, where jobs that follow each other have spans of their own; the last ends by the horizon."""
    with np.errstate(invalid="ignore"):
        able = np.where(problem.memory_fits & problem.has_data, problem.reserved, np.nan)
    least = np.nanmin(able, axis=1, initial=FOREVER)
    seconds = {job.name: float(own) if own < FOREVER else 1.0 for job, own in zip(problem.jobs, least, strict=True)}
    start = min((since for device in problem.devices for since, _ in device.available), default=0.0)
    return replace(problem, jobs=split_chains(problem.jobs, seconds, start, horizon))
