"""What a search found, on the screen: the front first, then what it beats, and how it was screened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ampere.cli.console import bar, headline, print_facts, print_table
from ampere.core import units
from ampere.searching.result import Candidate, Found, Trial, in_words

from .meter import in_words as meter_in_words

BAR = 16


def show(found: Found, written: Sequence[Path]) -> None:
    headline(found.headline)
    print()
    scale, unit = units.joules_unit(found.budget_joules)
    if found.trials:
        print_table(["", ">accuracy", f">{unit}", ">± 90 %", "|", "what it is"], _trials(found, scale))
    else:
        print_table([f">{unit}", ">± 90 %", "|", "what it is"], (_cost(c, found, scale) for c in found.chosen))
    print()
    print_facts(_facts(found, written))


def _trials(found: Found, scale: float) -> Iterator[tuple[str, ...]]:
    front = found.front
    order = sorted(found.trials, key=lambda t: (t not in front, -t.candidate.joules))
    for trial in order:
        yield ("*" if trial in front else "", _accuracy(trial), *_cost(trial.candidate, found, scale))


def _accuracy(trial: Trial) -> str:
    if trial.accuracy is None:
        return "failed"
    return f"{100 * trial.accuracy:.1f} %{' (chance)' if trial.at_chance else ''}"


def _cost(candidate: Candidate, found: Found, scale: float) -> tuple[str, str, str, str]:
    return (
        units.significant(candidate.joules / scale),
        units.percent(1.645 * candidate.stddev / candidate.joules),
        bar(candidate.joules / found.budget_joules, BAR),
        _what(candidate, found),
    )


def _what(candidate: Candidate, found: Found) -> str:
    """Everything that varies."""
    return in_words(found.settings(candidate))


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
        if found.front:
            yield "*", "on the front: nothing that was trained is both cheaper and more accurate"
        if any(trial.at_chance for trial in found.trials):
            yield "chance", "no more accurate than guessing: train longer with --steps, or with --train"
    for trial in found.trials:
        if trial.failure:
            yield "failed", f"{_what(trial.candidate, found)}: {trial.failure}"
    yield "joules", meter_in_words(found.meter)
    for path in written:
        yield "written", str(path)
