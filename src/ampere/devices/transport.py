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
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any

from ampere.core.processes import end_group, how_it_ended, own_group

BEAT_SECONDS = 5.0
MISSED_BEATS = 3  # after which the other end is taken for dead


class WorkerGone(Exception):
    """The worker ended, hung, or did not answer in time; `code` is the exit code of its process, if it has one."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class ConnectionLost(WorkerGone):
    """The connection ended or could not be made; the worker itself may be fine."""


class Transport(ABC):
    """A connection to one worker, over any kind of stream."""

    we_beat = False  # whether the host sends heartbeats too

    def __init__(self, first: bytes = b"") -> None:
        """Start reading and writing; `first` is sent before any request."""
        self.silence_seconds: float | None = None  # in which a busy worker must send a heartbeat
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
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
            self._heard = time.monotonic()
            self._outgoing.put(json.dumps({**request, "id": number}).encode() + b"\n")
            return self._await(number, self._heard + seconds)
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
    def _lines(self) -> Iterable[bytes]: ...

    @abstractmethod
    def _end_of_requests(self) -> None: ...

    @abstractmethod
    def _gone(self) -> Exception:
        """The error that says why no answer will come."""

    def _hang_up(self) -> None:
        self._outgoing.put(None)

    def _await(self, number: int, deadline: float) -> dict[str, Any]:
        while True:
            until = min(deadline, self._heard + self.silence_seconds) if self.silence_seconds else deadline
            try:
                answer = self._answers.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                if time.monotonic() >= deadline:
                    raise WorkerGone("it did not answer in time") from None
                if self.silence_seconds and time.monotonic() >= self._heard + self.silence_seconds:
                    raise WorkerGone(f"it hangs: no heartbeat for {self.silence_seconds:g} s") from None
                continue
            if answer is None:
                raise self._gone()
            if answer.get("id") == number or _is_busy(answer):
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
        with contextlib.suppress(OSError, ValueError):
            for line in self._lines():
                self._heard = time.monotonic()
                with contextlib.suppress(ValueError, RecursionError):
                    answer = json.loads(line)
                    if isinstance(answer, dict):  # else a heartbeat, or something that a shell prints at login
                        self._answers.put(answer)
        self._answers.put(None)

    def _start(self, target: Any) -> threading.Thread:
        thread = threading.Thread(target=target, daemon=True)
        thread.start()
        return thread


def _is_busy(answer: Mapping[str, Any]) -> bool:
    """Whether a worker serves another host: it says so before any request."""
    error = answer.get("error")
    return answer.get("id") is None and isinstance(error, dict) and error.get("type") == "busy"


LAST_LINES = 20


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

    def _lines(self) -> Iterable[bytes]:
        return self._stream("stdout")

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
            for line in self._stream("stderr"):
                self._said.append(line.decode(errors="replace").strip()[:500])

    def _stream(self, name: str) -> IO[bytes]:
        stream: IO[bytes] = getattr(self._process, name)
        return stream
