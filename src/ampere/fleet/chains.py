"""Jobs that follow each other: circles among them, and a span of time for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .files import Job


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


def split_chains(jobs: Sequence[Job], least_seconds: Mapping[str, float], horizon: float) -> tuple[Job, ...]:
    """The same jobs, where those that follow each other have spans of their own.

    The time of a chain is split in proportion to how long its jobs take at least, so that each is planned by itself: a
    job is due when the next one may begin.
    """
    after = {job.name: job.after for job in jobs}
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
            whole = max(ahead[name] + behind[name] - own, 1e-9)
            begins, ends = due[name] * (ahead[name] - own) / whole, due[name] * ahead[name] / whole
            job = replace(job, release=max(job.release, begins), deadline=min(job.deadline, ends))
        result.append(job)
    return tuple(result)
