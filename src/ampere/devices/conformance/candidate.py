"""The worker that is checked: bytes to it and lines from it, over a pipe or TCP, with nothing hidden or corrected."""

from __future__ import annotations

import contextlib
import json
import queue
import shlex
import socket
import subprocess
import threading
import time
from typing import IO, Any, BinaryIO, NoReturn, Protocol, cast

from ampere.core.errors import DeviceError, UsageError
from ampere.core.processes import end_group, own_group
from ampere.core.protocol import MOST_LINE_BYTES, PROTOCOLS, lines_of
from ampere.devices.answer_fields import Unusable, check_fields
from ampere.devices.answers import as_error
from ampere.devices.tcp import TcpAddress, token_field

from .outcome import Broken

CONNECT_SECONDS = 10.0


class Wire(Protocol):
    """A connection to a worker."""

    def send(self, data: bytes) -> None: ...

    def line(self, seconds: float) -> bytes | None:
        """The next line without its end; None where the worker closed the connection; TimeoutError."""

    def hang_up(self) -> None:
        """Send no more requests, as a host does that is done."""

    def ended(self, seconds: float) -> bool:
        """Whether the worker ends within so many seconds."""

    def close(self) -> None:
        """Close the connection, and end a worker that was started for it."""


class Lines:
    """Lines of a stream, read by a thread, so that waiting has a time limit."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        threading.Thread(target=self._read, args=[stream], daemon=True).start()

    def line(self, seconds: float) -> bytes | None:
        try:
            return self._lines.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError from None

    def ended(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while True:
            try:
                if self._lines.get(timeout=max(0.0, until - time.monotonic())) is None:
                    return True
            except queue.Empty:
                return False

    def _read(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in lines_of(cast(BinaryIO, stream)):
                self._lines.put(line.rstrip(b"\r\n"))
        self._lines.put(None)


class Pipe(Lines):
    """A worker that is started here, over its standard input and output."""

    def __init__(self, command: str) -> None:
        try:
            words = shlex.split(command)
        except ValueError as problem:
            raise UsageError(f"{command!r} is not a command ({problem}): quote it as in a shell") from None
        if not words:
            raise UsageError("the command is empty: give one, such as 'python3 -m ampere.worker', or tcp://host:port")
        try:
            self._process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **own_group()
            )
        except OSError as problem:
            raise DeviceError(f"cannot start {words[0]} ({problem}); check the command") from None
        super().__init__(self._stream("stdout"))

    def send(self, data: bytes) -> None:
        self._stream("stdin").write(data)
        self._stream("stdin").flush()

    def hang_up(self) -> None:
        with contextlib.suppress(OSError):
            self._stream("stdin").close()

    def ended(self, seconds: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.returncode is not None

    def close(self) -> None:
        self.hang_up()
        end_group(self._process)

    def _stream(self, name: str) -> IO[bytes]:
        stream: IO[bytes] = getattr(self._process, name)
        return stream


class Tcp(Lines):
    """A worker that listens on a TCP port."""

    def __init__(self, address: TcpAddress) -> None:
        self._socket = address.connect(CONNECT_SECONDS)
        super().__init__(self._socket.makefile("rb"))

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def hang_up(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def connected(target: str) -> Wire:
    """A connection to `tcp://host:port`, or to a worker started by a command."""
    if target.startswith("tcp:"):
        return Tcp(TcpAddress.parse(target.partition(":")[2]))
    return Pipe(target)


PATIENCE_SECONDS = 60.0  # for an answer: a training runtime is imported at the first block
ERROR_TYPES = (
    "bad_request",
    "protocol",
    "unauthorized",
    "runtime_missing",
    "variant_failed",
    "variant_died",
    "compile_timeout",
    "out_of_memory",
    "meter_failed",
    "busy",
)


class Candidate:
    """The worker that is checked: requests to it, and its answers, checked strictly."""

    def __init__(self, target: str, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self.target, self.patience_seconds = target, patience_seconds
        self.beats: list[float] = []  # when its heartbeats came
        self._wire: Wire | None = None
        self._number = 0

    @property
    def wire(self) -> Wire:
        if self._wire is None:
            self._wire = connected(self.target)
            if self.listens:
                self._shake_hands()
        return self._wire

    @property
    def listens(self) -> bool:
        """Whether it is behind a TCP port, where the first line must be the handshake with the token."""
        return self.target.startswith("tcp:")

    def _shake_hands(self) -> None:
        answer = self.ask("hello", protocols=list(PROTOCOLS), **token_field())
        if "error" in answer:
            self.anew()
            raise as_error(answer["error"]["type"], answer["error"]["message"])

    def anew(self) -> None:
        """Close the connection; the next request opens a new one."""
        if self._wire is not None:
            self._wire.close()
        self._wire = None

    def say(self, line: str | bytes) -> None:
        """Send one line."""
        data = line if isinstance(line, bytes) else line.encode()
        try:
            self.wire.send(data + b"\n")
        except OSError:
            raise Broken("it has closed the connection") from None

    def hear(self, seconds: float | None = None) -> dict[str, Any]:
        """The next answer; empty lines are heartbeats."""
        until = time.monotonic() + (self.patience_seconds if seconds is None else seconds)
        while True:
            line = self._line(until)
            if line:
                return _answer(line)
            self.beats.append(time.monotonic())

    def silent(self, seconds: float) -> bool:
        """Whether no answer comes in so many seconds."""
        try:
            self.hear(seconds)
        except Broken as problem:
            return "nothing" in str(problem)
        return False

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        """The answer to a request, under its id."""
        _ = self.wire  # which may ask something itself
        self._number += 1
        self.say(json.dumps({"id": self._number, "do": do, **fields}))
        answer = self.hear()
        if answer["id"] != self._number:
            raise Broken(f"a request with id {self._number} was answered with id {answer['id']!r}")
        return answer

    def result(self, do: str, **fields: Any) -> dict[str, Any]:
        """The result of a request; Broken where it is refused."""
        answer = self.ask(do, **fields)
        if "error" in answer:
            raise Broken(f"it refused a valid {do}: {answer['error']['message'][:200]}")
        found: dict[str, Any] = answer["result"]
        try:
            check_fields({"do": do, **fields}, found)
        except Unusable as problem:
            raise Broken(f"its answer to {do}: {problem.what}") from None
        return found

    def refused(self, do: str, *types: str, **fields: Any) -> str:
        """The message of an expected refusal; Broken unless its type is one of these."""
        answer = self.ask(do, **fields)
        if "error" not in answer:
            raise Broken(f"it accepted {_short(fields) or do}, which is not a valid {do}")
        found = answer["error"]["type"]
        if found not in types:
            raise Broken(f"to {_short(fields) or do} it answered {found}, not {' or '.join(types)}")
        return str(answer["error"]["message"])

    def _line(self, until: float) -> bytes | None:
        try:
            line = self.wire.line(max(0.0, until - time.monotonic()))
        except TimeoutError:
            raise Broken("it answered nothing in time") from None
        if line is None:
            raise Broken("it has ended, or closed the connection")
        return line


def _answer(line: bytes) -> dict[str, Any]:
    if len(line) > MOST_LINE_BYTES:
        raise Broken(f"its answer has more than {MOST_LINE_BYTES} bytes")
    try:
        answer = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError) as problem:
        raise Broken(f"its answer is not a line of JSON: {line[:60]!r} ({problem})") from None
    if not isinstance(answer, dict) or "id" not in answer or ("result" in answer) == ("error" in answer):
        raise Broken(f"an answer needs an id and either a result or an error, not {_short(answer)}")
    if "error" in answer:
        _check_error(answer["error"])
    elif not isinstance(answer["result"], dict):
        raise Broken(f"a result must be an object, not {_short(answer['result'])}")
    return answer


def _check_error(error: Any) -> None:
    if not isinstance(error, dict) or error.get("type") not in ERROR_TYPES:
        raise Broken(f"the type of an error must be one of {', '.join(ERROR_TYPES)}, not {_short(error)}")
    message = error.get("message")
    if not isinstance(message, str) or not message or "\n" in message:
        raise Broken(f"the message of an error must be one line, not {message!r}")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _short(value: Any) -> str:
    return json.dumps(value)[:80] if value else ""
