"""From raw measurements to costs in one reference condition.

    t    seconds of a step          y    of the yardstick paired with it        y0   of the yardstick in the reference

When the machine slows down, the yardstick (the reference step) does not slow down exactly as networks do: a neighbour
that takes memory bandwidth slows it more, a lower clock slows both alike. So a network shares only a part of the
yardstick's slowdown,

    t / t0 = (y / y0) ^ share,       hence       t0 / y0 = (t / y) (y / y0) ^ (1 - share),

and the share is learnt: from networks that were measured more than once, and from the residuals of all of them, which
move with the yardstick where the share is wrong. On a throttled device it is near 1 (the plain ratio); on a shared
machine it is lower. All estimates have its uncertainty in common.

A yardstick step right after a step of a large network takes up to half as long again as alone, because the network
leaves its own memory in the caches; one of a loop takes less than alone, which here is the second and third step after
something else has run. So y is divided by the slowdown that is usual for such a pair, which the profile's own blocks
tell, and by its own where a yardstick was read in a loop beside a plain process: each such reading has early steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import mean, median
from typing import NamedTuple

import numpy as np

from ampere.core import Measurement, Meter, Network
from ampere.core.measurement import (
    BUSY,
    WALL,
    YARDSTICK_ALONE,
    YARDSTICK_EARLY,
    clock_of,
    joules_per_iteration,
    relative_spread,
    seconds_per_iteration,
)
from ampere.storage.profile import Observation, Profile, YardstickReading

from .features import Array
from .page_faults import page_faults_in

YARDSTICK_JOULES = (
    "yardstick_joules"  # key of a condition: joules of a yardstick step, read by a gauge right afterwards
)
ROUND_NOISE = 0.025  # relative, of a round's ratio
PRIOR_STDDEV = 0.3  # of the drift share around 1, before anything was measured
LEAST_DRIFT_SHARE = 0.3
FEWEST_FOR_REFERENCE = 8  # blocks that say how long the yardstick takes alone
ALONE_WITHIN = 4.0  # factor between that and their windows of it: beyond it one of the two is wrong
FEWEST_PAIRED, FEWEST_LOOPS = 20, 5  # blocks that tell the slowdown of the yardstick beside a network
KNOTS = np.log([0.3, 1.0, 3.0, 10.0, 30.0])  # of a network's cost in yardstick steps, between which it is a line
SMOOTH, OUTLIER = 2.0, 0.25  # blocks that a change from knot to knot is worth; log slowdown off the line


class Reference(NamedTuple):
    """The condition that costs refer to: a yardstick step's cost in it, and the clock that costs are compared by."""

    seconds: float
    joules: float | None = None  # where a counter reads them
    clock: str = BUSY
    after_steps: tuple[float, ...] = ()  # log slowdown of a yardstick step between steps of a network, at each knot
    in_loops: float = 0.0  # the same of a yardstick in short loops, between those of a network

    def slowdown(self, measurement: Measurement, ratio: float) -> float:
        """How much longer than alone a yardstick takes as it was paired in this measurement."""
        early = measurement.conditions.get(YARDSTICK_EARLY, 0.0)
        paired = seconds_per_iteration(measurement.yardstick, self.clock)
        if early > 0 and 1 / ALONE_WITHIN < paired / early < ALONE_WITHIN:
            return paired / early
        if measurement.allocator == "system":
            return math.exp(self.in_loops)
        if not self.after_steps or not measurement.step_by_step:
            return 1.0
        return math.exp(float(np.interp(math.log(max(ratio, 1e-9)), KNOTS, self.after_steps)))

    @property
    def loop_seconds(self) -> float:
        """Seconds of a yardstick step that is read by itself, in a loop."""
        return self.seconds * math.exp(self.in_loops)


def guide(timing: str, threads: int) -> str:
    """The clock that costs are compared by: busy time of one thread paired with a yardstick, else wall time.

    Several threads wait for each other and spin meanwhile. How much of that is busy time varies by a tenth from one
    block to the next; wall time does not, once it is divided by the yardstick's.
    """
    return WALL if timing == "wallclock" else clock_of(threads)


def reference_of(profile: Profile) -> Reference:
    """The condition that a profile's costs refer to."""
    clock = guide(profile.timing, profile.setup.threads)
    plain = Reference(profile.yardstick_seconds, profile.yardstick_joules, clock)
    return with_slowdowns(plain, profile.yardstick_readings)


