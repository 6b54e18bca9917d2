"""Where a worker listens: `tcp://host:port`."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass

from ..errors import DeviceError, UsageError

SPEC = re.compile(r"//(?P<host>\[[0-9A-Fa-f:.%]+\]|[^-@:/?\s\[\]][^@:/?\s\[\]]*):(?P<port>\d{1,5})/?")


@dataclass(frozen=True)
class TcpAddress:
    host: str
    port: int

    @classmethod
    def parse(cls, name: str) -> TcpAddress:
        """What follows `tcp:`."""
        found = SPEC.fullmatch(name)
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
