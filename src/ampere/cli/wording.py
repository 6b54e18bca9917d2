"""Sentences that several commands print: the setup, where joules come from, what a comparison assumes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ampere.core import Meter, TrainingSetup, units
from ampere.core.setup import ALLOCATORS
from ampere.meters import CARD_SCOPE, DEFAULT_ORIGIN, DEFAULT_WATTS_PER_CORE, watts_in

if TYPE_CHECKING:
    from ampere.comparison import Normalized
    from ampere.estimation.estimate import Estimate
    from ampere.estimation.memory import MemoryEstimate

OPTIMIZER_TITLES = {
    "sgd": "SGD",
    "momentum": "SGD with momentum",
    "adam": "Adam",
    "adamw": "AdamW",
    "rmsprop": "RMSprop",
}
NAMES_SHOWN = 6
NEARLY = 1.5  # a smaller factor is said in per cent
RESTLESS = 0.12  # speed of a device that something disturbed; of a quiet one it varies by 4 to 9 %


def setup_line(setup: TrainingSetup, batch: int | None = None) -> str:
    """`torch, SGD, float32, 1 thread, batch 10`, and `on cuda:0` where an accelerator trains."""
    optimizer = OPTIMIZER_TITLES.get(setup.optimizer, setup.optimizer.capitalize())
    parts = [setup.runtime, optimizer, setup.dtype, place_of(setup)]
    return ", ".join([*parts, f"batch {batch}"] if batch else parts)


def place_of(setup: TrainingSetup) -> str:
    """`1 thread`, or `on cuda:0` where an accelerator trains."""
    return units.counted(setup.threads, "thread") if setup.on == "cpu" else f"on {setup.on}"


def meter_line(meter: Meter) -> str:
    """Where joules come from: measured, modelled, simulated or replayed."""
    if meter.replayed:
        return f"replayed from a recording, not read now: {meter_line(replace(meter, replayed=False))}"
    if meter.simulated:
        return f"simulated, not measured: {meter.name}, {meter.scope}"
    if meter.measured:
        return f"measured by {meter.name}, {meter.scope}"
    watts = watts_in(meter.scope)
    if watts is None:
        return f"modelled by {meter.name}, not measured: {meter.scope}"
    usual = DEFAULT_ORIGIN if watts == DEFAULT_WATTS_PER_CORE else "as given"
    on_card = meter.scope.endswith(CARD_SCOPE)
    if on_card and usual == DEFAULT_ORIGIN:
        usual = "the default of a core, and not of a card"
    model = f"{meter.name}: modelled, not measured, as {'device' if on_card else 'CPU'} seconds x {meter.scope}"
    return f"{model}. {watts:g} W is {meter.origin or usual}{within(meter)}; --watts-per-core changes it"


def within(meter: Meter) -> str:
    """How far modelled joules can be off, all of them alike; "" where nothing says."""
    if meter.measured or meter.factor == 1:
        return ""
    if meter.factor < NEARLY:
        return f", within {units.percent(meter.factor - 1)} either way"
    return f", within a factor of {meter.factor:.2g} either way"


def joules_label(meter: Meter) -> str:
    """`modelled joules`, `simulated joules`, `joules`."""
    origin = "simulated " if meter.simulated else "" if meter.measured else "modelled "
    return f"{'replayed ' if meter.replayed else ''}{origin}joules"


def some(names: Sequence[str], shown: int = NAMES_SHOWN) -> str:
    """The first names, and how many more there are."""
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")


# Places that are compared: devices, or runtimes of one device.


def place_column(one_device: bool) -> str:
    return "runtime" if one_device else "device"


def setups(places: Sequence[tuple[str, TrainingSetup]], batches: Sequence[int]) -> Iterator[tuple[str, str]]:
    """One line where all places have the same setup, else one a place."""
    batch = batches[0] if len(set(batches)) == 1 else None
    lines = {name: setup_line(setup, batch) for name, setup in places}
    if len(set(lines.values())) == 1:
        yield "setup", next(iter(lines.values()))
        return
    for name, line in lines.items():
        yield "setup", f"{name}: {line}"


def conditions(places: Sequence[tuple[str, Normalized]], one_device: bool) -> Iterator[tuple[str, str]]:
    """How each place was brought to the speed that the device had for another one."""
    for best in dict.fromkeys(n.expressed_as for _, n in places if n.expressed_as):
        factors = [f"{name} x {n.factor:.3f}" for name, n in places if n.expressed_as == best]
        speed = f"the device's speed when {best} was profiled" if one_device else f"the speed of {best}"
        yield "condition", f"all joules are expressed at {speed}, by PyTorch's yardstick step ({', '.join(factors)})"
    for caveat in dict.fromkeys(n.caveat for _, n in places if n.caveat):
        yield "note", f"the device may have been faster or slower for some rows: {caveat}"


def assumptions(allocators: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Which training loop the figures assume."""
    for allocator in dict.fromkeys(allocators):
        yield "assumes", ALLOCATORS[allocator]
    if len(set(allocators)) > 1:
        yield "note", "not all rows assume the same training loop: take --allocator tuned to compare them"


def not_measured(model: str, place: str, estimate: Estimate) -> Iterator[tuple[str, str]]:
    """Layers of an estimate that no measurement covers."""
    layers = [*estimate.unprofiled, *estimate.extrapolated]
    if layers:
        yield (
            "not covered",
            f"{model} on {place}: no layers like {some(layers, 4)} were measured; profile {model} there",
        )


def memory_lines(memory: MemoryEstimate) -> Iterator[tuple[str, str]]:
    """`420 MB at its peak (90 %: 380 MB to 460 MB), fits into 4.00 GB`, and of what it consists."""
    low, high = map(units.bytes, memory.interval)
    judged = f", {memory.verdict} into {units.bytes(memory.limit_bytes)}" if memory.limit_bytes is not None else ""
    yield "memory", f"{units.bytes(memory.bytes)} at its peak (90 %: {low} to {high}){judged}"
    if memory.seen:
        processes = f"{memory.seen.processes} process{'es' if memory.seen.processes > 1 else ''}"
        measured = f"{units.bytes(memory.seen.measured_bytes)} measured while its own code was trained in {processes}"
        yield "memory seen", f"{measured}; {units.bytes(memory.traced_bytes)} by its layers alone"
    parts = sorted(memory.parts.items(), key=lambda part: -part[1])
    origin = "" if memory.runtime_measured else " (usual, not measured here)"
    shown = (f"{name}{origin if name == 'runtime' else ''} {units.bytes(size)}" for name, size in parts if size >= 5e4)
    yield "of it", ", ".join(shown)
    if memory.largest_batch is not None:
        yield "largest batch", f"{memory.largest_batch:,} fits with the whole interval; other batches cost other joules"


def speed_varied(spread: float) -> str:
    """How steady the device was, and what to do where it was not."""
    advice = " (other work disturbed it: profile again when little else runs)" if spread > RESTLESS else ""
    return f"the device's speed by {units.percent(spread)} while it was profiled{advice}"
