"""A scheduling problem in numbers: what each job costs on each device, and what devices may spend and when.

    j, d, s     a job, a device, a slot: a span of time in which nothing changes on any device
    joules      expected, of job j on device d                     stddev   its standard deviation
    z           standard deviations that hold with the confidence asked for: 1.645 for 95 %
    drawn       joules + z stddev, with what the device draws anyway: what a battery must hold for the job
    reserved    seconds in the same way: what must be free before the deadline

One device's estimates err together, because they come from one profile. The upper bounds of its jobs are therefore
added up as they are: exact where errors are the same for all its jobs, and cautious where they are not.

A job trains on one device, and pauses at a checkpoint while the device is not available. Time can therefore be split
at will, and whether jobs meet their deadlines on a device depends on sums of seconds only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ampere.core import units
from ampere.core.errors import UsageError

Array = NDArray[np.float64]
FOREVER = float("inf")
OBJECTIVES = ("joules", "money", "carbon", "completion")
JOULES_PER_KWH = 3.6e6
TINY = 1e-9  # relative: sums of floats may miss a limit by so much


@dataclass(frozen=True)
class DeviceLimits:
    """What a device may spend, and when. Times are seconds from the start of the plan."""

    name: str
    battery_joules: float = FOREVER
    memory_bytes: float = FOREVER
    available: tuple[tuple[float, float], ...] = ((0.0, FOREVER),)
    rates: tuple[tuple[float, float], ...] = ((0.0, 1.0),)  # (from, what a joule costs): money or carbon, by hour
    watts_idle: float = 0.0  # drawn anyway while it trains, and not in the estimates

    def seconds_free(self, begin: float, end: float) -> float:
        return sum(max(0.0, min(end, to) - max(begin, since)) for since, to in self.available)

    def done_by(self, begin: float, seconds: float) -> float:
        """When it has been free for so long since `begin`; infinite where it never is."""
        for since, to in self.available:
            free = max(0.0, to - max(begin, since))
            if free >= seconds:
                return max(begin, since) + seconds
            seconds -= free
        return FOREVER

    def rate_at(self, time: float) -> float:
        return [rate for since, rate in self.rates if since <= time + 1e-6][-1]


@dataclass(frozen=True)
class JobLimits:
    """What a job needs, wherever it runs."""

    name: str
    deadline: float = FOREVER  # seconds from the start of the plan
    release: float = 0.0  # it does not begin earlier
    memory_bytes: float = 0.0
    only_on: frozenset[str] = frozenset()  # names of the devices that have its data; empty: all
    flops: float = 0.0  # of the whole job, for the baseline that is guided by them
    after: tuple[str, ...] = ()  # jobs that it follows
    not_before: float = 0.0  # where `release` is the begin of its part of a chain's time: its own


@dataclass(frozen=True)
class Problem:
    """Jobs, devices, and what each job costs on each. `problem.py` explains the words."""

    jobs: tuple[JobLimits, ...]
    devices: tuple[DeviceLimits, ...]
    joules: Array  # [jobs, devices]; nan where a job cannot be trained
    stddev: Array
    seconds: Array
    objective: str = "joules"
    confidence: float = 0.95
    notes: Mapping[tuple[str, str], str] = field(default_factory=dict)  # (job, device): why it cannot be trained there

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise UsageError(f"there is no objective {self.objective!r:.40}: choose from {', '.join(OBJECTIVES)}")
        if not 0.5 <= self.confidence < 1:
            raise UsageError(f"a confidence of {self.confidence:g} makes no sense: give one from 50% to 99.9%")

    @cached_property
    def drawn(self) -> Array:
        """Joules that a battery must hold for a job."""
        idle = np.array([device.watts_idle for device in self.devices])
        return (self.joules + idle * self.seconds) * self._safety

    @cached_property
    def reserved(self) -> Array:
        """Seconds that must be free for a job."""
        return self.seconds * self._safety

    @cached_property
    def _safety(self) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            return 1 + NormalDist().inv_cdf(self.confidence) * self.stddev / self.joules

    @cached_property
    def batteries(self) -> Array:
        return np.array([device.battery_joules for device in self.devices])

    @cached_property
    def deadlines(self) -> Array:
        return np.array([job.deadline for job in self.jobs])

    @cached_property
    def releases(self) -> Array:
        return np.array([job.release for job in self.jobs])

    @cached_property
    def memory_fits(self) -> NDArray[np.bool_]:
        needed = np.array([job.memory_bytes for job in self.jobs])
        return needed[:, None] <= np.array([device.memory_bytes for device in self.devices])

    @cached_property
    def has_data(self) -> NDArray[np.bool_]:
        has = np.ones(self.joules.shape, dtype=bool)
        for j, job in enumerate(self.jobs):
            if job.only_on:
                has[j] = [device.name in job.only_on for device in self.devices]
        return has

    @cached_property
    def free_alone(self) -> Array:
        """Seconds that a device is free between a job's release and deadline, [jobs, devices]."""
        free = np.zeros(self.joules.shape)
        known: dict[tuple[tuple[float, float], ...], Array] = {}
        for d, device in enumerate(self.devices):
            if device.available not in known:
                known[device.available] = np.zeros(len(self.jobs)) + sum(
                    np.maximum(0.0, np.minimum(self.deadlines, to) - np.maximum(self.releases, since))
                    for since, to in device.available
                )
            free[:, d] = known[device.available]
        return free

    @cached_property
    def possible(self) -> NDArray[np.bool_]:
        """Whether a job can run on a device that has nothing else to do."""
        with np.errstate(invalid="ignore"):
            fits = (self.drawn <= self.batteries * (1 + TINY)) & (self.reserved <= self.free_alone * (1 + TINY))
        return np.asarray(fits & self.memory_fits & self.has_data)

    @cached_property
    def timed(self) -> bool:
        """Whether it matters when a device trains, apart from deadlines."""
        priced = any(len({rate for _, rate in device.rates}) > 1 for device in self.devices)
        return priced or bool(np.any(self.releases > 0))

    @property
    def horizon(self) -> float:
        """A time by which everything can have been trained, or the last deadline."""
        if len(self.jobs) and np.all(np.isfinite(self.deadlines)):
            return float(np.max(self.deadlines))
        windows = [time for device in self.devices for span in device.available for time in span]
        prices = [since for device in self.devices for since, _ in device.rates]
        times = np.array([0.0, *self.releases, *self.deadlines, *windows, *prices])
        work = float(np.nansum(np.nanmax(np.where(self.possible, self.reserved, 0.0), axis=1, initial=0.0)))
        return float(np.max(times[np.isfinite(times)])) + max(work, 1.0)

    @cached_property
    def slots(self) -> Slots:
        return Slots.of(self, MOST_SLOTS if self.joules.size > FINE_PAIRS else None)

    def only(self, jobs: Sequence[int], devices: Sequence[int]) -> Problem:
        """The same problem with some of the jobs and devices."""
        if [*jobs] == [*range(len(self.jobs))] and [*devices] == [*range(len(self.devices))]:
            return self  # with what it has already computed
        chosen = np.ix_(jobs, devices)
        return replace(
            self,
            jobs=tuple(self.jobs[j] for j in jobs),
            devices=tuple(self.devices[d] for d in devices),
            joules=self.joules[chosen],
            stddev=self.stddev[chosen],
            seconds=self.seconds[chosen],
        )

    def ending_by(self, time: float) -> Problem:
        """The same problem, with no deadline later than a time."""
        return replace(self, jobs=tuple(replace(job, deadline=min(job.deadline, time)) for job in self.jobs))


