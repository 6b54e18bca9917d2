"""A worker that listens on a port as a device: a phone app, a program in any language, or ours with `--listen`."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from ampere.core.errors import DeviceError, UsageError
from ampere.core.protocol import TOKEN_VARIABLE

from .process_worker import WorkerOptions
from .remote import RemoteWorker
from .transport import ConnectionLost, Transport

# Where a worker listens: `tcp://host:port`.

SPEC = re.compile(r"//(?P<host>\[[0-9A-Fa-f:.%]+\]|[^-@:/?\s\[\]][^@:/?\s\[\]]*):(?P<port>\d{1,5})/?")


@dataclass(frozen=True)
class TcpAddress:
    host: str
    port: int

    @classmethod
    def parse(cls, name: str) -> TcpAddress:
        """What follows `tcp:`."""
        found = SPEC.fullmatch(name)
        if "@" in name:  # not shown: it may be a token
            raise UsageError(f"a tcp device is written tcp://host:port: give its token with {TOKEN_VARIABLE}")
        if not found or not 0 < int(found["port"]) < 65536:
            raise UsageError(f"'tcp:{name}' is no device: write tcp://host:port, such as tcp://127.0.0.1:7070")
        return cls(found["host"].strip("[]"), int(found["port"]))

    def connect(self, seconds: float) -> socket.socket:
        try:
            connection = socket.create_connection((self.host, self.port), seconds)
        except OSError as problem:
            raise self.unreachable(str(problem)) from None
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def unreachable(self, said: str) -> DeviceError:
        return DeviceError(
            f"no worker answers at {self} ({said}); start one there, as with python3 -m ampere.worker --listen PORT"
        )

    def __str__(self) -> str:
        return f"tcp://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


CONNECT_SECONDS = 15.0


def token_field() -> dict[str, str]:
    """The token for a handshake, as the user's environment has it; it is stored nowhere."""
    token = os.environ.get(TOKEN_VARIABLE)
    return {"token": token} if token else {}


class TcpTransport(Transport):
    we_beat = True

    def __init__(self, connection: socket.socket) -> None:
        self._socket, self._over = connection, False
        super().__init__()

    @property
    def alive(self) -> bool:
        return not self._over and self._threads[1].is_alive()

    def close(self) -> None:
        self.kill()

    def kill(self) -> None:
        self._over = True
        self._hang_up()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(1.0)
        self._socket.close()

    def _write(self, data: bytes) -> None:
        self._socket.sendall(data)

    def _stream_of_answers(self) -> BinaryIO:
        return cast(BinaryIO, self._socket.makefile("rb"))

    def _end_of_requests(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    def _gone(self) -> Exception:
        return ConnectionLost("the connection ended")


class TcpWorker(RemoteWorker):
    def __init__(self, address: TcpAddress, options: WorkerOptions | None = None) -> None:
        super().__init__("tuned", options)
        self.address = address

    def identity(self) -> dict[str, Any]:
        """It has the allocator that it has: no process of ours is started there."""
        return {**super().identity(), "allocators": [self.allocator]}

    def _handshake(self) -> dict[str, Any]:
        return {**super()._handshake(), **token_field()}

    def _launched(self) -> Transport:
        try:
            return TcpTransport(self.address.connect(CONNECT_SECONDS))
        except DeviceError as problem:
            raise ConnectionLost(str(problem)) from None

    def _unreachable(self, said: str) -> Exception:
        return DeviceError(said if str(self.address) in said else str(self.address.unreachable(said)))

    def _by_hand(self) -> str:
        return f"ampere conformance {self.address}"
