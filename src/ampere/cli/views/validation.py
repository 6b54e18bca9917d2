"""How far every method is from real training."""

from __future__ import annotations

from collections.abc import Iterator

from ampere.baselines.answers import title
from ampere.cli.console import bar, headline, print_facts, print_table
from ampere.core import units
from ampere.core.setup import ALLOCATORS
from ampere.evaluation.validation import Validation

from .meter import in_words

AGAIN, MARK = "repeatability", "→"


def show(validation: Validation) -> None:
    ours = validation.mape[validation.method]
    headline(f"{validation.model}: estimates are {units.percent(ours)} off on {len(validation.rows)} unseen networks")
    print()
    print_table(["  method", "what it is", ">profiled", ">MAPE", "|"], _rows(validation))
    print()
    print_facts(_facts(validation))


def _rows(validation: Validation) -> Iterator[tuple[str, ...]]:
    """The best first; the profile's own method is marked, and what measuring itself cannot tell apart is among them."""
    errors = {**validation.mape, AGAIN: validation.repeatability_mape}
    largest = max(errors.values()) or 1.0
    for method, error in sorted(errors.items(), key=lambda item: item[1]):
        words = "measuring the same networks a second time" if method == AGAIN else title(method)
        profiled = units.seconds(validation.seconds[method]) if method in validation.seconds else ""
        name = f"{MARK} {method}" if method == validation.method else f"  {method}"
        yield name, words, profiled, units.percent(error), bar(error / largest)


def _facts(validation: Validation) -> Iterator[tuple[str, str]]:
    low, high = min(r.actual for r in validation.rows), max(r.actual for r in validation.rows)
    yield "networks", f"{len(validation.rows)}, of {units.joules(low)} to {units.joules(high)} per iteration"
    for reason in dict.fromkeys(validation.left_out):
        yield "left out", f"{validation.left_out.count(reason)} more: {reason}"
    for method, reason in validation.unavailable.items():
        yield "not compared", f"{method}: {reason}"
    yield "coverage", f"{units.percent(validation.coverage90)} of them lie in the estimate's 90 % interval"
    sort = "simulated " if validation.meter.simulated else ""
    yield "profiling", f"{sort}{units.seconds(validation.profiling_seconds)}"
    yield "device", validation.device
    yield "joules", in_words(validation.meter)
    yield "stands for", ALLOCATORS[validation.allocator]
