"""A space, a budget and profiles -> the front of accuracy against joules.

screen   every candidate's joules, in bulk                    candidates
choose   the most promising inside the budget                 candidates: all at once, the largest at each cost
                                                              hyperpower: one after the other, by what was trained
train    these for a short time, keep what no other beats     training, result
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

from ampere.core.errors import UsageError
from ampere.core.setup import ALLOCATORS
from ampere.core.units import parse_energy
from ampere.estimation.estimator import Estimator
from ampere.models.loading import find_space, need_torch
from ampere.models.spaces import Arguments
from ampere.pruning.budget import deviations, joules_allowed
from ampere.storage.profile import Profile

from .candidates import Group, OpenGroup, Prices, Progress, Rows, choose, refuse_impossible, within_power
from .hyperpower import HyperPower
from .memory import At, fitting, rule_of, upper_bytes, within_memory
from .parts import BARS, Over, Screen, Spread, parts_of, screened_in_parts, shortlisted
from .result import Candidate, Found
from .spaces import SearchSpace, Shape, Values, of_function, of_space
from .training import Chance, Train, chance_of, name_of, of_user, on_made_task, refuse_if_none_trained, tried

TRIALS, STEPS, CONFIDENCE = 12, 300, 0.9
IN_BULK, ONE_BY_ONE = 1_000_000, 300  # candidates by default
AT_A_TIME = 4_000_000  # candidates in memory; more are screened in parts
SAMPLE = 1_000  # candidates that show whether limits can be kept at all, before they are screened in parts
MODES = ("capacity", "hyperpower")


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
    memory_bytes: float | None = None,
    allocator: str = "system",
    input: str | None = None,
    seed: int = 0,
    mode: str = MODES[0],
    power: float | None = None,
    over: Over | None = None,
    on_progress: Progress = lambda done, total, words: None,
    on_trial: Callable[[Found], None] = lambda found: None,
) -> Found:
    """The best networks of a space inside an energy budget: many are screened by their estimates, a few are trained.

    `space` is a family, a general space, or `file.py:function` whose arguments `vary`. The profiles are of one device,
    each with another optimizer. `train(model, candidate)` returns an accuracy from 0 to 1, or (accuracy, number of test
    examples); `trials=0` trains nothing. One that yields accuracies while it trains can be stopped early.
    Candidates that draw more than `power` (watts), or whose training may need more than `memory_bytes`, are left out.
    `mode` "hyperpower" chooses the next candidate by what was trained, and stops those at chance level after a part of
    their training. `on_trial` is called with the result so far after each trial. Very many candidates are screened in
    parts, one after the other or by `over`, which does what `map` does in any order and place.
    """
    _check(trials, steps, candidates, allocator, mode, power)
    if not profiles:
        raise UsageError("a search needs a profile: make one with `ampere profile MODEL` or ampere.profile(...)")
    need_torch()
    searched = space_of(space, vary or {}, batches, input, seed)
    hyperpower = mode == "hyperpower"
    run, chance = _training(train, searched, trials, steps, seed, hyperpower)
    estimators = [profile if isinstance(profile, Estimator) else Estimator(profile) for profile in profiles]
    original = searched.network(searched.original)
    prices = [Prices(estimator, allocator, original.batch) for estimator in estimators]
    now = min(price.of(original)[0] for price in prices)
    allowed = allowed_joules(budget, now, iterations, parse_energy(battery) if battery else None)
    began = time.perf_counter()
    at: At | None = None
    if memory_bytes is not None:
        at = upper_bytes(searched, [e.profile for e in estimators], allocator == "tuned")
    limits = Limits(allowed, power, memory_bytes, at)
    in_parts = over is not None or (candidates or 0) > AT_A_TIME
    if not in_parts:
        groups = screen(searched, prices, candidates, seed, lambda done, total, words: on_progress(0, 1, words))
        screened, inside, spread = *_counted(groups, allowed), _spread(groups)
        groups = limits.kept(groups)
    else:
        groups, screened, inside, spread = _in_parts(searched, prices, candidates, limits, seed, over, on_progress)
    chosen: list[Candidate] = []
    if not hyperpower:
        chosen = choose(groups, allowed, deviations(confidence), trials or TRIALS)
        if at is not None and memory_bytes is not None:
            chosen = fitting(chosen, at, memory_bytes)
    found = Found(
        space=space,
        device=estimators[0].profile.device_name,
        meter=estimators[0].meter,
        budget_joules=allowed,
        confidence=confidence,
        original_joules=now,
        examples=original.batch,
        batches=tuple(dict.fromkeys(g.batch for g in groups)),
        screened=screened,
        inside=inside,
        screening_seconds=time.perf_counter() - began,
        spread=spread,
        chosen=tuple(chosen),
        trained_with=name_of(train),
        varied=searched.varied,
        chance=chance.accuracy if chance else None,
        mode=mode,
        power_watts=power,
        memory_bytes=memory_bytes,
        shortlist=tuple(shortlisted(groups, allowed, searched.varied)) if in_parts else (),
    )
    if run is None:
        return found
    count, chooser = len(chosen), None
    if hyperpower:
        refuse_impossible(groups, allowed)
        chooser = HyperPower(groups, allowed, deviations(confidence), searched.varied, seed)
        count = min(trials, chooser.size)
    for done in range(count):
        on_progress(done, count, f"training {done + 1} of {count}")
        if chooser:
            chosen.append(chooser.next(found.trials))
        trial = tried(run, searched, chosen[done], seed, chance, stop_at_chance=hyperpower)
        found = replace(found, chosen=tuple(chosen), trials=(*found.trials, trial))
        on_trial(found)
    refuse_if_none_trained(list(found.trials))
    return found


def _training(
    train: str | Train | None, space: SearchSpace, trials: int, steps: int, seed: int, early: bool
) -> tuple[Train | None, Chance | None]:
    """How candidates are trained, and what guessing would score; None where nothing is trained."""
    if not trials:
        return None, None
    if train is None:
        return on_made_task(space, steps, seed, early)
    return of_user(train) if isinstance(train, str) else train, chance_of(space)


def space_of(
    space: str, vary: Mapping[str, Values], batches: Sequence[int], input: str | None, seed: int
) -> SearchSpace:
    if ":" not in space:
        if vary:
            raise UsageError(f"--vary is for a function of your own: what varies in {space} is built in")
        return of_space(find_space(space), batches, seed)
    if batches:
        raise UsageError(f"{space} has its own arguments: write --vary batch=8,16 if one of them is its batch")
    return of_function(space, vary, input)


def allowed_joules(budget: str | float, now: float, iterations: int | None, battery: float | None) -> float:
    """Joules of one iteration; `now` is what the original costs."""
    text = str(budget).strip()
    if text.endswith("%") and text[:-1].replace(".", "", 1).isdigit() and float(text[:-1]) >= 100 and battery is None:
        raise UsageError(
            f"a budget of {text} of the original leaves no choice to make: give a share below 100%, or joules"
        )
    return joules_allowed(budget, now, iterations, battery)


def _check(trials: int, steps: int, candidates: int | None, allocator: str, mode: str, power: float | None) -> None:
    if mode not in MODES:
        raise UsageError(f"there is no mode {mode!r}: choose one of {', '.join(MODES)}")
    if mode == "hyperpower" and trials == 0:
        raise UsageError("hyperpower chooses by what was trained: leave out --no-training, or choose --mode capacity")
    if power is not None and not power > 0:
        raise UsageError(f"power is {power:g}, but must be greater than 0")
    if trials < 0:
        raise UsageError(f"trials must be 0 or more, not {trials}")
    if steps < 1:
        raise UsageError(f"steps must be 1 or more, not {steps}")
    if candidates is not None and candidates < 1:
        raise UsageError(f"candidates must be 1 or more, not {candidates}")
    if allocator not in ALLOCATORS:
        raise UsageError(f"there is no allocator {allocator!r}: choose one of {', '.join(ALLOCATORS)}")


def screen(
    space: SearchSpace, prices: Sequence[Prices], candidates: int | None, seed: int, report: Progress
) -> list[Group]:
    """Candidates with their costs. Every shape gets the same number; one that has fewer networks is searched whole."""
    rng, groups = np.random.default_rng(seed), list[Group]()
    jobs = [(price, shape) for price in prices for shape in space.shapes]
    each = max(1, (candidates or IN_BULK) // max(1, len(jobs)))
    few = max(1, (candidates or ONE_BY_ONE) // max(1, len(jobs)))
    for done, (price, shape) in enumerate(jobs):
        report(done, len(jobs), f"shape {done + 1} of {len(jobs)}")
        group = price.opened(shape, space, drawn_widths(rng, shape, each))
        groups += [group] if group else price.listed(_few(rng, shape, few), space, report)
    if space.draw:
        count, own = (candidates or ONE_BY_ONE) // len(prices), Random(seed)
        arguments = [space.draw(own) for _ in range(max(1, count))]
        groups += [group for price in prices for group in price.listed(arguments, space, report)]
    return groups


@dataclass(frozen=True)
class Limits:
    """What a candidate may need; None where that is not limited."""

    joules: float
    watts: float | None
    bytes: float | None
    at: At | None  # the memory of a candidate

    def kept(self, groups: list[Group]) -> list[Group]:
        """The candidates within the limits of power and memory."""
        if self.watts is not None:
            groups = within_power(groups, self.watts)
        if self.at is not None and self.bytes is not None:
            groups = within_memory(groups, self.at, self.bytes)
        return groups


def _in_parts(
    space: SearchSpace,
    prices: Sequence[Prices],
    candidates: int | None,
    limits: Limits,
    seed: int,
    over: Over | None,
    on_progress: Progress,
) -> tuple[list[Group], int, int, Spread]:
    """The candidates that may be chosen of more than memory holds: parts.py."""
    sampled = [] if space.draw else screen(space, prices, SAMPLE, seed, lambda *report: None)
    some = [group for group in sampled if isinstance(group, OpenGroup)]
    if len(some) < len(space.shapes) * len(prices) or not some:
        raise UsageError(
            f"the networks of {space.name} are estimated one by one: give at most {AT_A_TIME:,} --candidates, and no "
            "--scheduler"
        )
    groups = [group.at(np.vstack([group.shape.least, group.widths])) for group in some]
    limits.kept([*groups])  # refuses what not even the smallest networks keep
    rules = [rule_of(group, limits.at, limits.bytes) for group in groups] if limits.at and limits.bytes else []
    parts = parts_of([group.shape for group in groups], candidates or IN_BULK, seed)

    def report(done: int, total: int) -> None:
        on_progress(done, total, f"part {done} of {total}")

    return screened_in_parts(groups, Screen(groups, limits.joules, limits.watts, rules), parts, over or map, report)


def _counted(groups: Sequence[Group], allowed: float) -> tuple[int, int]:
    """How many there are, and how many are inside the budget."""
    return sum(len(g.joules) for g in groups), sum(int(np.sum(g.joules <= allowed)) for g in groups)


def _few(rng: np.random.Generator, shape: Shape, count: int) -> list[Arguments]:
    return [shape.arguments([int(w) for w in widths]) for widths in drawn_widths(rng, shape, count)]


def drawn_widths(rng: np.random.Generator, shape: Shape, count: int) -> Rows:
    """Random widths of a shape, one network a row; all of them where they are few."""
    if shape.size <= count:
        sizes = [high - low + 1 for low, high in zip(shape.least, shape.largest, strict=True)]
        offsets = np.indices(sizes).reshape(len(sizes), -1).T if sizes else np.zeros((1, 0), dtype=np.int64)
        return offsets + np.array(shape.least, dtype=np.int64)
    pairs = zip(shape.least, shape.largest, strict=True)
    return np.stack([rng.integers(low, high + 1, count) for low, high in pairs], axis=1)


def _spread(groups: Sequence[Group]) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """A histogram of the screened candidates along joules: edges and counts."""
    low, high = min(g.joules.min() for g in groups), max(g.joules.max() for g in groups)
    edges = np.geomspace(low, high * (1 + 1e-9), BARS + 1)
    counts: Any = sum(np.histogram(g.joules, edges)[0] for g in groups)
    return tuple(map(float, edges)), tuple(map(int, counts))