def with_slowdowns(reference: Reference, readings: Iterable[YardstickReading]) -> Reference:
    """The reference with what networks usually slow the yardstick down by, as far as enough blocks tell it."""
    paired, loops = list[tuple[float, float]](), list[float]()
    for ratio, slowdown, by_step, system in readings:
        if not 1 / ALONE_WITHIN < slowdown < ALONE_WITHIN:
            continue
        if by_step and not system:
            paired.append((math.log(ratio), math.log(slowdown)))
        elif system and not by_step:
            loops.append(math.log(slowdown))
    after = _line(np.array(paired)) if len(paired) >= FEWEST_PAIRED else ()
    return reference._replace(after_steps=after, in_loops=median(loops) if len(loops) >= FEWEST_LOOPS else 0.0)


def _line(points: Array) -> tuple[float, ...]:
    """The line through points that is straight between knots, twice: the second time without outliers."""
    place, height = points.T
    hats = np.array([np.interp(place, KNOTS, row) for row in np.eye(len(KNOTS))]).T
    steps = np.diff(np.eye(len(KNOTS)), axis=0)
    near = np.ones(len(place), bool)
    for _ in range(2):
        products = hats[near].T @ hats[near] + SMOOTH * steps.T @ steps + 1e-6 * np.eye(len(KNOTS))
        found = np.linalg.solve(products, hats[near].T @ height[near])
        near = np.abs(hats @ found - height) < OUTLIER
    return tuple(map(float, found))


def yardstick_alone(observations: Iterable[Observation], clock: str = BUSY) -> float | None:
    """Seconds of a yardstick step, the median over all blocks that timed it alone; None where few did.

    Not of the steps that are paired with a network: how much longer those take depends on the network.
    """
    tuned = (o.measurement for o in observations if o.measurement.allocator == "tuned" and o.measurement.yardstick)
    pairs = [(m.conditions.get(YARDSTICK_ALONE, 0.0), seconds_per_iteration(m.yardstick, clock)) for m in tuned]
    found = [alone for alone, paired in pairs if paired / ALONE_WITHIN < alone < paired * ALONE_WITHIN]
    return median(found) if len(found) >= FEWEST_FOR_REFERENCE else None


def speed_spread(observations: Iterable[Observation], reference: Reference) -> float | None:
    """How much the machine's speed wandered: the spread of the yardstick's cost between blocks; None where few read it.

    It is a robust standard deviation of logarithms, so relative.
    """
    paired = (o.measurement for o in observations if o.measurement.allocator == "tuned" and o.measurement.yardstick)
    clock = reference.clock
    pairs = ((m, seconds_per_iteration(m.yardstick, clock), m.ratio(clock)) for m in paired)
    costs = [seconds / reference.slowdown(m, ratio) for m, seconds, ratio in pairs if seconds > 0 and ratio]
    if len(costs) < FEWEST_FOR_REFERENCE:
        return None
    logs = np.log(costs)
    return float(1.4826 * np.median(np.abs(logs - np.median(logs))))


@dataclass(frozen=True)
class NormalizedCost:
    """A network's cost of a step in the reference condition, from all rounds that measured it."""

    network: Network
    purpose: str
    stage: str
    allocator: str
    rounds: tuple[float, ...]  # the cost in yardstick steps, of each round
    yardsticks: tuple[float, ...]  # seconds of the yardstick step paired with each round; empty for plain loops
    joules: float
    joules_rounds: tuple[float, ...]  # of each round whose joules a counter read
    seconds: float  # wall time
    busy_seconds: float
    iterations: int
    meter: Meter
    flags: tuple[str, ...] = ()  # of more than half of the rounds
    compile_seconds: float = 0.0  # of all rounds
    watts_uncertainty: float = 0.0  # relative, of the power that joules were computed with
    clock: str = BUSY  # that the rounds were compared by
    page_faults: float = 0.0  # of a step
    by_process: bool = False  # each round is a process of a user's own code

    @property
    def guiding_seconds(self) -> float:
        """Seconds by the clock that the rounds were compared by."""
        return self.seconds if self.clock == WALL else self.busy_seconds

    @property
    def ratio(self) -> float:
        """The cost in yardstick steps."""
        return _typical(self.rounds, self.by_process)

    @property
    def spread(self) -> float | None:
        """Relative spread of the rounds; None where there is only one."""
        return relative_spread(self.rounds)

    @property
    def joules_spread(self) -> float | None:
        """Relative spread of the rounds' joules; None where fewer than two were read."""
        return relative_spread(self.joules_rounds)

    def scaled(self, factor: float) -> NormalizedCost:
        """The same step in a condition in which everything costs `factor` times as much."""
        return replace(
            self,
            rounds=tuple(r * factor for r in self.rounds),
            joules=self.joules * factor,
            joules_rounds=tuple(j * factor for j in self.joules_rounds),
            seconds=self.seconds * factor,
            busy_seconds=self.busy_seconds * factor,
        )


