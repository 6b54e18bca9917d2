"""What a profiling run brought."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ampere.cli.console import headline, print_facts
from ampere.core import units
from ampere.devices.external_meters import DEFERRED
from ampere.profiling.running import ProfilingResult
from ampere.storage.profile import Profile

from .meter import in_words

REFUSALS_SHOWN = 3
PLURALS = {
    "layer": "single layers",
    "variant": "pieces of networks",
    "network": "networks",
    "opaque": "unknown modules",
    "stage": "stages of lone layers",
    "kernel": "stages of lone operations",
}


def show(made: ProfilingResult, seconds: float, model: str, options: Namespace) -> None:
    error = made.expected_error
    known = (
        f"{len(made.profile.observations)} measurements" if error is None else f"expected error {units.percent(error)}"
    )
    headline(f"{known} after {units.seconds(seconds)}")
    print_facts(_facts(made, seconds, model, options))


def _facts(made: ProfilingResult, seconds: float, model: str, options: Namespace) -> Iterator[tuple[str, str]]:
    profile = made.profile
    yield "profile", str(made.path)
    sort = "simulated " if profile.meter.simulated else ""
    yield "measured", f"{measured(profile)}; in all {sort}{units.seconds(profile.profiling_seconds)}"
    yield "for", ", ".join(profile.spaces)
    if compiled := compile_seconds(profile):
        yield "compiling", f"{units.seconds(compiled)} of that, in no figure of training"
    yield "thinking", f"{units.percent(made.thinking_seconds / seconds)} of the time"
    if made.resumed:
        yield "resumed", "from a run that was stopped; what it had measured counts"
    for refusal in made.refused[:REFUSALS_SHOWN]:
        yield "refused", refusal
    if len(made.refused) > REFUSALS_SHOWN:
        yield "refused", f"{len(made.refused) - REFUSALS_SHOWN} more"
    yield "joules", in_words(profile.meter)
    yield "next", _next(made, model, options)


def measured(profile: Profile) -> str:
    counts = Counter(o.purpose for o in profile.observations)
    return ", ".join(f"{n} {PLURALS.get(purpose, purpose)}" for purpose, n in counts.most_common())


def compile_seconds(profile: Profile) -> float:
    return sum(o.measurement.conditions.get("compile_seconds", 0.0) for o in profile.observations)


def _next(made: ProfilingResult, model: str, options: Namespace) -> str:
    which = options.input and ["--input", options.input]
    batch = options.batch and ["--batch", str(options.batch)]
    device = options.device != "local" and ["--device", options.device]
    place = options.out and ["--profile", str(made.path)]
    runtime = options.runtime and ["--runtime", options.runtime]
    told = [*(which or ()), *(batch or ()), *(place or ()), *(device or ()), *(runtime or ())]
    from ampere.estimation.fitting import BY_LAYER

    model = model if options.model else "MODEL"
    if made.profile.meter.name == DEFERRED:
        return shlex.join(["ampere", "attach", "FILE", "--to", str(made.path), "--time", "COLUMN", "--power", "COLUMN"])
    if made.profile.method not in BY_LAYER:
        return shlex.join(["ampere", "validate", model, "--methods", "all", *(which or ()), *(batch or ())])
    return shlex.join(["ampere", "estimate", model, *told])


def to_json(made: ProfilingResult, seconds: float) -> dict[str, Any]:
    profile = made.profile
    return {
        "path": str(made.path),
        "expected_error": made.expected_error,
        "seconds": seconds,
        "thinking_seconds": made.thinking_seconds,
        "profiling_seconds": profile.profiling_seconds,
        "compile_seconds": compile_seconds(profile),
        "measurements": dict(Counter(o.purpose for o in profile.observations)),
        "spaces": list(profile.spaces),
        "refused": list(made.refused),
        "resumed": made.resumed,
        "method": profile.method,
        "protocol": profile.protocol,
        "meter": profile.meter.to_json(),
        "setup": profile.setup.to_json(),
    }
