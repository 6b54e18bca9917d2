"""A connection that sends no whole request in time is closed: slow or silent clients would hold it for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0  # also before the first one
BODY_SECONDS = 30.0


class Punctual(H11Protocol):  # type: ignore[misc] # uvicorn is an extra
    """HTTP/1.1 with a deadline for each request. h11 limits the size of its headers."""

    _deadline: asyncio.TimerHandle | None = None
    _waits_for: Any = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """One deadline for a head, and one for a body: bytes that trickle in move neither."""
        state = self.conn.their_state
        if state is self._waits_for:
            return
        self._stop()
        seconds = {h11.IDLE: HEAD_SECONDS, h11.SEND_BODY: BODY_SECONDS}.get(state)
        if seconds is not None:
            self._waits_for = state
            self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _stop(self) -> None:
        self._waits_for = None
        if self._deadline is not None:
            self._deadline.cancel()