def costs_of(profile: Profile) -> tuple[NormalizedCost, ...]:
    """Everything that was measured for a profile, without users' own runs, with usual page faults."""
    seen = normalized(profile.observations, reference_of(profile))
    return page_faults_in(seen).at_usual(seen)


def runs_of(profile: Profile) -> list[NormalizedCost]:
    """Users' own runs one by one, in the order in which they were recorded."""
    return [cost for run in profile.runs for cost in normalized([run], reference_of(profile))]


def normalized(observations: Iterable[Observation], reference: Reference) -> tuple[NormalizedCost, ...]:
    """One cost for each network, purpose, stage and allocator, in order of appearance, without unusable rounds."""
    together: dict[tuple[Network, str, str, str], list[Measurement]] = {}
    for o in observations:
        if usable(o.measurement, reference):
            together.setdefault((o.network, o.purpose, o.stage, o.measurement.allocator), []).append(o.measurement)
    return tuple(_cost(what, measurements, reference) for what, measurements in together.items())


def usable(measurement: Measurement, reference: Reference) -> bool:
    """Whether a measurement has a cost: positive time, and joules that were read or can be computed."""
    m = measurement
    ratio = m.ratio(reference.clock) if m.yardstick else m.wall_seconds
    finite = ratio is not None and math.isfinite(ratio) and ratio > 0 and m.busy_seconds > 0
    return finite and (bool(m.joules) or (bool(m.yardstick) and reference.joules is not None))


class _Round(NamedTuple):
    """One measurement at the yardstick's reference cost."""

    ratios: tuple[float, ...]
    yardstick: float | None
    joules: float
    counted: tuple[float, ...]  # joules that a counter read
    seconds: float
    busy_seconds: float
    meter: Meter


def _round(m: Measurement, reference: Reference, purpose: str) -> _Round:
    if not m.yardstick:
        return _plain_round(m, reference, purpose)
    clock, paired = reference.clock, m.ratio(reference.clock) or 0.0
    slowdown = reference.slowdown(m, paired)
    ratio, yardstick = paired * slowdown, seconds_per_iteration(m.yardstick, clock) / slowdown
    cost = ratio * reference.seconds
    joules, counted, meter = _joules(m, cost, reference, slowdown)
    wall, busy = cost, cost
    if clock == BUSY:
        wall = cost * m.wall_seconds / m.busy_seconds
    else:
        busy = cost * sum(w.busy_seconds for w in m.target) / sum(w.wall_seconds for w in m.target)
    return _Round((ratio,), yardstick, joules, counted, wall, busy, meter)


def _joules(
    m: Measurement, cost: float, reference: Reference, slowdown: float
) -> tuple[float, tuple[float, ...], Meter]:
    """Joules of a step that takes so long by the guiding clock, those that a counter read, and the meter.

    A counter's joules are expressed in those of the paired yardstick, because a lower clock changes both.
    """
    clock = reference.clock
    read = joules_per_iteration(m.target, clock)
    paired = joules_per_iteration(m.yardstick, clock) or m.conditions.get(YARDSTICK_JOULES)
    if reference.joules and read:
        joules = read / paired * slowdown * reference.joules if paired else read  # a gauge's need no conversion
        return joules, (joules,), m.meter
    if reference.joules:
        return cost * reference.joules / reference.seconds, (), timed_only(m.meter)
    return cost * (read or 0.0) / seconds_per_iteration(m.target, clock), (), m.meter


def _plain_round(m: Measurement, reference: Reference, purpose: str) -> _Round:
    """A loop without a yardstick, at whatever speed the machine had. Each window of a user's run is a round."""
    each = [window.per_iteration(reference.clock) / reference.seconds for window in m.target]
    joules = [(window.joules or 0.0) / window.iterations for window in m.target]
    if purpose != "run":
        each, joules = [median(each)], [m.joules or 0.0]
    counted = tuple(joules) if reference.joules is not None else ()
    return _Round(tuple(each), None, median(joules), counted, m.wall_seconds, m.busy_seconds, m.meter)


