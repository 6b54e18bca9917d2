"""A worker behind a TCP port: whoever presents the token gets a worker process, one host at a time.

    host  <-- lines over TCP -->  listener  <-- the same lines over a pipe -->  worker process
                                     |
              the first line must be the handshake with the token; anything else ends the connection

Nothing but that line is read of a stranger, and no process is started for one. The worker never sees the token.
"""

import argparse
import contextlib
import hmac
import json
import os
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any, BinaryIO, Dict, List, NamedTuple, NoReturn, Optional, Tuple, cast

from ampere.core.errors import WorkerError
from ampere.core.processes import end_group, own_group, python_program
from ampere.core.protocol import PIECE, SILENCE_SECONDS, TOKEN_VARIABLE

from .requests import Request, id_in, parse
from .serving import agreed, refusal

STRANGER_BYTES = 8192  # more than any handshake
STRANGER_SECONDS = 5.0
STRANGERS_AT_ONCE = 64  # the oldest makes room for a new one
SHORTEST_TOKEN = 16  # characters
LEAVING_SECONDS = 1.0  # for a worker to end by itself after its host


class Options(NamedTuple):
    """What the command line of a worker asks for."""

    place: Optional[Tuple[str, int]]  # to listen on; None for a worker over a pipe
    allowed: Optional[List[str]]  # modules whose functions a host may name; None for any


def options_in(words: List[str]) -> Options:
    parser = argparse.ArgumentParser("python3 -m ampere.worker", allow_abbrev=False)
    parser.add_argument("--listen", metavar="[HOST:]PORT", type=_place, help="serve over TCP; on loopback without HOST")
    parser.add_argument("--allow", metavar="MODULE", action="append", default=[], help="run its functions for a host")
    parser.add_argument("--restricted", action="store_true", help=argparse.SUPPRESS)  # started by a listener
    found = parser.parse_args(words)
    return Options(found.listen, found.allow if found.listen or found.restricted else None)


def _place(text: str) -> Tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: give one, such as 7070 or 0.0.0.0:7070")
    return host.strip("[]") or "127.0.0.1", int(port)


def listen(place: Tuple[str, int], allowed: List[str]) -> NoReturn:
    """Serve hosts on a TCP port until this process is ended."""
    given = os.environ.pop(TOKEN_VARIABLE, "")
    if given and len(given) < SHORTEST_TOKEN:
        sys.exit(f"the token in {TOKEN_VARIABLE} is too short: give at least {SHORTEST_TOKEN} characters")
    try:
        server = socket.create_server(place, family=socket.AF_INET6 if ":" in place[0] else socket.AF_INET)
    except OSError as problem:
        sys.exit(f"cannot listen on {place[0]}:{place[1]} ({problem}): choose another port")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    token = given or secrets.token_urlsafe(24)
    _announce(server, "" if given else token)
    listener = Listener(server, token, allowed)
    try:
        listener.run()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        listener.close()


def _announce(server: socket.socket, token: str) -> None:
    host, port = server.getsockname()[:2]
    address = "tcp://{}:{}".format(f"[{host}]" if ":" in host else host, port)
    given = f"export {TOKEN_VARIABLE}={token}" if token else f"with {TOKEN_VARIABLE} as here"
    print(f"listening on {address}", file=sys.stderr)
    print(f"on the host: {given}; ampere profile MODEL --device {address}", file=sys.stderr, flush=True)


class Stranger(NamedTuple):
    """A connection that has not presented the token yet."""

    begun: bytearray  # of its first line
    until: float


