"""One model with several profiles: where it is cheapest, one row for each, and caveats."""

from __future__ import annotations

from collections.abc import Iterator

from ampere.cli.console import headline, print_facts, print_table
from ampere.comparison import Ranking, in_percent
from ampere.core import units

from .comparison import guessed
from .meter import in_words
from .places import column, conditions, loops


def show(ranking: Ranking) -> None:
    headline(ranking.sentence)
    print()
    scale, unit = units.joules_unit(ranking.entries[-1].estimate.joules)
    columns = [column(ranking.one_device), f">{unit}", ">±", ">ratio", ">90 %", ">more expensive"]
    print_table(columns, _rows(ranking, scale))
    print()
    print_facts(_facts(ranking))


def _rows(ranking: Ranking, scale: float) -> Iterator[tuple[str, ...]]:
    for entry in ranking.entries:
        joules, stddev = entry.estimate.joules / scale, entry.estimate.stddev / scale
        low, high = entry.interval
        compared = (f"{entry.ratio:.2f}", f"{low:.2f}-{high:.2f}", in_percent(entry.probability))
        first = entry is ranking.cheapest
        yield entry.name, units.significant(joules), f"{stddev:.2g}", *(("1.00", "", "") if first else compared)


def _facts(ranking: Ranking) -> Iterator[tuple[str, str]]:
    yield (
        "compared",
        "joules of one training iteration; more expensive: the probability that it is, than the first",
    )
    if ranking.one_device:
        yield "device", ranking.cheapest.device
    for entry in ranking.entries:
        yield from guessed(ranking.model, entry.name, entry.estimate)
    yield from conditions([(entry.name, entry.normalized) for entry in ranking.entries], ranking.one_device)
    yield from loops([entry.estimate.allocator for entry in ranking.entries])
    for words in dict.fromkeys(in_words(entry.estimate.meter) for entry in ranking.entries):
        yield "joules", words
    if not ranking.one_meter:
        yield "careful", "the joules come from different meters, or are modelled with different watts"