FINE_PAIRS = 5_000  # jobs times devices, up to which every deadline is an edge of a slot
MOST_SLOTS = 48  # of a large problem; deadlines between two of their edges count as the earlier one


@dataclass(frozen=True)
class Slots:
    """Spans of time between which something changes: a window, a price, a deadline, a release."""

    edges: Array
    free: Array  # seconds, [devices, slots]
    rates: Array  # what a joule costs, [devices, slots]
    first: NDArray[np.intp]  # of each job
    end: NDArray[np.intp]  # of each job, exclusive

    @classmethod
    def of(cls, problem: Problem, most: int | None = None) -> Slots:
        devices = problem.devices
        finite = [*problem.deadlines[np.isfinite(problem.deadlines)], *problem.releases]
        within = [t for d in devices for span in d.available for t in span]
        prices = [t for d in devices for t, _ in d.rates]
        last = problem.horizon
        edges = np.unique([0.0, last, *(t for t in (*finite, *within, *prices) if 0 < t < last)])
        if most is not None and len(edges) > most + 1:
            edges = _fewer(edges, [t for t in prices if 0 < t < last], most + 1)
        edges = edges[np.concatenate([[True], np.diff(edges) > 1e-6])]
        spans = {device.available: _free(device.available, edges) for device in devices}
        return cls(
            edges,
            np.array([spans[device.available] for device in devices]),
            np.array([[device.rate_at(t) for t in edges[:-1]] for device in devices]),
            np.searchsorted(edges, problem.releases - 1e-6),
            np.searchsorted(edges, np.minimum(problem.deadlines, last) + 1e-6, side="right") - 1,
        )

    @property
    def priced(self) -> bool:
        """Whether it matters when a device trains."""
        return bool(np.any(self.rates != self.rates[:, :1]))


def _fewer(edges: Array, kept: Sequence[float], most: int) -> Array:
    """About `most` of the edges, evenly chosen; those at which a price changes stay."""
    fixed = np.unique([edges[0], edges[-1], *kept])
    others = np.setdiff1d(edges, fixed)
    count = min(len(others), max(2, most - len(fixed)))
    some = np.quantile(others, np.linspace(0, 1, count), method="nearest") if count else others
    return np.unique(np.concatenate([fixed, some]))


def _free(available: Sequence[tuple[float, float]], edges: Array) -> Array:
    total = np.zeros(len(edges) - 1)
    for since, to in available:
        total += np.maximum(0.0, np.minimum(edges[1:], to) - np.maximum(edges[:-1], since))
    return total


def joule_rates(prices: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """What a joule costs from each time on, where `prices` are for a kilowatt-hour."""
    return tuple((since, price / JOULES_PER_KWH) for since, price in prices)


def in_words(objective: str, value: float) -> str:
    """A value of an objective with its unit."""
    if objective == "joules":
        return units.joules(value)
    if objective == "completion":
        return units.seconds(value)
    return (
        f"{units.significant(value)} g CO2" if objective == "carbon" else f"{units.significant(value)} in your currency"
    )
