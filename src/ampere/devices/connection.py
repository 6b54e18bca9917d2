"""A worker at the far end of a connection: what is sent goes through a thread that also says that we are still here."""

from __future__ import annotations

import contextlib
import json
import queue
from collections.abc import Mapping, Sequence
from typing import Any

from .process import WorkerGone, WorkerProcess

BEAT_SECONDS = 5.0
ENDED_BY_SSH = 255


class ConnectionLost(WorkerGone):
    """The connection ended, or there never was one; the worker is not to blame."""


class NeverRan(Exception):
    """The far end answered, but could not start a worker: its exit code, and what it said."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(said)
        self.code = code


class RemoteProcess(WorkerProcess):
    patience_seconds = 5.0

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], parcel: bytes, unfit: Sequence[int]
    ) -> None:
        """`unfit` are exit codes that say why no worker can run there."""
        self._unfit = unfit
        self._outgoing: queue.Queue[bytes | None] = queue.Queue()
        self._outgoing.put(parcel)
        super().__init__(command, environment)
        self._threads.insert(0, self._start(self._write))

    def kill(self) -> None:
        self._hang_up()
        super().kill()

    def _send(self, request: Mapping[str, Any]) -> None:
        self._outgoing.put(json.dumps(request).encode() + b"\n")

    def _hang_up(self) -> None:
        self._outgoing.put(None)

    def _write(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while (piece := self._next()) is not None:
                self._stream("stdin").write(piece)
                self._stream("stdin").flush()
            self._stream("stdin").close()

    def _next(self) -> bytes | None:
        try:
            return self._outgoing.get(timeout=BEAT_SECONDS)
        except queue.Empty:
            return b"\n"

    def _gone(self) -> Exception:
        epitaph, code = self._epitaph(), self._process.returncode
        if code == ENDED_BY_SSH or code is None or code < 0:
            return ConnectionLost("\n".join(self._said) or epitaph)
        return NeverRan(code, self._said[-1] if self._said else "") if code in self._unfit else WorkerGone(epitaph)
