"""Sending requests to a worker and waiting for its answers: one line out, one line back, with a deadline.

ask -->  requests, written by a thread, so that a blocked connection does not block the caller
    <--  answers, read by another; an empty line is a heartbeat of a busy worker
"""

from __future__ import annotations

import contextlib
import itertools
import json
import queue
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from typing import IO, Any, BinaryIO, cast

from ampere.core.processes import end_group, how_it_ended, own_group
from ampere.core.protocol import MOST_LINE_BYTES, lines_of

from .answer_fields import BrokenProtocol, parse_answer

BEAT_SECONDS = 5.0
MISSED_BEATS = 3  # after which the other end is taken for dead
MOST_TEXT_LINES = 1000  # that are no answers, as a shell prints at login
MOST_UNREAD = 10  # errors that belong to no request
TOO_SLOW = "it did not answer in time"


class WorkerGone(Exception):
    """The worker ended, hung, or did not answer in time; `code` is the exit code of its process, if it has one."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class ConnectionLost(WorkerGone):
    """The connection ended or could not be made; the worker itself may be fine."""


class WorkerBusy(ConnectionLost):
    """Another host has the worker, or it has not noticed yet that this one was cut off from it."""


class Transport(ABC):
    """A connection to one worker, over any kind of stream."""

    we_beat = False  # whether the host sends heartbeats too

    def __init__(self, first: bytes = b"") -> None:
        """Start reading and writing; `first` is sent before any request."""
        self.silence_seconds: float | None = None  # in which a busy worker must send a heartbeat
        self._answers: queue.Queue[dict[str, Any] | BrokenProtocol | None] = queue.Queue()
        self._awaited: int | None = None  # the id of the request that has no answer yet
        self._outgoing: queue.Queue[bytes | None] = queue.Queue()
        self._numbers = itertools.count(1)
        self._heard = time.monotonic()
        if first:
            self._outgoing.put(first)
        self._threads = [self._start(self._write_all), self._start(self._read_all)]

    def ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """The answer to this request. After a WorkerGone the transport is closed."""
        number = next(self._numbers)
        try:
            self._heard, self._awaited = time.monotonic(), number
            self._outgoing.put(json.dumps({**request, "id": number}).encode() + b"\n")
            return self._await(self._heard + seconds)
        except BaseException:
            self.kill()
            raise

    @property
    @abstractmethod
    def alive(self) -> bool: ...

    @abstractmethod
    def close(self) -> None:
        """Close the connection; a worker ends when its host has gone."""

    @abstractmethod
    def kill(self) -> None: ...

    @abstractmethod
    def _write(self, data: bytes) -> None: ...

    @abstractmethod
    def _stream_of_answers(self) -> BinaryIO: ...

    @abstractmethod
    def _end_of_requests(self) -> None: ...

    @abstractmethod
    def _gone(self) -> Exception:
        """The error that says why no answer will come."""

    def _hang_up(self) -> None:
        self._outgoing.put(None)

    def _await(self, deadline: float) -> dict[str, Any]:
        while True:
            until = min(deadline, self._heard + self.silence_seconds) if self.silence_seconds else deadline
            try:
                answer = self._answers.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                if time.monotonic() >= deadline:
                    raise WorkerGone(TOO_SLOW) from None
                if self.silence_seconds and time.monotonic() >= self._heard + self.silence_seconds:
                    raise WorkerGone(f"it hangs: no heartbeat for {self.silence_seconds:g} s") from None
                continue
            if answer is None:
                raise self._gone()
            if isinstance(answer, BrokenProtocol):
                raise answer
            return answer

    def _write_all(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while (piece := self._next()) is not None:
                self._write(piece)
            self._end_of_requests()

    def _next(self) -> bytes | None:
        try:
            return self._outgoing.get(timeout=BEAT_SECONDS if self.we_beat else None)
        except queue.Empty:
            return b"\n"

    def _read_all(self) -> None:
        text_lines = 0
        try:
            for line in lines_of(self._stream_of_answers()):
                self._heard = time.monotonic()
                if not line.endswith(b"\n") and len(line) <= MOST_LINE_BYTES:
                    break  # the worker ended in the middle of it
                answer = parse_answer(line)
                if answer is not None:
                    self._take(answer)
                elif line.strip():
                    text_lines += 1
                    if text_lines > MOST_TEXT_LINES:
                        raise BrokenProtocol(f"it sent more than {MOST_TEXT_LINES} lines that are no answers")
        except BrokenProtocol as problem:
            self._answers.put(problem)
        except (OSError, ValueError):  # the connection was closed
            pass
        finally:
            self._answers.put(None)

    def _take(self, answer: dict[str, Any]) -> None:
        """Pass an answer on if it belongs to the request, or refuses the host; a worker answers once and in order."""
        refuses_the_host = answer["id"] is None and "error" in answer and self._answers.qsize() < MOST_UNREAD
        if not refuses_the_host and (self._awaited is None or answer["id"] != self._awaited):
            asked = "nothing" if self._awaited is None else f"request {self._awaited}"
            raise BrokenProtocol(f"it was asked {asked}, and sent an answer with the id {answer['id']!r:.30}")
        self._awaited = None
        self._answers.put(answer)

    def _start(self, target: Any) -> threading.Thread:
        thread = threading.Thread(target=target, daemon=True)
        thread.start()
        return thread


LAST_LINES = 20
LONGEST_ERROR_LINE = 10_000  # bytes


class WorkerProcess(Transport):
    """A worker process started here, with its standard input and output as the connection."""

    patience_seconds = 1.0  # for a worker to end by itself

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], first: bytes = b"") -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            **own_group(),  # so that it can be ended with all its children
        )
        self._said: deque[str] = deque(maxlen=LAST_LINES)
        super().__init__(first)
        self._threads.append(self._start(self._read_errors))

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """Close the connection, and kill a worker that does not end by itself."""
        self._hang_up()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(self.patience_seconds)
        self.kill()

    def kill(self) -> None:
        """Kill the whole process group, even when its leader is dead: its children may not be."""
        self._hang_up()
        end_group(self._process)
        for thread in self._threads:
            thread.join(1.0)
        for name in ("stdin", "stdout", "stderr"):
            with contextlib.suppress(OSError, ValueError):
                self._stream(name).close()

    def _write(self, data: bytes) -> None:
        self._stream("stdin").write(data)
        self._stream("stdin").flush()

    def _stream_of_answers(self) -> BinaryIO:
        return cast(BinaryIO, self._stream("stdout"))

    def _end_of_requests(self) -> None:
        self._stream("stdin").close()

    def _gone(self) -> Exception:
        return WorkerGone(self._epitaph(), self._process.returncode)

    def _epitaph(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._threads[-1].join(0.5)  # it may still be reading the last lines
        how = how_it_ended(self._process.returncode)
        return f"{how}; its last output: {self._said[-1]}" if self._said else how

    def _read_errors(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in lines_of(cast(BinaryIO, self._stream("stderr")), LONGEST_ERROR_LINE):
                self._said.append(line.decode(errors="replace").strip()[:500])

    def _stream(self, name: str) -> IO[bytes]:
        stream: IO[bytes] = getattr(self._process, name)
        return stream
