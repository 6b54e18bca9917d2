"""A space, a budget and a profile -> the front of accuracy against joules.

screen   every candidate's joules, in bulk          candidates, screening
choose   the most promising inside the budget       choosing
train    these, shortly; keep what nothing beats    training, result
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ampere.core.errors import UsageError
from ampere.core.setup import ALLOCATORS
from ampere.estimation.estimate import Estimator, joules_in
from ampere.models.loading import find_space, need_torch
from ampere.pruning.budget import deviations, joules_allowed
from ampere.storage.profile import Profile

from .candidates import Group, Prices
from .choosing import choose
from .result import Found
from .screening import Report, screen
from .spaces import SearchSpace, Values, of_function, of_space
from .training import Train, name_of, of_user, ours, refuse_if_none_trained, tried

TRIALS, STEPS, CONFIDENCE = 12, 300, 0.9
BARS = 60


def search(
    space: str,
    budget: str | float,
    *profiles: Profile | Estimator,
    train: str | Train | None = None,
    vary: Mapping[str, Values] | None = None,
    batches: Sequence[int] = (),
    candidates: int | None = None,
    trials: int = TRIALS,
    steps: int = STEPS,
    confidence: float = CONFIDENCE,
    iterations: int | None = None,
    battery: str | None = None,
    allocator: str = "system",
    input: str | None = None,
    seed: int = 0,
    on_progress: Report = lambda done, total, words: None,
    on_trial: Callable[[Found], None] = lambda found: None,
) -> Found:
    """The best networks of a space inside an energy budget: many screened by their estimates, a few trained.

    `space` is a family, a general space, or `file.py:function` whose arguments `vary`. Each profile is one of the same
    device with another optimiser. `train(model, candidate)` returns an accuracy from 0 to 1; `trials=0` trains nothing.
    """
    _check(trials, steps, candidates, allocator)
    need_torch()
    searched = space_of(space, vary or {}, batches, input, seed)
    run: Train | None = None
    if trials:
        run = of_user(train) if isinstance(train, str) else train or ours(searched, steps, seed)
    known = [profile if isinstance(profile, Estimator) else Estimator(profile) for profile in profiles]
    original = searched.network(searched.original)
    prices = [Prices(estimator, allocator, original.batch) for estimator in known]
    now = min(price.of(original)[0] for price in prices)
    allowed = allowed_joules(budget, now, iterations, joules_in(battery) if battery else None)
    began = time.perf_counter()
    groups = screen(searched, prices, candidates, seed, lambda done, total, words: on_progress(0, 1, words))
    chosen = choose(groups, allowed, deviations(confidence), trials or TRIALS)
    told = known[0].profile
    found = Found(
        space=space,
        device=str(told.device.get("cpu", told.device["id"])),
        meter=known[0].meter,
        budget_joules=allowed,
        confidence=confidence,
        original_joules=now,
        examples=original.batch,
        batches=tuple(dict.fromkeys(g.batch for g in groups)),
        screened=sum(len(g.joules) for g in groups),
        inside=sum(int(np.sum(g.joules <= allowed)) for g in groups),
        screening_seconds=time.perf_counter() - began,
        spread=_spread(groups),
        chosen=tuple(chosen),
        trained_with=name_of(train),
    )
    return _train(found, run, searched, seed, on_progress, on_trial) if run else found


def _train(
    found: Found, run: Train, space: SearchSpace, seed: int, report: Report, on_trial: Callable[[Found], None]
) -> Found:
    for done, candidate in enumerate(found.chosen):
        report(done, len(found.chosen), f"training {done + 1} of {len(found.chosen)}")
        found = replace(found, trials=(*found.trials, tried(run, space, candidate, seed)))
        on_trial(found)
    refuse_if_none_trained(list(found.trials))
    return found


def space_of(
    space: str, vary: Mapping[str, Values], batches: Sequence[int], input: str | None, seed: int
) -> SearchSpace:
    if ":" not in space:
        if vary:
            raise UsageError(f"--vary is for a function of your own: {space} knows what of it may change")
        return of_space(find_space(space), batches, seed)
    if batches:
        raise UsageError(f"{space} has arguments of its own: write --vary batch=8,16 if one of them is its batch")
    return of_function(space, vary, input)


def allowed_joules(budget: str | float, now: float, iterations: int | None, battery: float | None) -> float:
    text = str(budget).strip()
    if text.endswith("%") and text[:-1].replace(".", "", 1).isdigit() and float(text[:-1]) >= 100 and battery is None:
        raise UsageError(
            f"a budget of {text} of the original leaves no choice to make: give a share below 100%, or joules"
        )
    return joules_allowed(budget, now, iterations, battery)


def _check(trials: int, steps: int, candidates: int | None, allocator: str) -> None:
    if trials < 0 or steps < 1:
        raise UsageError(f"{trials} trials of {steps} steps make no sense: give 0 or more trials of 1 step or more")
    if candidates is not None and candidates < 1:
        raise UsageError(f"{candidates} candidates are none to choose from: give 1 or more")
    if allocator not in ALLOCATORS:
        raise UsageError(f"allocator {allocator!r} is none of {', '.join(ALLOCATORS)}")


def _spread(groups: Sequence[Group]) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Where the screened candidates lie along joules."""
    low, high = min(g.joules.min() for g in groups), max(g.joules.max() for g in groups)
    edges = np.geomspace(low, high * (1 + 1e-9), BARS + 1)
    counts: Any = sum(np.histogram(g.joules, edges)[0] for g in groups)
    return tuple(map(float, edges)), tuple(map(int, counts))
