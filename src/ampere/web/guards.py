"""Who may ask, and how much: checked before anything of a request is read.

Host     a page of another site may resolve its own name to this machine (DNS rebinding): only our own names are served
Origin   a page of another site may post here: only our own pages may
token    off loopback, every request for /api carries it
body     at most 1 MB
queue    requests that are being answered, at most so many; the others are asked to come back
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from .problems import problem_body

MOST_BYTES = 1_000_000
MOST_WAITING = 400
USUAL_PORTS = (80, 443)
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' data: blob:; style-src 'self'; script-src 'self'; "
    "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


@dataclass(frozen=True)
class Allowed:
    """Under which names the server is reached, and what a client must show."""

    names: tuple[str, ...] = LOOPBACK_NAMES
    port: int = 0  # 0: any
    token: str | None = None

    def host(self, host: str) -> bool:
        name, port = _name_and_port(host)
        usual = {"": self.port in USUAL_PORTS, str(self.port): True}  # a usual port is not written
        return name in self.names and (not self.port or usual.get(port, False))

    def origin(self, origin: str) -> bool:
        scheme, _, host = origin.partition("://")
        return scheme in ("http", "https") and self.host(host)

    def shown(self, authorization: str) -> bool:
        return self.token is None or hmac.compare_digest(authorization.encode(), f"Bearer {self.token}".encode())


def _name_and_port(host: str) -> tuple[str, str]:
    end = host.rfind("]") + 1
    name, _, port = host[end:].partition(":")
    return (host[:end] + name).lower(), port


@dataclass
class Guard:
    """The checks around an application."""

    app: App
    allowed: Allowed
    most_waiting: int = MOST_WAITING
    waiting: int = field(default=0, init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._refused(scope, headers)
        if refused:
            await _refuse(send, *refused)
            return
        self.waiting += 1
        try:
            await self.app(scope, _Limited(receive), _with_headers(send))
        except _TooLarge:
            await _refuse(send, *TOO_LARGE)
        finally:
            self.waiting -= 1

    def _refused(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str, str] | None:
        """The status, what is wrong and what to do; None where nothing is."""
        if not self.allowed.host(headers.get("host", "")):
            return 421, "this server is not reached under that name", "open the address that `ampere serve` printed"
        origin = headers.get("origin")
        if origin is not None and not self.allowed.origin(origin):
            return 403, "pages of other sites may not ask this server", "ask from its own page, or from a program"
        asks = scope["path"].startswith("/api/")
        if asks and headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return 403, "pages of other sites may not ask this server", "open the address that `ampere serve` printed"
        if asks and not self.allowed.shown(headers.get("authorization", "")):
            return 401, "the token is missing or wrong", "send the header Authorization: Bearer TOKEN"
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > len(str(MOST_BYTES)) or int(length) > MOST_BYTES:
            return TOO_LARGE
        if self.waiting >= self.most_waiting:
            return 429, f"{self.waiting} requests are being answered already", "ask again in a second"
        return None


TOO_LARGE = (413, f"a body may have {MOST_BYTES:,} bytes at most", "send less, or in several requests")


class _TooLarge(BaseException):
    """Not an Exception, which the application within would answer by itself."""


class _Limited:
    """A body of unknown length ends with an error where it grows too large."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self._read = receive, 0

    async def __call__(self) -> Message:
        message = await self._receive()
        self._read += len(message.get("body", b""))
        if self._read > MOST_BYTES:
            raise _TooLarge
        return message


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", ()), *own]}
        await send(message)

    return sending


async def _refuse(send: Send, status: int, what: str, remedy: str) -> None:
    body = problem_body(status, HTTPStatus(status).phrase, what, remedy)
    headers = [(b"content-type", b"application/problem+json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 429:
        headers.append((b"retry-after", b"1"))
    await _with_headers(send)({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
