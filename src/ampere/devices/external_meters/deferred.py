"""A bench meter whose log is exported after the run."""

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

# Joules of a device's windows, in the log of a meter whose clock is another one.


# A bench meter whose log is exported after the run: the device gives patterns, and tells when its windows were.
#
# pattern | block block ... | pattern | block block block block ... | pattern | ...      twice as far apart each time
#    \_______________ where these are in the log tells both clocks, whenever that is ______/
#
# Until then joules are modelled, and say so.

NAME = f"{PREFIX}later"
ASKED = re.compile(rf"{NAME}(?:,every=([^,=]*))?")
USUAL_EVERY, SLOWEST = 0.01, 0.03  # seconds between rows
NEXT_SECONDS = 10.0  # from the first pattern to the second, at least


class LaterMeter(LoggedMeter):
    def __init__(self, every_seconds: float = USUAL_EVERY) -> None:
        self.interval, self.window_seconds = every_seconds, window_seconds(every_seconds)
        self._given: list[float] = []  # when patterns began
        self._one_at_a_time = RLock()  # workers of one device must not disturb each other's patterns

    def describe(self) -> dict[str, Any]:
        scope = f"{DEFAULT_WATTS_PER_CORE:g} W per busy core, until a log is attached (ampere attach)"
        said = {"name": NAME, "measured": False, "scope": scope}
        return {**said, "window_seconds": self.window_seconds, "update_seconds": self.interval}

    def around(self, request: Mapping[str, Any], ask: Ask) -> dict[str, Any]:
        if request.get("pairing") == "plain":
            raise UsageError(f"--meter {NAME} needs the yardstick in each block: leave out --timing wallclock")
        with self._one_at_a_time:
            pattern = self._pattern(ask) if request["do"] == "block" else ()
            return self._modelled(self.told(ask(request)), pattern)

    def told(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        return self._named(answer)

    def released(self) -> None:
        """The next run begins with a pattern."""
        self._given = []

    def _modelled(self, answer: dict[str, Any], pattern: tuple[float, ...]) -> dict[str, Any]:
        if "target" not in answer:
            return answer
        modelled = {name: [_modelled(row) for row in answer[name]] for name in ("target", "yardstick")}
        return {**answer, **modelled, "pattern": pattern}

    def _pattern(self, ask: Ask) -> tuple[float, ...]:
        """Where it is time for one."""
        from .alignment import PATTERN

        now = ask({"do": "load", "pattern": [0], "seconds": 1e-3})["ends"][-1]
        if self._given:
            apart = self._given[-1] - self._given[0]
            if now - self._given[-1] < min(max(apart, NEXT_SECONDS), ALIGNED_FOR_SECONDS):
                return ()
        done = ask({"do": "load", "pattern": list(PATTERN), "seconds": part_seconds(self.interval)})
        self._given.append(done["began"])
        return (done["began"], *done["ends"])


def _modelled(row: Sequence[Any]) -> list[Any]:
    """A window with modelled joules, which still says when it was."""
    window = Window.from_json(row)
    joules = window.joules if window.began is None else DEFAULT_WATTS_PER_CORE * window.busy_seconds
    return window._replace(joules=joules).to_json()


def meter_for(every_seconds: float) -> str:
    """What to ask for with rows so far apart: slow ones must be written while they are recorded."""
    return f"{NAME},every={every_seconds:.2g}" if every_seconds <= SLOWEST else asked_as(LOG)


def asked_later(asked: str) -> bool:
    return ASKED.fullmatch(asked) is not None


def later_meter(asked: str) -> LaterMeter:
    """`log:later`, or `log:later,every=0.02` of a meter with a row every 20 ms."""
    found = ASKED.fullmatch(asked)
    assert found
    try:
        every = float(found.group(1) or USUAL_EVERY)
    except ValueError:
        every = 0.0
    if not 0 < every < float("inf"):
        raise UsageError(f"every={found.group(1)} is no time between rows: give seconds, as in {NAME},every=0.02")
    if every > SLOWEST:
        raise UsageError(
            f"a row every {every:g} s is too slow for a log that is read afterwards (at most {SLOWEST:g} s): "
            f"let the meter write while it records, and name that file with {PREFIX}FILE"
        )
    return LaterMeter(every)
