"""From one block on a device to an observation, and rounds of one experiment taken together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any

from ampere.core import Measurement, Meter, TrainingSetup
from ampere.core.windows import plan_windows
from ampere.devices.device import Block
from ampere.storage.profile import Observation, Profile

from .experiment import Experiment

if TYPE_CHECKING:
    from .strategies.strategy import Trainer

# Rounds of the same experiment, taken together.


def merged(observations: Iterable[Observation]) -> tuple[Observation, ...]:
    """One observation for each network, purpose, stage and allocator, with all its rounds, in order of first sight."""
    together: dict[tuple[object, ...], list[Observation]] = {}
    for o in observations:
        together.setdefault((o.network, o.purpose, o.stage, o.measurement.allocator), []).append(o)
    return tuple(replace(same[0], measurement=_median([o.measurement for o in same])) for same in together.values())


def _compiling(measurements: list[Measurement]) -> dict[str, float]:
    """Seconds of compiling add up; where nothing was compiled there are none."""
    seconds = sum(m.conditions.get("compile_seconds", 0.0) for m in measurements)
    return {"compile_seconds": seconds} if seconds else {}


def _median(measurements: list[Measurement]) -> Measurement:
    if len(measurements) == 1:
        return measurements[0]
    rounds = tuple(r for m in measurements for r in m.rounds)
    flagged = [flag for m in measurements for flag in m.flags]
    kept = tuple(sorted({flag for flag in flagged if 2 * flagged.count(flag) > len(measurements)}))
    first = measurements[0]
    counted = tuple(j for m in measurements for j in m.joules_rounds)
    scale = median(rounds) / first.ratio  # all figures of one measurement share the yardstick's nominal cost
    return replace(
        measurements[-1],
        joules=median(counted) if counted else first.joules * scale,
        seconds=median(m.seconds / m.ratio for m in measurements) * median(rounds),
        cpu_seconds=first.cpu_seconds * scale,
        ratio=median(rounds),
        iterations=sum(m.iterations for m in measurements),
        rounds=rounds,
        yardsticks=tuple(y for m in measurements for y in m.yardsticks),
        flags=kept,
        meter=next((m.meter for m in measurements if m.joules_rounds), first.meter),
        conditions={**measurements[-1].conditions, **_compiling(measurements)},
        joules_rounds=counted,
        windows=tuple(w for m in measurements for w in m.windows),
    )


# From one block on a device to a record that counts.

# A quiet block pairs every step with the yardstick; a plain one is a loop as a user writes it, from a fresh start.
QUIET = {"pairing": "step", "isolation": "inline"}
PLAIN = {"pairing": "window", "isolation": "fork"}
QUIET_SECONDS, PLAIN_SECONDS = 0.04, 0.08
BUILD_SECONDS = {"tuned": 0.012, "system": 0.06}


def iterations_of(allocator: str, step_seconds: float) -> tuple[int, int]:
    """How many steps to measure and how many to warm up: short blocks, since blocks differ more than steps."""
    if allocator == "system":
        return max(8, min(24, round(PLAIN_SECONDS / step_seconds))), 3
    return max(4, min(8, round(QUIET_SECONDS / step_seconds))), 2


def block_seconds(allocator: str, step_seconds: float, yardstick_seconds: float, window_seconds: float = 0.0) -> float:
    """What a block costs, so that the planner can weigh it; a slow counter needs its windows, of both."""
    iterations, warmup = iterations_of(allocator, step_seconds)
    pairs = iterations
    if allocator == "system":
        plan = plan_windows(iterations, step_seconds)
        pairs = (len(plan.targets) + 1) * (plan.settling + plan.yardsticks)
    trained, beside = (iterations + warmup) * step_seconds, (pairs + warmup) * yardstick_seconds
    return BUILD_SECONDS[allocator] + max(trained, window_seconds) + max(beside, window_seconds)


def request(
    experiment: Experiment,
    setup: TrainingSetup,
    step_seconds: float,
    thorough: bool = False,
    protocol: str = "yardstick",
    count: bool = True,
    power: bool = False,
) -> dict[str, Any]:
    """`thorough` is for what is held against estimates: blocks twice as long. A loop by the clock trains
    twice as many steps, which takes as long as steps with a yardstick beside each.
    """
    iterations, warmup = iterations_of(experiment.allocator, step_seconds / 2 if thorough else step_seconds)
    how: dict[str, Any] = dict(PLAIN if experiment.system else QUIET)
    if experiment.stage != "step":
        how = {**how, "stage": experiment.stage}
    if not count:
        how = {**how, "count": False}
    if power:
        how = {**how, "power": True}
    if protocol == "wallclock":
        iterations, how = 2 * iterations, {**how, "pairing": "plain"}
    return {"subject": experiment.subject, "setup": setup, "iterations": iterations, "warmup": warmup, **how}


def observation(
    experiment: Experiment,
    block: Block,
    meter: Meter,
    yardstick_seconds: float,
    yardstick_joules: float | None = None,
) -> Observation | None:
    """One round of a measurement at the yardstick's nominal speed; None where the block has no usable figure.

    A counter's joules are told in those of the yardstick beside them, as seconds are: a clock that was lowered
    changes both.
    """
    if block.ratio is None or block.yardstick_seconds is None:
        return _by_the_clock(experiment, block, meter, yardstick_seconds, yardstick_joules is not None)
    if not (math.isfinite(block.ratio) and block.ratio > 0 and block.cpu_seconds > 0):
        return None
    cpu_seconds = block.ratio * yardstick_seconds
    joules, counted = cpu_seconds * (block.joules or 0.0) / block.cpu_seconds, False
    if yardstick_joules and block.yardstick_joules and block.joules:
        joules, counted = block.joules / block.yardstick_joules * yardstick_joules, True
    if block.joules is None and yardstick_joules:
        joules, meter = cpu_seconds * yardstick_joules / yardstick_seconds, timed_only(meter)
    conditions: Mapping[str, float] = {
        **block.conditions,
        "page_faults": block.page_faults,
        **compiling(block),
    }
    measurement = Measurement(
        joules=joules,
        seconds=cpu_seconds * block.seconds / block.cpu_seconds,
        cpu_seconds=cpu_seconds,
        ratio=block.ratio,
        iterations=block.iterations,
        rounds=(block.ratio,),
        yardsticks=(block.yardstick_seconds,),
        meter=meter,
        allocator=experiment.allocator,
        conditions=conditions,
        flags=tuple(block.flags),
        joules_rounds=(joules,) if counted else (),
        windows=(block.windows,) if block.windows else (),
    )
    return Observation(experiment.network, measurement, experiment.purpose, experiment.stage)


def read_by_gauge(seen: Observation, joules: float) -> Observation:
    """Joules of a step as it just was; told beside the yardstick's power they are right as they are.

    A moment a little slower than usual draws a little less: a step's work costs what it costs, however long it takes.
    """
    m = seen.measurement
    joules = m.joules if m.joules_rounds else joules
    return replace(seen, measurement=replace(m, joules=joules, joules_rounds=(joules,)))


def compiling(block: Block) -> dict[str, float]:
    """What was spent before the first step, where anything was compiled: told apart, and in no other figure."""
    return {"compile_seconds": block.compile_seconds} if block.compile_seconds else {}


def timed_only(meter: Meter) -> Meter:
    """Where joules come from that nobody read: the power of the yardstick."""
    return replace(meter, measured=False, scope=f"time at the yardstick's power; {meter.scope}", window_seconds=0.0)


def _by_the_clock(
    experiment: Experiment, block: Block, meter: Meter, yardstick_seconds: float, counted: bool
) -> Observation | None:
    """A plain loop as fast or slow as the machine just was: its cost is the wall's seconds, its joules the meter's."""
    if not (math.isfinite(block.seconds) and block.seconds > 0 and block.cpu_seconds > 0 and (block.joules or 0.0) > 0):
        return None
    ratio = block.seconds / yardstick_seconds
    measurement = Measurement(
        joules=block.joules or 0.0,
        seconds=block.seconds,
        cpu_seconds=block.cpu_seconds,
        ratio=ratio,
        iterations=block.iterations,
        rounds=(ratio,),
        meter=meter,
        allocator=experiment.allocator,
        conditions={**block.conditions, "page_faults": block.page_faults, "wallclock": 1.0, **compiling(block)},
        flags=tuple(block.flags),
        joules_rounds=(block.joules or 0.0,) if counted else (),
    )
    return Observation(experiment.network, measurement, experiment.purpose, experiment.stage)


# One round of a network's measurement, for what is held against estimates.


def one_round(
    experiment: Experiment, device: Trainer, profile: Profile, step_seconds: float, thorough: bool = True
) -> list[Observation]:
    """`step_seconds` is a guess. Nothing where the block has no usable figure."""
    block = device.block(**request(experiment, profile.setup, step_seconds, thorough))
    seen = observation(experiment, block, profile.meter, profile.yardstick_seconds, profile.yardstick_joules)
    return [] if seen is None else [seen]
