"""A bench meter whose log is exported after the run: the device runs patterns, and reports when its windows began.

    pattern | block block ... | pattern | block block block block ... | pattern | ...      twice as far apart each time
       \\_______________ their places in the log align both clocks, whenever it is attached ______/

Until then joules are modelled, and marked as such.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from threading import RLock
from typing import Any

from ampere.core.errors import UsageError
from ampere.core.measurement import LOG, Window
from ampere.meters import DEFAULT_WATTS_PER_CORE

from .bench import ALIGNED_FOR_SECONDS, Ask, LoggedMeter, part_seconds, window_seconds
from .log import PREFIX, asked_as

NAME = f"{PREFIX}deferred"
ASKED = re.compile(rf"{NAME}(?:,every=([^,=]*))?")
USUAL_EVERY, SLOWEST = 0.01, 0.03  # seconds between rows
NEXT_SECONDS = 10.0  # from the first pattern to the second, at least


class DeferredMeter(LoggedMeter):
    """A meter whose log is attached after the run, with `ampere attach`."""

    def __init__(self, every_seconds: float = USUAL_EVERY) -> None:
        self.interval, self.window_seconds = every_seconds, window_seconds(every_seconds)
        self._patterns: list[float] = []  # when patterns began
        self._one_at_a_time = RLock()  # workers of one device must not disturb each other's patterns

    def describe(self) -> dict[str, Any]:
        scope = f"{DEFAULT_WATTS_PER_CORE:g} W per busy core, until a log is attached (ampere attach)"
        described = {"name": NAME, "measured": False, "scope": scope}
        return {**described, "window_seconds": self.window_seconds, "update_seconds": self.interval}

    def around(self, request: Mapping[str, Any], ask: Ask) -> dict[str, Any]:
        if request.get("pairing") == "plain":
            raise UsageError(
                f"--meter {NAME} needs blocks that are paired with a yardstick: leave out --timing wallclock"
            )
        with self._one_at_a_time:
            pattern = self._pattern(ask) if request["do"] == "block" else ()
            return self._modelled(self.completed(ask(request)), pattern)

    def completed(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        return self._named(answer)

    def released(self) -> None:
        """Forget the patterns, so that the next run begins with one."""
        self._patterns = []

    def _modelled(self, answer: dict[str, Any], pattern: tuple[float, ...]) -> dict[str, Any]:
        if "target" not in answer:
            return answer
        modelled = {name: [_modelled(row) for row in answer[name]] for name in ("target", "yardstick")}
        return {**answer, **modelled, "pattern": pattern}

    def _pattern(self, ask: Ask) -> tuple[float, ...]:
        """When the parts of a pattern were, run now if one is due; else empty."""
        from .alignment import PATTERN

        now = ask({"do": "load", "pattern": [0], "seconds": 1e-3})["ends"][-1]
        if self._patterns:
            apart = self._patterns[-1] - self._patterns[0]
            if now - self._patterns[-1] < min(max(apart, NEXT_SECONDS), ALIGNED_FOR_SECONDS):
                return ()
        done = ask({"do": "load", "pattern": list(PATTERN), "seconds": part_seconds(self.interval)})
        self._patterns.append(done["began"])
        return (done["began"], *done["ends"])


def _modelled(row: Sequence[Any]) -> list[Any]:
    """A window with modelled joules, which keeps the time when it began."""
    window = Window.from_json(row)
    joules = window.joules if window.began is None else DEFAULT_WATTS_PER_CORE * window.busy_seconds
    return window._replace(joules=joules).to_json()


def meter_for(every_seconds: float) -> str:
    """The value of --meter for rows at this interval; a slow meter must write while it records."""
    return f"{NAME},every={every_seconds:.2g}" if every_seconds <= SLOWEST else asked_as(LOG)


def is_deferred(asked: str) -> bool:
    """Whether a meter of this name is deferred."""
    return ASKED.fullmatch(asked) is not None


def deferred_meter(asked: str) -> DeferredMeter:
    """The meter of `log:deferred`, or of `log:deferred,every=0.02` for a row every 20 ms."""
    found = ASKED.fullmatch(asked)
    assert found
    try:
        every = float(found.group(1) or USUAL_EVERY)
    except ValueError:
        every = 0.0
    if not 0 < every < float("inf"):
        raise UsageError(f"every={found.group(1)} is not a time between rows: give seconds, as in {NAME},every=0.02")
    if every > SLOWEST:
        raise UsageError(
            f"a row every {every:g} s is too slow for a log that is read after the run (at most {SLOWEST:g} s): "
            f"let the meter write while it records, and name that file with {PREFIX}FILE"
        )
    return DeferredMeter(every)
