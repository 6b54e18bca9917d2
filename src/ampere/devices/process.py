"""A worker process as the host sees it: ask, wait no longer than a deadline, end it for good."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import IO, Any

LAST_LINES = 20


class WorkerGone(Exception):
    """The process ended, or did not answer in time and was ended."""


class WorkerProcess:
    patience_seconds = 1.0  # for a worker that is told to end

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            start_new_session=True,  # so that it can be ended with all its children
        )
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._said: deque[str] = deque(maxlen=LAST_LINES)
        self._numbers = itertools.count(1)
        self._threads = [self._start(self._read_answers), self._start(self._read_errors)]

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """The answer to this request. Raises WorkerGone, after which the process is no more."""
        number = next(self._numbers)
        try:
            self._send({**request, "id": number})
            return self._await(number, time.monotonic() + seconds)
        except BaseException:
            self.kill()
            raise

    def close(self) -> None:
        """A worker ends by itself when nobody is left to ask; one that does not is ended."""
        self._hang_up()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(self.patience_seconds)
        self.kill()

    def kill(self) -> None:
        """The whole group, even when its leader is dead: its children may not be."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for thread in self._threads:
            thread.join(1.0)
        for name in ("stdin", "stdout", "stderr"):
            with contextlib.suppress(OSError, ValueError):
                self._stream(name).close()

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError):
            self._stream("stdin").close()

    def _send(self, request: Mapping[str, Any]) -> None:
        try:
            self._stream("stdin").write(json.dumps(request).encode() + b"\n")
            self._stream("stdin").flush()
        except (OSError, ValueError):
            raise self._gone() from None

    def _await(self, number: int, deadline: float) -> dict[str, Any]:
        while True:
            try:
                answer = self._answers.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise WorkerGone("it did not answer in time") from None
            if answer is None:
                raise self._gone()
            if answer.get("id") == number:
                return answer

    def _gone(self) -> Exception:
        return WorkerGone(self._epitaph())

    def _epitaph(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._threads[-1].join(0.5)  # it may still be listening to the last words
        code = self._process.returncode
        how = f"ended by {signal.Signals(-code).name}" if code and code < 0 else f"exit code {code}"
        return f"{how}; last words: {self._said[-1]}" if self._said else how

    def _start(self, target: Any) -> threading.Thread:
        thread = threading.Thread(target=target, daemon=True)
        thread.start()
        return thread

    def _read_answers(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in self._stream("stdout"):
                with contextlib.suppress(ValueError):
                    answer = json.loads(line)
                    if isinstance(answer, dict):  # else something that a shell says at login
                        self._answers.put(answer)
        self._answers.put(None)

    def _read_errors(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in self._stream("stderr"):
                self._said.append(line.decode(errors="replace").strip()[:500])

    def _stream(self, name: str) -> IO[bytes]:
        stream: IO[bytes] = getattr(self._process, name)
        return stream
