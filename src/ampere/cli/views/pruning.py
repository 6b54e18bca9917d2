"""A pruned model on the screen: what it saves, and each layer before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ampere.cli.console import headline, print_facts, print_table
from ampere.core import units
from ampere.pruning.result import Measured, Pruned

from .meter import in_words

FIXED_SHOWN = 4


def show(pruned: Pruned, unmeasured: str, written: Sequence[Path]) -> None:
    """`unmeasured` says why the result was not trained to see what it costs, where it was not."""
    before, after = pruned.before.joules, pruned.after.joules
    if pruned.measured:
        before, after = pruned.measured.joules_before, pruned.measured.joules_after
    headline(
        f"{pruned.before.network or 'network'}: {units.joules(before)} -> {units.joules(after)} an iteration, "
        f"{units.percent(pruned.share)} ({pruned.strategy})"
    )
    print()
    scale, unit = units.joules_unit(before)
    columns = ["layer", "kind", ">channels", ">pruned", f">{unit}", ">pruned", ">left"]
    print_table(columns, _rows(pruned, scale))
    print()
    print_facts([*_facts(pruned, unmeasured), *(("written", str(path)) for path in written)])


def _rows(pruned: Pruned, scale: float) -> Iterator[tuple[str, ...]]:
    for change in pruned.layers():
        yield (
            change.name or "-",
            change.kind,
            _channels(change.channels_before),
            _channels(change.channels_after) if change.channels_after != change.channels_before else "",
            units.significant(change.joules_before / scale),
            units.significant(change.joules_after / scale),
            units.percent(change.joules_after / change.joules_before) if change.joules_before else "",
        )
    old, new = pruned.before.layers[-1], pruned.after.layers[-1]
    yield old.name, old.kind, "", "", units.significant(old.joules / scale), units.significant(new.joules / scale), ""


def _channels(channels: tuple[int, int]) -> str:
    return f"{channels[0]:,} - {channels[1]:,}"


def _facts(pruned: Pruned, unmeasured: str) -> Iterator[tuple[str, str]]:
    sure = f" with {units.percent(pruned.confidence)} confidence" if pruned.confidence > 0.5 else ""
    bound = f"{units.joules(pruned.bound_joules)}{sure}"
    if pruned.inside:
        yield "budget", f"{units.joules(pruned.budget_joules)} an iteration; the pruned model stays below {bound}"
    else:
        yield "over budget", f"{units.joules(pruned.budget_joules)} an iteration were allowed; it takes {bound}"
    yield ("measured", _measured(pruned.measured)) if pruned.measured else ("not measured", unmeasured)
    for layer in pruned.fixed[:FIXED_SHOWN]:
        yield "left as it is", layer
    if len(pruned.fixed) > FIXED_SHOWN:
        yield "left as it is", f"and {len(pruned.fixed) - FIXED_SHOWN} more"
    yield "joules", in_words(pruned.after.meter)
    if pruned.after.extrapolated:
        yield "extrapolated", ", ".join(pruned.after.extrapolated[:6])
    yield "next", "train it: channels went, and with them accuracy that training brings back"


def _measured(seen: Measured) -> str:
    share = f"{100 * seen.share:.1f} % of the original's (+- {100 * seen.share * seen.share_doubt:.1f})"
    return f"{share}, both trained in turn, {seen.rounds} rounds; the layers above are estimates"
