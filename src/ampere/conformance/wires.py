"""Bytes to a worker and lines from it, over a pipe or over TCP: nothing is hidden, nothing is put right."""

from __future__ import annotations

import contextlib
import os
import queue
import shlex
import signal
import socket
import subprocess
import threading
import time
from typing import IO, Protocol

from ampere.devices.tcp_address import TcpAddress
from ampere.errors import DeviceError, UsageError

CONNECT_SECONDS = 10.0


class Wire(Protocol):
    def send(self, data: bytes) -> None: ...

    def line(self, seconds: float) -> bytes | None:
        """The next line without its end; None where the worker closed the wire. TimeoutError."""

    def hang_up(self) -> None:
        """As a host does that needs no more."""

    def ended(self, seconds: float) -> bool:
        """Whether the worker has taken its leave in so many seconds."""

    def close(self) -> None:
        """For good, and everything with it."""


class Lines:
    """A thread reads, so that waiting can end."""

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
            for line in stream:
                self._lines.put(line.rstrip(b"\r\n"))
        self._lines.put(None)


class Pipe(Lines):
    def __init__(self, command: str) -> None:
        try:
            words = shlex.split(command)
        except ValueError as problem:
            raise UsageError(f"{command!r} is no command ({problem}): quote it as a shell would have it") from None
        if not words:
            raise UsageError("there is no command: name one, such as 'python3 -m ampere.worker', or tcp://host:port")
        try:
            self._process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
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
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _stream(self, name: str) -> IO[bytes]:
        stream: IO[bytes] = getattr(self._process, name)
        return stream


class Tcp(Lines):
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
    if target.startswith("tcp:"):
        return Tcp(TcpAddress.parse(target.partition(":")[2]))
    return Pipe(target)
