"""What several numbers of threads have in common: seconds on one of them follow from seconds on another.

    s_a(net)   seconds of a step on a threads, estimated from all that was measured on a threads
    s_b(net) = s_a(net) x f(net)

The factor f varies far less between networks than time does, as power does, and depends on the same rates of work:
large products are divided among threads, many small operations are not. So it is learnt as power is (power.py), from
the networks that were measured on b threads. Every network that was measured on a threads only is one more network of
the fit on b threads. All n of them have a part of the factor's error in common, whose variance counts n times for
each, and each deviates from it by as much as measured networks do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import hypot, sqrt

import numpy as np

from ampere.storage.profile import STEP, Profile

from .fitting import few_enough, fit
from .normalization import NormalizedCost, costs_of, reference_of
from .power import Power

COMMON = 0.25  # part of the variance of factors that all networks have in common
FEWEST = 8  # networks on the threads in question: with fewer there is nothing to learn the factor from


def borrowed(profile: Profile, own: Sequence[NormalizedCost]) -> tuple[NormalizedCost, ...]:
    """Costs of networks that were measured on other numbers of threads only, as they would be on the profile's own."""
    found = [_converted(there, own, other, profile) for other, there in only_elsewhere(profile, own)]
    return tuple(cost for costs in found for cost in costs)


def only_elsewhere(
    profile: Profile, own: Sequence[NormalizedCost]
) -> Iterator[tuple[Profile, Sequence[NormalizedCost]]]:
    """The profiles with other numbers of threads, each with its costs of networks that no profile before it has."""
    known = {(c.network, c.allocator) for c in own}
    for other in profile.others if len(own) >= FEWEST else ():
        there = [c for c in costs_of(few_enough(other)) if c.stage == STEP and (c.network, c.allocator) not in known]
        if there:
            yield other, there
            known |= {(c.network, c.allocator) for c in there}


def _converted(
    there: Sequence[NormalizedCost], own: Sequence[NormalizedCost], other: Profile, profile: Profile
) -> list[NormalizedCost]:
    model = fit(other)
    on_others = np.array([model.answer(c.network, c.allocator == "system").seconds for c in own])
    seconds = np.array([c.guiding_seconds for c in there])
    factors = Power(
        [c.network for c in (*own, *there)],
        np.concatenate([on_others, seconds]),
        np.concatenate([np.array([c.guiding_seconds for c in own]) / on_others, np.ones(len(there))]),
        np.array([True] * len(own) + [False] * len(there)),
        np.array([c.purpose == "network" for c in (*own, *there)]),
    )
    means, deviations = factors.watts([c.network for c in there], seconds)
    reference = reference_of(profile)
    watts = float(np.median([c.joules / c.guiding_seconds for c in own]))
    wider = sqrt(1 + COMMON * (len(there) - 1))
    return [
        replace(
            cost,
            rounds=(float(cost.guiding_seconds * factor) / reference.seconds,),
            yardsticks=(),
            joules=watts * float(cost.guiding_seconds * factor),
            joules_rounds=(),
            seconds=float(cost.guiding_seconds * factor),
            busy_seconds=float(cost.guiding_seconds * factor),
            flags=(),
            watts_uncertainty=hypot(float(deviation) * wider, factors.scatter),
            clock=reference.clock,
        )
        for cost, factor, deviation in zip(there, means, deviations, strict=True)
    ]
