"""Runs all checks one after the other; a broken one does not affect the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

from ampere.core.errors import AmpereError, DeviceError, UsageError
from ampere.devices.conformance.checks import blocks, handshake, lifetime, lines, refusals, strangers, yardstick

from .candidate import PATIENCE_SECONDS, Candidate
from .outcome import BROKEN, KEPT, NOT_OFFERED, Broken, Check, NotOffered, Outcome

CHECKS: tuple[Check, ...] = (
    *handshake.CHECKS,
    *strangers.CHECKS,
    *lines.CHECKS,
    *refusals.CHECKS,
    *blocks.CHECKS,
    *yardstick.CHECKS,
    *lifetime.CHECKS,
)


def check_worker(
    target: str,
    only: Sequence[str] = (),
    patience_seconds: float = PATIENCE_SECONDS,
    on_check: Callable[[Check], None] = lambda _: None,
) -> tuple[Outcome, ...]:
    """The outcome of each check; `target` is tcp://host:port, or a command that starts a worker over a pipe."""
    chosen, candidate = _chosen(only), Candidate(target, patience_seconds)
    outcomes = []
    try:
        with _or_device_error(target):
            _ = candidate.wire
        for check in chosen:
            on_check(check)
            outcomes.append(_outcome(check, candidate))
    finally:
        candidate.anew()
    return tuple(outcomes)


@contextmanager
def _or_device_error(target: str) -> Iterator[None]:
    """A worker that cannot be reached at all is not checked."""
    try:
        yield
    except Broken as problem:
        raise DeviceError(f"{target} does not answer a handshake ({problem}): check that a worker listens") from None


def _outcome(check: Check, candidate: Candidate) -> Outcome:
    began, verdict, reason = time.monotonic(), KEPT, ""
    try:
        check.run(candidate)
    except NotOffered as problem:
        verdict, reason = NOT_OFFERED, str(problem)
    except (Broken, AmpereError, OSError) as problem:
        verdict, reason = BROKEN, str(problem)
        candidate.anew()
    return Outcome(check.name, check.title, verdict, reason, time.monotonic() - began)


def _chosen(only: Sequence[str]) -> tuple[Check, ...]:
    known = {check.name: check for check in CHECKS}
    for name in only:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"the checks are {', '.join(known)}"
            raise UsageError(f"there is no check {name!r}: {hint}")
    return tuple(known[name] for name in only) or CHECKS
