"""All checks, one after the other; one that is broken does not spoil the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from difflib import get_close_matches

from ampere.core.errors import AmpereError, UsageError
from ampere.devices.conformance.checks import blocks, lines, yardstick
from ampere.devices.conformance.checks import handshake as greeting
from ampere.devices.conformance.checks import lifetime as living
from ampere.devices.conformance.checks import refusals as refusing

from .candidate import PATIENCE_SECONDS, Candidate
from .outcome import BROKEN, KEPT, NOT_OFFERED, Broken, Check, NotOffered, Outcome

CHECKS: tuple[Check, ...] = (
    *greeting.CHECKS,
    *lines.CHECKS,
    *refusing.CHECKS,
    *blocks.CHECKS,
    *yardstick.CHECKS,
    *living.CHECKS,
)


def check_worker(
    target: str,
    only: Sequence[str] = (),
    patience_seconds: float = PATIENCE_SECONDS,
    on_check: Callable[[Check], None] = lambda _: None,
) -> tuple[Outcome, ...]:
    """`target` is a command that talks over its standard input and output, or tcp://host:port."""
    chosen, candidate = _chosen(only), Candidate(target, patience_seconds)
    outcomes = []
    try:
        _ = candidate.wire  # where nothing answers at all, there is nothing to check
        for check in chosen:
            on_check(check)
            outcomes.append(_outcome(check, candidate))
    finally:
        candidate.anew()
    return tuple(outcomes)


def _outcome(check: Check, candidate: Candidate) -> Outcome:
    began, verdict, told = time.monotonic(), KEPT, ""
    try:
        check.run(candidate)
    except NotOffered as problem:
        verdict, told = NOT_OFFERED, str(problem)
    except (Broken, AmpereError, OSError) as problem:
        verdict, told = BROKEN, str(problem)
        candidate.anew()
    return Outcome(check.name, check.title, verdict, told, time.monotonic() - began)


def _chosen(only: Sequence[str]) -> tuple[Check, ...]:
    known = {check.name: check for check in CHECKS}
    for name in only:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"the checks are {', '.join(known)}"
            raise UsageError(f"there is no check {name!r}: {hint}")
    return tuple(known[name] for name in only) or CHECKS
