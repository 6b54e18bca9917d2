"""How far every method is from real training."""

from __future__ import annotations

from collections.abc import Iterator

from ampere import units
from ampere.methods import title
from ampere.network.setup import ALLOCATORS
from ampere.validation import Validation

from ..screen import bar, headline, print_facts, print_table
from .meter import in_words


def show(validation: Validation) -> None:
    ours = validation.mape[validation.method]
    headline(f"{validation.model}: estimates are {units.percent(ours)} off on {len(validation.rows)} unseen networks")
    print()
    print_table(["method", "what it is", ">profiled", ">MAPE", "|"], _rows(validation))
    print()
    print_facts(_facts(validation))


def _rows(validation: Validation) -> Iterator[tuple[str, ...]]:
    errors = {**validation.mape, "repeatability": validation.repeatability_mape}
    largest = max(errors.values()) or 1.0
    for method, error in errors.items():
        words = "measuring the same networks a second time" if method == "repeatability" else title(method)
        profiled = units.seconds(validation.seconds[method]) if method in validation.seconds else ""
        yield method, words, profiled, units.percent(error), bar(error / largest)


def _facts(validation: Validation) -> Iterator[tuple[str, str]]:
    low, high = min(r.actual for r in validation.rows), max(r.actual for r in validation.rows)
    yield "networks", f"{len(validation.rows)}, of {units.joules(low)} to {units.joules(high)} per iteration"
    yield "coverage", f"{units.percent(validation.coverage90)} of them lie in the estimate's 90 % interval"
    sort = "simulated " if validation.meter.simulated else ""
    yield "profiling", f"{sort}{units.seconds(validation.profiling_seconds)}"
    yield "device", validation.device
    yield "joules", in_words(validation.meter)
    yield "stands for", ALLOCATORS[validation.allocator]