def _cost(what: tuple[Network, str, str, str], measurements: list[Measurement], reference: Reference) -> NormalizedCost:
    rounds = [_round(m, reference, what[1]) for m in measurements]
    ratios = tuple(ratio for r in rounds for ratio in r.ratios)
    counted = tuple(j for r in rounds for j in r.counted)
    flagged = [flag for m in measurements for flag in m.flags]
    by_process = all(YARDSTICK_EARLY in m.conditions for m in measurements)
    first, typical = rounds[0], _typical(ratios, by_process)  # all figures of a round share the yardstick's cost
    return NormalizedCost(
        *what,
        rounds=ratios,
        yardsticks=tuple(r.yardstick for r in rounds if r.yardstick is not None),
        joules=median(counted) if counted else median(r.joules / median(r.ratios) for r in rounds) * typical,
        joules_rounds=counted,
        seconds=median(r.seconds / median(r.ratios) for r in rounds) * typical,
        busy_seconds=median(r.busy_seconds / median(r.ratios) for r in rounds) * typical,
        iterations=sum(m.iterations for m in measurements),
        meter=next((r.meter for r in rounds if r.counted), first.meter),
        flags=tuple(sorted({flag for flag in flagged if 2 * flagged.count(flag) > len(measurements)})),
        compile_seconds=sum(m.compile_seconds for m in measurements),
        clock=reference.clock,
        page_faults=median(m.page_faults for m in measurements),
        by_process=by_process,
    )


def _typical(rounds: Sequence[float], by_process: bool) -> float:
    """Processes of users' own code differ by chance, and the next one is expected to cost their mean.

    What other rounds differ by is what disturbed them.
    """
    return mean(rounds) if by_process else median(rounds)


def timed_only(meter: Meter) -> Meter:
    """The meter of joules that were not read but computed from the power of the yardstick."""
    return replace(meter, measured=False, scope=f"time at the yardstick's power; {meter.scope}", window_seconds=0.0)


class DriftShare(NamedTuple):
    """The part of the yardstick's slowdown that networks share."""

    part: float
    stddev: float


def drift_share_of(costs: Sequence[NormalizedCost]) -> DriftShare:
    """The drift share by least squares within each network: how its rounds' ratios move with their yardsticks."""
    moved, squared = 0.0, (ROUND_NOISE / PRIOR_STDDEV) ** 2
    for c in costs:
        if len(c.rounds) > 1 and len(c.yardsticks) == len(c.rounds):
            ratios, yardsticks = np.log(c.rounds), np.log(c.yardsticks)
            apart = yardsticks - yardsticks.mean()
            moved += float(apart @ (ratios - ratios.mean()))
            squared += float(apart @ apart)
    return DriftShare(_clipped(1.0 + moved / squared), ROUND_NOISE / math.sqrt(squared))


def corrected(before: DriftShare, conditions: Array, errors: Array, deviations: Array) -> DriftShare:
    """The drift share by weighted least squares over networks: how their relative errors move with their conditions."""
    weights = deviations**-2.0
    apart = conditions - np.average(conditions, weights=weights)
    precision = before.stddev**-2 + float(np.sum(weights * apart**2))
    shift = float(np.sum(weights * apart * errors)) / precision
    return DriftShare(_clipped(before.part + shift), precision**-0.5)


def conditions_of(costs: Sequence[NormalizedCost], reference: Reference) -> Array:
    """Log of the paired yardstick's cost over its cost in the reference condition, for each cost."""
    return np.array([float(np.mean(np.log(np.array(c.yardsticks) / reference.seconds))) for c in costs])


def _clipped(part: float) -> float:
    return float(np.clip(part, LEAST_DRIFT_SHARE, 1.0))


def to_reference(cost: NormalizedCost, reference: Reference, share: float) -> NormalizedCost:
    """The same cost, converted to the reference condition."""
    if len(cost.yardsticks) != len(cost.rounds):
        return cost
    pairs = zip(cost.rounds, cost.yardsticks, strict=True)
    rounds = tuple(r * (y / reference.seconds) ** (1.0 - share) for r, y in pairs)
    scale = _typical(rounds, cost.by_process) / cost.ratio
    return replace(
        cost,
        rounds=rounds,
        joules=cost.joules if cost.joules_rounds else cost.joules * scale,  # a counter's are in the reference already
        seconds=cost.seconds * scale,
        busy_seconds=cost.busy_seconds * scale,
    )
