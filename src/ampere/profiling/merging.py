"""Rounds of the same experiment, taken together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from statistics import median

from ampere.network import Measurement
from ampere.profiles.profile import Observation


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
