"""A worker process as the host sees it: spoken to over its standard input and output, ended for good."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import IO

from .conversation import Conversation, WorkerGone

LAST_LINES = 20


class WorkerProcess(Conversation):
    patience_seconds = 1.0  # for a worker that is told to end

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], first: bytes = b"") -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            start_new_session=True,  # so that it can be ended with all its children
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
        """One that does not end by itself is ended."""
        self._hang_up()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(self.patience_seconds)
        self.kill()

    def kill(self) -> None:
        """The whole group, even when its leader is dead: its children may not be."""
        self._hang_up()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
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
        self._threads[-1].join(0.5)  # it may still be listening to the last words
        code = self._process.returncode
        how = f"ended by {signal.Signals(-code).name}" if code and code < 0 else f"exit code {code}"
        return f"{how}; last words: {self._said[-1]}" if self._said else how

    def _read_errors(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in self._stream("stderr"):
                self._said.append(line.decode(errors="replace").strip()[:500])

    def _stream(self, name: str) -> IO[bytes]:
        stream: IO[bytes] = getattr(self._process, name)
        return stream
