"""What a search found, on the screen: the front first, then what it beats, and how it was screened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ampere.cli.console import bar, headline, print_facts, print_table
from ampere.core import units
from ampere.searching.candidates import Candidate, in_words
from ampere.searching.result import Found, Trial

from .meter import in_words as meter_in_words

BAR = 16


def show(found: Found, written: Sequence[Path]) -> None:
    headline(_first_line(found))
    print()
    scale, unit = units.joules_unit(found.budget_joules)
    if found.trials:
        print_table(["", ">accuracy", f">{unit}", ">± 90 %", "|", "what it is"], _trials(found, scale))
    else:
        print_table([f">{unit}", ">± 90 %", "|", "what it is"], (_cost(c, found, scale) for c in found.chosen))
    print()
    print_facts(_facts(found, written))


def _first_line(found: Found) -> str:
    if not found.trials:
        return f"{found.space}: {len(found.chosen)} of {found.screened:,} candidates are worth training"
    best = found.front[-1]
    joules, right = best.candidate.joules, units.percent(best.accuracy or 0.0)
    said = f"{right} right with {units.joules(joules)}, {units.percent(joules / found.original_joules)} of the original"
    return f"{found.space}: {said}; {len(found.front)} on the front"


def _trials(found: Found, scale: float) -> Iterator[tuple[str, ...]]:
    front = found.front
    order = sorted(found.trials, key=lambda t: (t not in front, -t.candidate.joules))
    for trial in order:
        yield ("*" if trial in front else "", _accuracy(trial), *_cost(trial.candidate, found, scale))


def _accuracy(trial: Trial) -> str:
    return "failed" if trial.accuracy is None else f"{100 * trial.accuracy:.1f} %"


def _cost(candidate: Candidate, found: Found, scale: float) -> tuple[str, str, str, str]:
    return (
        units.significant(candidate.joules / scale),
        units.percent(1.645 * candidate.stddev / candidate.joules),
        bar(candidate.joules / found.budget_joules, BAR),
        _what(candidate, found),
    )


def _what(candidate: Candidate, found: Found) -> str:
    """Only what differs between candidates."""
    others = [c.arguments for c in found.chosen]
    differing = {k: v for k, v in candidate.arguments.items() if any(o.get(k) != v for o in others)}
    words = in_words(differing or candidate.arguments)
    several = len({c.optimizer for c in found.chosen}) > 1
    return f"{words}, {candidate.optimizer}" if several else words


def _facts(found: Found, written: Sequence[Path]) -> Iterator[tuple[str, str]]:
    share = units.percent(found.inside / found.screened)
    took = units.seconds(found.screening_seconds)
    yield "screened", f"{found.screened:,} candidates in {took}; {found.inside:,} ({share}) are inside the budget"
    of = "an iteration" if len(found.batches) == 1 else f"{found.examples} examples, an iteration of the original"
    sure = units.percent(found.confidence)
    yield "budget", f"{units.joules(found.budget_joules)} of {of}; each candidate shown stays below it with {sure}"
    if len(found.batches) > 1:
        yield "compared", f"joules of {found.examples} examples, because the batches differ"
    if found.trials:
        yield (
            "trained",
            f"{len(found.trials)}: {found.trained_with}; one seed each, so small differences are chance",
        )
        yield "*", "on the front: nothing that was trained is both cheaper and more accurate"
    for trial in found.trials:
        if trial.failure:
            yield "failed", f"{_what(trial.candidate, found)}: {trial.failure}"
    yield "joules", meter_in_words(found.meter)
    for path in written:
        yield "written", str(path)
