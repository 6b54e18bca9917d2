"""Models compared: one sentence, a table, and caveats."""

from __future__ import annotations

from collections.abc import Iterator

from ampere.cli.console import headline, print_facts, print_table
from ampere.comparison import CONFIDENT, Comparison, in_percent
from ampere.core import units
from ampere.estimation.estimate import Estimate

from .meter import in_words
from .places import column, conditions, loops

NAMES_SHOWN = 4


def show(comparison: Comparison) -> None:
    headline(_first_line(comparison))
    print()
    scale, unit = units.joules_unit(max(entry.joules for d in comparison.devices for entry in d.entries))
    if comparison.models[2:]:
        columns = [column(comparison.one_device), "model", f">{unit}", ">ratio", ">90 %", ">more expensive"]
        print_table(columns, _ranking_rows(comparison, scale))
    else:
        models = [f">{name} [{unit}]" for name in comparison.models]
        columns = [column(comparison.one_device), *models, ">ratio", ">90 %", "cheaper", ">probability"]
        print_table(columns, _pair_rows(comparison, scale))
    print()
    print_facts(_facts(comparison))


def _first_line(comparison: Comparison) -> str:
    devices = comparison.devices
    if len(devices) == 1:
        return comparison.sentence(devices[0])
    on, places = "in" if comparison.one_device else "on", f"{len(devices)} {column(comparison.one_device)}s"
    clear = [d for d in devices if d.probability >= CONFIDENT]
    word = "cheapest" if comparison.models[2:] else "cheaper"
    for name in comparison.models:
        if len(clear) == len(devices) and all(d.cheapest.name == name for d in devices):
            least = in_percent(min(d.probability for d in devices))
            return f"{name} is {word} {on} each of {places} ({least} probability)"
    counts = {name: sum(d.cheapest.name == name for d in clear) for name in comparison.models}
    wins = ", ".join(f"{name} {on} {count}" for name, count in counts.items())
    line = f"{word} of {places}: {wins}"
    return line if sum(counts.values()) == len(devices) else f"{line}; elsewhere it is too close to call"


def _pair_rows(comparison: Comparison, scale: float) -> Iterator[tuple[str, ...]]:
    first, second = comparison.models
    for device in comparison.devices:
        pair = device.pair(first, second)
        low, high = pair.interval
        joules = [units.significant(device.entry(name).joules / scale) for name in comparison.models]
        cheaper = pair.cheaper if pair.probability >= CONFIDENT else "too close"
        yield device.name, *joules, f"{pair.ratio:.2f}", f"{low:.2f}-{high:.2f}", cheaper, in_percent(pair.probability)


def _ranking_rows(comparison: Comparison, scale: float) -> Iterator[tuple[str, ...]]:
    for device in comparison.devices:
        for entry in device.entries:
            low, high = entry.interval
            compared = f"{entry.ratio:.2f}", f"{low:.2f}-{high:.2f}", in_percent(entry.probability)
            first = entry is device.cheapest
            joules = units.significant(entry.joules / scale)
            yield device.name if first else "", entry.name, joules, *(("1.00", "", "") if first else compared)


def _facts(comparison: Comparison) -> Iterator[tuple[str, str]]:
    if comparison.per == "example":
        batches = "the batches differ, so an iteration of one is not an iteration of the other"
        yield "compared", f"joules of one training example: {batches}"
    else:
        yield "compared", "joules of one training iteration"
    for device in comparison.devices:
        for name in comparison.models:
            yield from guessed(name, device.name, device.entry(name).estimate)
    if comparison.one_device:
        yield "device", comparison.devices[0].device
    yield from conditions([(d.name, d.normalized) for d in comparison.devices], comparison.one_device)
    yield from loops([device.cheapest.estimate.allocator for device in comparison.devices])
    for words in dict.fromkeys(in_words(d.cheapest.estimate.meter) for d in comparison.devices):
        yield "joules", words
    if not comparison.one_meter:
        yield "careful", "the devices' joules come from different meters: compare models in a row, not rows"


def guessed(model: str, place: str, estimate: Estimate) -> Iterator[tuple[str, str]]:
    strange = [*estimate.unprofiled, *estimate.extrapolated]
    if strange:
        layers = f"{', '.join(strange[:NAMES_SHOWN])}{' ...' if strange[NAMES_SHOWN:] else ''}"
        yield "guessed", f"{model} on {place}: no layers like {layers} were measured; profile {model} there"
