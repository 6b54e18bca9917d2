"""The worker that is looked at: asked by hand, and heard strictly."""

from __future__ import annotations

import json
import time
from typing import Any, NoReturn

from .outcome import Broken
from .wires import Wire, connected

PATIENCE_SECONDS = 60.0  # for an answer: a training runtime is imported at the first block
ERROR_TYPES = (
    "bad_request",
    "protocol",
    "runtime_missing",
    "variant_failed",
    "variant_died",
    "compile_timeout",
    "out_of_memory",
    "meter_failed",
    "busy",
)


class Candidate:
    def __init__(self, target: str, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self.target, self.patience_seconds = target, patience_seconds
        self.beats: list[float] = []  # when it said that it is alive
        self._wire: Wire | None = None
        self._number = 0

    @property
    def wire(self) -> Wire:
        if self._wire is None:
            self._wire = connected(self.target)
        return self._wire

    def anew(self) -> None:
        """A conversation that was spoilt is not gone on with."""
        if self._wire is not None:
            self._wire.close()
        self._wire = None

    def say(self, line: str | bytes) -> None:
        data = line if isinstance(line, bytes) else line.encode()
        try:
            self.wire.send(data + b"\n")
        except OSError:
            raise Broken("it has closed the connection") from None

    def hear(self, seconds: float | None = None) -> dict[str, Any]:
        """The next answer; empty lines only say that it is alive."""
        until = time.monotonic() + (self.patience_seconds if seconds is None else seconds)
        while True:
            line = self._line(until)
            if line:
                return _answer(line)
            self.beats.append(time.monotonic())

    def silent(self, seconds: float) -> bool:
        try:
            self.hear(seconds)
        except Broken as problem:
            return "nothing" in str(problem)
        return False

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        self._number += 1
        self.say(json.dumps({"id": self._number, "do": do, **fields}))
        answer = self.hear()
        if answer["id"] != self._number:
            raise Broken(f"asked as {self._number}, it answered as {answer['id']!r}")
        return answer

    def result(self, do: str, **fields: Any) -> dict[str, Any]:
        answer = self.ask(do, **fields)
        if "error" in answer:
            raise Broken(f"it refused a good {do}: {answer['error']['message'][:200]}")
        found: dict[str, Any] = answer["result"]
        return found

    def refused(self, do: str, *types: str, **fields: Any) -> str:
        """What it says; one of these types is right."""
        answer = self.ask(do, **fields)
        if "error" not in answer:
            raise Broken(f"it took {_short(fields) or do} for a good {do}")
        found = answer["error"]["type"]
        if found not in types:
            raise Broken(f"to {_short(fields) or do} it answered {found}, not {' or '.join(types)}")
        return str(answer["error"]["message"])

    def _line(self, until: float) -> bytes | None:
        try:
            line = self.wire.line(max(0.0, until - time.monotonic()))
        except TimeoutError:
            raise Broken("it said nothing in time") from None
        if line is None:
            raise Broken("it has ended, or closed the connection")
        return line


def _answer(line: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError) as problem:
        raise Broken(f"it answered what is no line of JSON: {line[:60]!r} ({problem})") from None
    if not isinstance(answer, dict) or "id" not in answer or ("result" in answer) == ("error" in answer):
        raise Broken(f"an answer has an id and either a result or an error, not {_short(answer)}")
    if "error" in answer:
        _check_error(answer["error"])
    elif not isinstance(answer["result"], dict):
        raise Broken(f"a result is an object, not {_short(answer['result'])}")
    return answer


def _check_error(error: Any) -> None:
    if not isinstance(error, dict) or error.get("type") not in ERROR_TYPES:
        raise Broken(f"an error has a type out of {', '.join(ERROR_TYPES)}, not {_short(error)}")
    message = error.get("message")
    if not isinstance(message, str) or not message or "\n" in message:
        raise Broken(f"an error has a message of one line, not {message!r}")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _short(value: Any) -> str:
    return json.dumps(value)[:80] if value else ""
