"""One model in several places: where it is cheapest, a row a place, and what to doubt."""

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
    scale, unit = units.joules_unit(ranking.places[-1].estimate.joules)
    columns = [column(ranking.one_device), f">{unit}", ">±", ">ratio", ">90 %", ">dearer"]
    print_table(columns, _rows(ranking, scale))
    print()
    print_facts(_facts(ranking))


def _rows(ranking: Ranking, scale: float) -> Iterator[tuple[str, ...]]:
    for place in ranking.places:
        joules, stddev = place.estimate.joules / scale, place.estimate.stddev / scale
        low, high = place.ratio_interval90
        beside = (f"{place.ratio:.2f}", f"{low:.2f}-{high:.2f}", in_percent(place.dearer))
        first = place is ranking.places[0]
        yield place.name, units.significant(joules), f"{stddev:.2g}", *(("1.00", "", "") if first else beside)


def _facts(ranking: Ranking) -> Iterator[tuple[str, str]]:
    yield "compared", "joules of one training iteration; dearer: how sure it is dearer than the first"
    if ranking.one_device:
        yield "device", ranking.places[0].device
    for place in ranking.places:
        yield from guessed(ranking.model, place.name, place.estimate)
    yield from conditions([(place.name, place.moved) for place in ranking.places], ranking.one_device)
    yield from loops([place.estimate.allocator for place in ranking.places])
    for words in dict.fromkeys(in_words(place.estimate.meter) for place in ranking.places):
        yield "joules", words
    if not ranking.one_meter:
        yield "careful", "the joules come from different meters, or are modelled with different watts"
