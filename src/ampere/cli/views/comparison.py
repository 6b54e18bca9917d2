"""Two models beside each other: one sentence, a row a device, and what to doubt."""

from __future__ import annotations

from collections.abc import Iterator

from ampere.cli.console import headline, print_facts, print_table
from ampere.comparison import SURE, Comparison, in_percent
from ampere.core import units
from ampere.estimation.estimate import Estimate

from .meter import in_words
from .places import column, conditions, loops

NAMES_SHOWN = 4


def show(comparison: Comparison) -> None:
    headline(_first_line(comparison))
    print()
    scale, unit = units.joules_unit(max(max(d.joules) for d in comparison.devices))
    models = [f">{name} [{unit}]" for name in comparison.names]
    print_table(
        [column(comparison.one_device), *models, ">ratio", ">90 %", "cheaper", ">sure"], _rows(comparison, scale)
    )
    print()
    print_facts(_facts(comparison))


def _first_line(comparison: Comparison) -> str:
    devices = comparison.devices
    if len(devices) == 1:
        return comparison.sentence(devices[0])
    on, places = "in" if comparison.one_device else "on", f"{len(devices)} {column(comparison.one_device)}s"
    sure = [d for d in devices if d.sure >= SURE]
    for index, name in enumerate(comparison.names):
        if len(sure) == len(devices) and all(d.cheaper == index for d in devices):
            return f"{name} is cheaper {on} each of {places}, {in_percent(min(d.sure for d in devices))} sure"
    counts = [sum(d.cheaper == index for d in sure) for index in (0, 1)]
    first, second = comparison.names
    said = f"{first} is cheaper {on} {counts[0]} of {places}, {second} {on} {counts[1]}"
    return said if sum(counts) == len(devices) else f"{said}; elsewhere it is too close to call"


def _rows(comparison: Comparison, scale: float) -> Iterator[tuple[str, ...]]:
    for device in comparison.devices:
        low, high = device.ratio_interval90
        joules = [units.significant(j / scale) for j in device.joules]
        cheaper = comparison.names[device.cheaper] if device.sure >= SURE else "too close"
        yield device.name, *joules, f"{device.ratio:.2f}", f"{low:.2f}-{high:.2f}", cheaper, in_percent(device.sure)


def _facts(comparison: Comparison) -> Iterator[tuple[str, str]]:
    if comparison.per == "example":
        batches = "the batches differ, so an iteration of one is not an iteration of the other"
        yield "compared", f"joules of one training example: {batches}"
    else:
        yield "compared", "joules of one training iteration"
    for device in comparison.devices:
        for name, estimate in zip(comparison.names, device.estimates, strict=True):
            yield from guessed(name, device.name, estimate)
    if comparison.one_device:
        yield "device", comparison.devices[0].device
    yield from conditions([(d.name, d.moved) for d in comparison.devices], comparison.one_device)
    yield from loops([device.estimates[0].allocator for device in comparison.devices])
    for words in dict.fromkeys(in_words(d.estimates[0].meter) for d in comparison.devices):
        yield "joules", words
    if not comparison.one_meter:
        yield "careful", "the devices' joules come from different meters: compare models in a row, not rows"


def guessed(model: str, place: str, estimate: Estimate) -> Iterator[tuple[str, str]]:
    strange = [*estimate.unprofiled, *estimate.extrapolated]
    if strange:
        layers = f"{', '.join(strange[:NAMES_SHOWN])}{' ...' if strange[NAMES_SHOWN:] else ''}"
        yield "guessed", f"{model} on {place}: no layers like {layers} were measured; profile {model} there"
