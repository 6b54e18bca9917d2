"""Jobs that follow each other: circles among them, and a span of time for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
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
    by_name = {job.name: job for job in jobs}
    before, after = dict[str, float](), dict[str, float]()
    followers: dict[str, list[str]] = {name: [] for name in by_name}
    for job in jobs:
        for name in job.after:
            followers[name].append(job.name)

    def longest(name: str, links: Callable[[str], Iterable[str]], known: dict[str, float]) -> float:
        if name not in known:
            known[name] = least_seconds[name] + max((longest(n, links, known) for n in links(name)), default=0.0)
        return known[name]

    def due(name: str) -> float:
        return min([by_name[name].deadline, *(due(n) for n in followers[name])])

    result = []
    for job in jobs:
        if not job.after and not followers[job.name]:
            result.append(job)
            continue
        ahead = longest(job.name, lambda n: by_name[n].after, before)
        behind = longest(job.name, lambda n: followers[n], after)
        end = min(due(job.name), horizon)
        whole = max(ahead + behind - least_seconds[job.name], 1e-9)
        begins, ends = end * (ahead - least_seconds[job.name]) / whole, end * ahead / whole
        result.append(replace(job, release=max(job.release, begins), deadline=min(job.deadline, ends)))
    return tuple(result)
