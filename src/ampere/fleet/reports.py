"""What jobs have spent so far, and what that says about the rest: a plan is made again as jobs report.

    {"seconds_since_start": 600,
     "jobs": [{"job": "digits", "device": "phone", "done": 0.4, "joules": 410, "seconds": 300}]}

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

from .problem import FOREVER, Problem

OWN_ERROR = 0.05  # relative, between jobs of one device: what one job says about another


@dataclass(frozen=True)
class JobReport:
    """How far a job is, and what it has cost."""

    job: str
    device: str
    done: float  # share of its iterations, up to 1
    joules: float
    seconds: float


@dataclass(frozen=True)
class Reports:
    """What all jobs have reported, so many seconds after the start of the plan."""

    jobs: tuple[JobReport, ...]
    seconds_since_start: float = 0.0


def reported(path: Path) -> Reports:
    """The reports of a file."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        jobs = tuple(
            JobReport(str(r["job"]), str(r["device"]), float(r["done"]), float(r["joules"]), float(r["seconds"]))
            for r in record["jobs"]
        )
        found = Reports(jobs, float(record.get("seconds_since_start", 0.0)))
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}: check the path and its permissions") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"{path} holds no reports of jobs ({error!s:.100}): each has job, device, done, joules and seconds"
        ) from None
    if not 0 <= found.seconds_since_start < FOREVER:
        raise UsageError(f"{path}: seconds_since_start is {found.seconds_since_start:g}, but must be a number from 0")
    for report in found.jobs:
        if not (0 <= report.done <= 1 and 0 <= report.joules < FOREVER and 0 <= report.seconds < FOREVER):
            raise UsageError(
                f"{path}: the report of {report.job!r:.60} is impossible: done is a share from 0 to 1, "
                "joules and seconds are numbers from 0"
            )
    return found


def with_reports(problem: Problem, so_far: Reports) -> Problem:
    """What is left to plan: the rest of running jobs where they run, batteries and estimates as they turned out."""
    reports, now = so_far.jobs, so_far.seconds_since_start
    jobs = {job.name: j for j, job in enumerate(problem.jobs)}
    devices = {device.name: d for d, device in enumerate(problem.devices)}
    for report in reports:
        if report.job not in jobs or report.device not in devices:
            raise UsageError(f"a report names {report.job!r:.60} on {report.device!r:.60}, which are not in the files")
    joules, stddev, seconds = problem.joules.copy(), problem.stddev.copy(), problem.seconds.copy()
    for name, d in devices.items():
        seen = [(r, jobs[r.job]) for r in reports if r.device == name and r.done > 0]
        spent = [r.joules / (r.done * problem.joules[j, d]) for r, j in seen]
        taken = [r.seconds / (r.done * problem.seconds[j, d]) for r, j in seen]
        with np.errstate(invalid="ignore", divide="ignore"):
            relative = np.nanmedian(np.append(stddev[:, d] / joules[:, d], OWN_ERROR))
        factor, left = _factor(spent, float(relative))
        joules[:, d] *= factor
        stddev[:, d] *= factor * left
        seconds[:, d] *= _factor(taken, float(relative))[0]
    for report in reports:
        j, d, rest = jobs[report.job], devices[report.device], max(0.0, 1 - report.done)
        elsewhere = np.arange(len(problem.devices)) != d
        for costs in (joules, stddev, seconds):
            costs[j, d] *= rest
            costs[j, elsewhere] = np.nan  # its checkpoint is not there
    spent_on = {name: sum(r.joules for r in reports if r.device == name) for name in devices}
    limits = tuple(
        replace(
            device,
            battery_joules=max(0.0, device.battery_joules - spent_on[device.name]),
            available=tuple((max(begin, now), end) for begin, end in device.available if end > now),
        )
        for device in problem.devices
    )
    ended = {report.job for report in reports if report.done >= 1}
    left_over = [j for j, job in enumerate(problem.jobs) if job.name not in ended]
    if not left_over:
        raise UsageError("all jobs have ended: there is nothing left to schedule")
    changed = replace(problem, devices=limits, joules=joules, stddev=stddev, seconds=seconds)
    return changed.only(left_over, range(len(limits)))


def _factor(ratios: Sequence[float], relative: float) -> tuple[float, float]:
    """The factor on a device's estimates, and what is left of their standard deviation."""
    known = np.array([ratio for ratio in ratios if np.isfinite(ratio)])
    if len(known) == 0:
        return 1.0, 1.0
    prior, noise = max(relative, 1e-6) ** 2, OWN_ERROR**2 / len(known)
    weight = prior / (prior + noise)
    left = float(np.sqrt((prior * noise / (prior + noise) + OWN_ERROR**2) / prior))
    return 1 + weight * (float(np.mean(known)) - 1), min(1.0, left)
