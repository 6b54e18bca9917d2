"""What jobs have spent so far, and what that says about the rest: a plan is made again as jobs report.

    {"jobs": [{"job": "digits", "device": "phone", "done": 0.4, "joules": 410, "seconds": 300}]}

The ratio of what a device's jobs really cost to what was estimated scales the estimates of its other jobs: the more of
its work has been seen, the closer to the ratio, and the smaller what remains uncertain.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ampere.core.errors import StorageError, UsageError

from .problem import Problem

OWN_ERROR = 0.05  # relative, between jobs of one device: what one job says about another


@dataclass(frozen=True)
class JobReport:
    """How far a job is, and what it has cost."""

    job: str
    device: str
    done: float  # share of its iterations, up to 1
    joules: float
    seconds: float


def reported(path: Path) -> tuple[JobReport, ...]:
    """The reports of a file."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["jobs"]
        found = tuple(
            JobReport(str(r["job"]), str(r["device"]), float(r["done"]), float(r["joules"]), float(r["seconds"]))
            for r in rows
        )
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}: check the path and its permissions") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(
            f"{path} holds no reports of jobs ({error!s:.100}): each has job, device, done, joules, seconds"
        ) from None
    for report in found:
        if not (0 <= report.done <= 1 and report.joules >= 0 and report.seconds >= 0):
            raise UsageError(f"{path}: the report of {report.job!r:.60} is impossible: done is a share from 0 to 1")
    return found


def with_reports(problem: Problem, reports: Sequence[JobReport]) -> Problem:
    """What is left to plan: the rest of running jobs where they run, batteries and estimates as they turned out."""
    jobs = {job.name: j for j, job in enumerate(problem.jobs)}
    devices = {device.name: d for d, device in enumerate(problem.devices)}
    for report in reports:
        if report.job not in jobs or report.device not in devices:
            raise UsageError(f"a report names {report.job!r:.60} on {report.device!r:.60}, which are not in the files")
    joules, stddev, seconds = problem.joules.copy(), problem.stddev.copy(), problem.seconds.copy()
    for name, d in devices.items():
        mine = [r for r in reports if r.device == name and r.done > 0]
        factor, left = _factor(
            [(r, float(problem.joules[jobs[r.job], d])) for r in mine], float(np.nanmedian(stddev[:, d] / joules[:, d]))
        )
        slower, _ = _factor([(replace(r, joules=r.seconds), float(problem.seconds[jobs[r.job], d])) for r in mine], 0.2)
        joules[:, d] *= factor
        stddev[:, d] *= factor * left
        seconds[:, d] *= slower
    for report in reports:
        j, d, rest = jobs[report.job], devices[report.device], max(0.0, 1 - report.done)
        elsewhere = np.arange(len(problem.devices)) != d
        joules[j, d], stddev[j, d], seconds[j, d] = (rest * float(m[j, d]) for m in (joules, stddev, seconds))
        joules[j, elsewhere] = stddev[j, elsewhere] = seconds[j, elsewhere] = np.nan  # its checkpoint is there
    spent = {name: sum(r.joules for r in reports if r.device == name) for name in devices}
    limits = tuple(replace(d, battery_joules=max(0.0, d.battery_joules - spent[d.name])) for d in problem.devices)
    left_over = [j for j in range(len(problem.jobs)) if problem.jobs[j].name not in _ended(reports)]
    if not left_over:
        raise UsageError("all jobs have ended: there is nothing left to schedule")
    changed = replace(problem, devices=limits, joules=joules, stddev=stddev, seconds=seconds)
    return changed.only(left_over, range(len(limits)))


def _ended(reports: Sequence[JobReport]) -> set[str]:
    return {report.job for report in reports if report.done >= 1}


def _factor(seen: Sequence[tuple[JobReport, float]], relative: float) -> tuple[float, float]:
    """The factor on a device's estimates, and what is left of their standard deviation."""
    ratios = np.array([r.joules / (r.done * expected) for r, expected in seen if expected > 0])
    if len(ratios) == 0:
        return 1.0, 1.0
    prior, noise = max(relative, 1e-6) ** 2, OWN_ERROR**2 / len(ratios)
    weight = prior / (prior + noise)
    left = float(np.sqrt((prior * noise / (prior + noise) + OWN_ERROR**2) / prior))
    return 1 + weight * (float(np.mean(ratios)) - 1), min(1.0, left)
