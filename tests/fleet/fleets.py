"""Random fleets and jobs, as numbers: some batteries, some hours, some deadlines."""

import os
import time
from dataclasses import replace

import numpy as np

from ampere.core.errors import DeviceError
from ampere.fleet.problem import FOREVER, DeviceLimits, JobLimits, Problem

HOUR, DAY = 3600.0, 86400.0


def random_problem(seed: int, jobs: int, devices: int, tight: float = 1.0, priced: bool = False, **changed) -> Problem:
    rng = np.random.default_rng(seed)
    speed = np.exp(rng.normal(0, 1, devices))
    watts = np.exp(rng.normal(1.5, 0.5, devices)) * speed**0.6
    work = np.exp(rng.normal(0, 1, jobs)) * 600
    seconds = work[:, None] / speed * np.exp(rng.normal(0, 0.3, (jobs, devices)))
    joules = seconds * watts
    stddev = joules * rng.uniform(0.03, 0.15, (1, devices))
    share, load = np.median(joules, axis=1).sum() / devices, np.median(seconds, axis=1).sum() / devices
    hours = tuple((h * HOUR, 1 + 0.5 * np.sin(h / 24 * 6.28)) for h in range(24))
    limits = [
        DeviceLimits(
            f"device {d}",
            float(share * rng.uniform(0.5, 2.5) * tight) if rng.random() < 0.6 else FOREVER,
            float(rng.uniform(1, 8)) * 1e9,
            ((0.0, FOREVER),) if rng.random() < 0.5 else ((float(rng.uniform(0, 4)) * HOUR, DAY),),
            hours if priced else ((0.0, 1.0),),
        )
        for d in range(devices)
    ]
    needs = [
        JobLimits(
            f"job {j}",
            float(min(DAY, max(load * rng.uniform(0.5, 4), 3 * np.median(seconds[j])))),
            memory_bytes=float(rng.uniform(0.1, 4)) * 1e9,
            flops=float(work[j]) * 1e9,
        )
        for j in range(jobs)
    ]
    return replace(Problem(tuple(needs), tuple(limits), joules, stddev, seconds), **changed)


def one_device(*seconds: float, device: DeviceLimits | None = None, **limits) -> Problem:
    """Jobs of so many seconds on one device of 1 W whose estimates are certain."""
    jobs = tuple(JobLimits(f"job {n}", **{k: v[n] for k, v in limits.items()}) for n in range(len(seconds)))
    costs = np.array(seconds)[:, None]
    return Problem(jobs, (device or DeviceLimits("device"),), costs.copy(), 0 * costs, costs.copy())


def answers(action, device, arguments):
    """What a task does with a device, by its name. It is here because dask workers import it."""
    if device.name.startswith("slow"):
        time.sleep(2)
    if device.name.startswith("gone"):
        raise DeviceError(f"{device.address} does not answer: switch it on")
    if device.name.startswith("bug"):
        raise ZeroDivisionError("oh")
    return {"name": device.name, "process": os.getpid()}


def negative(number):
    """A piece of bulk work."""
    time.sleep(0.05)
    return -number