class Listener:
    """Reads the first line of each connection, and starts a session for a host that presents the token."""

    def __init__(self, server: socket.socket, token: str, allowed: List[str]) -> None:
        self._server, self._token, self._allowed = server, _bytes(token), allowed
        self._strangers: Dict[socket.socket, Stranger] = {}  # the oldest first
        self._session: Optional[Session] = None
        self._selector = selectors.DefaultSelector()
        self._selector.register(server, selectors.EVENT_READ)

    def run(self) -> NoReturn:
        while True:
            oldest = next(iter(self._strangers.values()), None)
            for key, _ in self._selector.select(max(0.0, oldest.until - time.monotonic()) if oldest else None):
                if key.fileobj is self._server:
                    self._accept()
                else:
                    self._read(cast(socket.socket, key.fileobj))
            for connection in [c for c, stranger in self._strangers.items() if stranger.until <= time.monotonic()]:
                self._forget(connection).close()

    def close(self) -> None:
        if self._session is not None:
            self._session.end()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # it is gone already
            connection = self._server.accept()[0]
            connection.setblocking(False)
            if len(self._strangers) >= STRANGERS_AT_ONCE:
                self._forget(next(iter(self._strangers))).close()
            self._strangers[connection] = Stranger(bytearray(), time.monotonic() + STRANGER_SECONDS)
            self._selector.register(connection, selectors.EVENT_READ)

    def _read(self, connection: socket.socket) -> None:
        if connection not in self._strangers:  # it just made room for another
            return
        begun = self._strangers[connection].begun
        try:
            piece = connection.recv(STRANGER_BYTES)
        except OSError:
            piece = b""
        begun += piece
        line, end, rest = bytes(begun).partition(b"\n")
        if end and len(line) <= STRANGER_BYTES:
            self._judge(self._forget(connection), line, rest)
        elif not piece or len(begun) > STRANGER_BYTES or not begun.startswith(b"{"):
            self._forget(connection).close()

    def _forget(self, connection: socket.socket) -> socket.socket:
        """The connection, which is no longer waited for."""
        del self._strangers[connection]
        self._selector.unregister(connection)
        return connection

    def _judge(self, connection: socket.socket, line: bytes, rest: bytes) -> None:
        """Start a session, or end the connection: with one line of explanation where it was a handshake."""
        request = _handshake_in(line)
        if request is None:
            connection.close()
            return
        try:
            self._check(request)
        except WorkerError as problem:
            with contextlib.suppress(OSError):
                connection.sendall(json.dumps(refusal(request.get("id"), problem)).encode() + b"\n")
            connection.close()
            return
        first = json.dumps({key: value for key, value in request.items() if key != "token"}).encode() + b"\n" + rest
        self._session = Session(connection, first, self._allowed, self._session)
        self._session.start()

    def _check(self, request: Request) -> None:
        agreed(request.get("protocols"))
        given = request.get("token")
        if not isinstance(given, str) or not hmac.compare_digest(_bytes(given), self._token):
            what = "no token was given" if given is None else "the token is wrong"
            raise WorkerError("unauthorized", f"{what}; it was shown where the worker was started")
        if self._session is not None and self._session.serving:
            raise WorkerError("busy", "another host is using this worker")


def _handshake_in(line: bytes) -> Optional[Request]:
    """The handshake in a first line; None where it is anything else."""
    try:
        request = parse(line)
        id_in(request)
    except WorkerError:
        return None
    return request if request.get("do") == "hello" else None


def _bytes(token: str) -> bytes:
    return token.encode("utf-8", "replace")


class Session(threading.Thread):
    """A worker process for one host, and the lines between them, until either is gone or the host is silent."""

    def __init__(
        self, connection: socket.socket, first: bytes, allowed: List[str], before: "Optional[Session]"
    ) -> None:
        super().__init__(daemon=True)
        self.serving = True
        self._connection, self._first, self._before = connection, first, before
        self._allowed = [word for module in allowed for word in ("--allow", module)]
        self._worker: Optional[subprocess.Popen[bytes]] = None

    def run(self) -> None:
        if self._before is not None:
            self._before.join()  # it has lost its host, and is ending its worker
            self._before = None
        self._connection.settimeout(SILENCE_SECONDS)
        try:
            self._serve()
        except OSError as problem:  # its process cannot be started
            print(f"cannot serve a host ({problem})", file=sys.stderr, flush=True)
        self.serving = False
        self.end()
        self._connection.close()

    def _serve(self) -> None:
        packed = sys.argv[0].endswith(".zip")
        program = [sys.executable, sys.argv[0]] if packed else python_program("ampere.worker.__main__")
        command = [*program, "--restricted", *self._allowed]
        pipe = subprocess.PIPE
        self._worker = worker = subprocess.Popen(command, stdin=pipe, stdout=pipe, **own_group())
        answers = threading.Thread(target=self._pass_answers, args=[worker.stdout], daemon=True)
        answers.start()
        requests, piece = cast(BinaryIO, worker.stdin), self._first
        with contextlib.suppress(OSError):
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while piece:
                requests.write(piece)
                requests.flush()
                piece = self._connection.recv(PIECE)
        self.serving = False
        with contextlib.suppress(OSError):
            requests.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(LEAVING_SECONDS)
        self.end()
        answers.join()

    def end(self) -> None:
        """End the worker and its children, by force."""
        if self._worker is not None:
            end_group(self._worker)

    def _pass_answers(self, stream: Any) -> None:
        with contextlib.suppress(OSError):
            for piece in iter(lambda: stream.read1(PIECE), b""):
                self._connection.sendall(piece)
        with contextlib.suppress(OSError):  # the host notices that its worker is gone, and `run` that it may end
            self._connection.shutdown(socket.SHUT_RDWR)
