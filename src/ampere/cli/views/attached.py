"""What a log told of a profile."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ampere.cli.console import headline, print_facts
from ampere.core import units
from ampere.profiling.attaching import Attached

from .meter import in_words


def show(attached: Attached, path: str) -> None:
    headline(f"{attached.covered} of {attached.blocks} blocks have measured joules")
    print_facts(_facts(attached, path))


def _facts(attached: Attached, path: str) -> Iterator[tuple[str, str]]:
    profile, clocks = attached.profile, attached.alignment
    yield "profile", path
    seen = f"{clocks.found} of {clocks.given} patterns of load found in {attached.rows:,} rows"
    yield "log", f"{seen}, correlation {clocks.likeness:.2f}"
    if clocks.found > 1:
        ahead = 1e6 * (clocks.rate - 1)
        faster = "fast" if ahead >= 0 else "slow"
        yield (
            "clocks",
            f"the meter's runs {abs(ahead):.0f} ppm {faster}; patterns within {1e3 * clocks.within_seconds:.1f} ms",
        )
    else:
        yield "clocks", "compared once only: how much faster one runs is not known"
    if profile.watts_idle is not None:
        yield "at rest", f"{profile.watts_idle:.3g} W"
    if attached.covered < attached.blocks:
        yield "not covered", "the log has no rows there: told at the power of networks that do alike, with its doubt"
    yield "joules", in_words(profile.meter)
    yield "yardstick", f"{units.joules(profile.yardstick_joules or 0.0)} a step"
    yield "next", shlex.join(["ampere", "estimate", "MODEL", "--profile", path])


def to_json(attached: Attached, path: str) -> dict[str, Any]:
    profile = attached.profile
    return {
        "path": path,
        "blocks": attached.blocks,
        "covered": attached.covered,
        "rows": attached.rows,
        "alignment": asdict(attached.alignment),
        "meter": profile.meter.to_json(),
        "yardstick_joules": profile.yardstick_joules,
        "watts_idle": profile.watts_idle,
    }
