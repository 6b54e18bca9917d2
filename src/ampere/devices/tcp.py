"""A worker that listens on a port as a device: a phone app, a program in any language, or ours with `--listen`.

connect -> asked and answered in lines, as docs/PROTOCOL.md has it -> hang up; the worker waits for the next host
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable
from typing import Any

from ..errors import DeviceError
from ..worker.meters import DEFAULT_WATTS_PER_CORE
from .conversation import ConnectionLost, Conversation
from .remote import RemoteDevice
from .tcp_address import TcpAddress

CONNECT_SECONDS = 15.0


class TcpWorker(Conversation):
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

    def _lines(self) -> Iterable[bytes]:
        return self._socket.makefile("rb")

    def _end_of_requests(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    def _gone(self) -> Exception:
        return ConnectionLost("the connection ended")


class TcpDevice(RemoteDevice):
    def __init__(self, address: TcpAddress, watts_per_core: float = DEFAULT_WATTS_PER_CORE) -> None:
        super().__init__("tuned", watts_per_core)
        self.address = address

    def identity(self) -> dict[str, Any]:
        """It has the allocator that it has: no process of ours is started there."""
        return {**super().identity(), "allocators": [self.allocator]}

    def _launched(self) -> Conversation:
        try:
            return TcpWorker(self.address.connect(CONNECT_SECONDS))
        except DeviceError as problem:
            raise ConnectionLost(str(problem)) from None

    def _unreachable(self, said: str) -> Exception:
        return DeviceError(said if str(self.address) in said else str(self.address.unreachable(said)))

    def _by_hand(self) -> str:
        return f"ampere conformance {self.address}"
