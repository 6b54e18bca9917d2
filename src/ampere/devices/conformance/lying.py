"""A worker that lies, to test a host with. Each lie breaks one rule of the protocol and keeps to the others.

    with LyingWorker("joules-text") as worker:                      a TCP port of this process
        Device(worker.address) ...                                  must end in one clear error, soon

    python -m ampere.devices.conformance.lying joules-text          the same over standard input and output

It trains nothing and needs no training library: apart from the lie, what it reports is made up, but possible.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, cast

from ampere.core.protocol import PROTOCOL

Answer = dict[str, Any]
WINDOW = [1, 0.002, 0.002, 0.01, 0]
HONEST: dict[str, Answer] = {
    "hello": {
        "protocol": PROTOCOL,
        "worker": "lying",
        "system": "Linux",
        "machine": "x86_64",
        "cpu": "made up",
        "cores": 2,
        "runtimes": {"torch": "2.0"},
        "meter": {"name": "cpu-time", "measured": False, "scope": "5 W per busy core"},
    },
    "block": {
        "target": [WINDOW, WINDOW],
        "yardstick": [WINDOW, WINDOW, WINDOW],
        "parameters": 1,
        "loss": [1.0, 0.9],
        "elapsed_seconds": 0.02,
        "conditions": {},
        "flags": [],
    },
    "yardstick": {"busy_seconds": 0.002, "wall_seconds": 0.002, "steps": 20, "joules": None, "watts_idle": None},
    "counters": {"counters": []},
}


class Lie(NamedTuple):
    """What a worker does instead of answering a kind of request; "" for every kind."""

    to: str
    instead: Callable[[Answer], Iterable[bytes]]  # an honest answer with its id -> what is sent


def line(answer: Any) -> bytes:
    return json.dumps(answer).encode() + b"\n"


def says(do: str, **fields: Any) -> Lie:
    """Other values in a result."""
    return Lie(do, lambda answer: [line({**answer, "result": {**answer["result"], **fields}})])


def meter(**fields: Any) -> Lie:
    """Other values in the description of the meter."""
    return says("hello", meter={**HONEST["hello"]["meter"], **fields})


def window(place: int, value: Any) -> Lie:
    """Another value in the first window: of iterations, wall seconds, busy seconds, joules or page faults."""
    return says("block", target=[[*WINDOW[:place], value, *WINDOW[place + 1 :]], WINDOW])


def lacks(do: str, name: str) -> Lie:
    """A result without a field."""
    return Lie(do, lambda answer: [line({**answer, "result": _without(answer["result"], name)})])


def sends(do: str, *pieces: bytes) -> Lie:
    """These bytes, whatever was asked."""
    return Lie(do, lambda answer: pieces)


def changes(do: str, change: Callable[[Answer], Any]) -> Lie:
    """Another object than an honest answer."""
    return Lie(do, lambda answer: [line(change(answer))])


def endless(do: str, piece: bytes) -> Lie:
    """The same piece for ever."""
    return Lie(do, lambda answer: itertools.repeat(piece))


def _without(record: Answer, name: str) -> Answer:
    return {key: value for key, value in record.items() if key != name}


def _hang_up(answer: Answer) -> Iterator[bytes]:
    yield line(answer)[:20]
    raise OSError


def _never(answer: Answer) -> Iterator[bytes]:
    time.sleep(3600)
    yield b""


def _id(change: Callable[[int], Any]) -> Callable[[Answer], Answer]:
    return lambda answer: {**answer, "id": change(answer["id"])}


LIES: dict[str, Lie] = {
    # Types.
    "joules-text": window(3, "5"),
    "joules-true": window(3, True),
    "joules-list": window(3, [5]),
    "seconds-null": window(1, None),
    "iterations-fraction": window(0, 1.5),
    "target-missing": lacks("block", "target"),
    "target-object": says("block", target={"0": WINDOW}),
    "target-numbers": says("block", target=[1, 2, 3]),
    "target-short-windows": says("block", target=[[1, 0.002]]),
    "target-huge": says("block", target=[[1]] * 200_001),
    "flags-number": says("block", flags=7),
    "conditions-list": says("block", conditions=[1]),
    "loss-text": says("block", loss="low"),
    "loss-alone": says("block", loss=[1.0]),
    "parameters-text": says("block", parameters="many"),
    "yardstick-text": says("yardstick", busy_seconds="0.002"),
    "yardstick-missing": lacks("yardstick", "wall_seconds"),
    "yardstick-flags": says("yardstick", flags=3),
    "counters-text": says("counters", counters="none"),
    "counters-bare": says("counters", counters=[{}]),
    # Ranges.
    "joules-negative": window(3, -1.0),
    "joules-nan": window(3, float("nan")),
    "joules-infinite": window(3, float("inf")),
    "joules-too-many": window(3, 1e6),
    "joules-zero": says("block", target=[[1, 0.002, 0.002, 0, 0]] * 2),
    "seconds-negative": window(1, -0.002),
    "busy-beyond-cores": window(2, 30.0),
    "work-beyond-waiting": says("block", elapsed_seconds=1e5),
    "unpaired": says("block", yardstick=[WINDOW]),
    "no-windows": says("block", target=[], yardstick=[]),
    "whole-number-huge": says("block", parameters=10**1000),
    "yardstick-hot": says("yardstick", joules=1e200),
    "yardstick-warm": says("yardstick", joules=1e3),
    "yardstick-negative": says("yardstick", busy_seconds=-1.0),
    "yardstick-zero": says("yardstick", busy_seconds=0.0),
    "yardstick-nan": says("yardstick", wall_seconds=float("nan")),
    "yardstick-early": says("yardstick", early_seconds=-0.1),
    "yardstick-steps": says("yardstick", steps=10**8),
    "yardstick-idle": says("yardstick", watts_idle=1e5),
    # The handshake.
    "beat-rare": says("hello", beat_seconds=1e9),
    "beat-other": says("hello", beat_seconds=77.0),
    "beat-text": says("hello", beat_seconds="5"),
    "version-old": says("hello", protocol=2),
    "version-new": says("hello", protocol=99),
    "version-text": says("hello", protocol="3"),
    "meter-missing": lacks("hello", "meter"),
    "meter-text": says("hello", meter="cpu-time"),
    "meter-name-number": meter(name=3),
    "meter-measured-text": meter(measured="yes"),
    "meter-window-endless": meter(window_seconds=1e12),
    "cores-zero": says("hello", cores=0),
    "cores-text": says("hello", cores="two"),
    "cores-huge": says("hello", cores=10**30),
    "cpu-missing": lacks("hello", "cpu"),
    "cpu-escapes": says("hello", cpu="\x1b]52;c;aGk=\x07"),
    "cpu-long": says("hello", cpu="x" * 100_000),
    "machine-id-path": says("hello", machine_id="../../x"),
    "unusable-counters-text": says("hello", unusable_counters="all"),
    "runtimes-list": says("hello", runtimes=["torch"]),
    "kinds-numbers": says("hello", kinds=[1, 2]),
    "vector-width-zero": says("hello", vector_width=0),
    # Order.
    "id-wrong": changes("", _id(lambda number: number + 1000)),
    "id-late": changes("", _id(lambda number: number - 1)),
    "id-text": changes("", _id(str)),
    "id-missing": changes("", lambda answer: _without(answer, "id")),
    "id-null": changes("", _id(lambda number: None)),
    "twice": Lie("", lambda answer: [line(answer), line(answer)]),
    "unasked": Lie("", lambda answer: [line(answer), line({**answer, "id": answer["id"] + 1})]),
    "both": changes("", lambda answer: {**answer, "error": {"type": "busy", "message": "or not"}}),
    "neither": changes("", lambda answer: {"id": answer["id"]}),
    "result-list": changes("", lambda answer: {**answer, "result": [1]}),
    "error-text": changes("", lambda answer: {"id": answer["id"], "error": "no"}),
    "error-bare": changes("", lambda answer: {"id": answer["id"], "error": {}}),
    "error-unknown": changes("", lambda answer: {"id": answer["id"], "error": {"type": "oops", "message": "no"}}),
    "error-escapes": changes("", lambda answer: {"id": answer["id"], "error": {"type": "x", "message": "\x1b[2J"}}),
    # Lines.
    "garbage": sends("", b'{"id": 1, "resu\n'),
    "not-text": sends("", b'{"id": "\xff\xfe"}\n'),
    "deep": sends("", b'{"id": 1, "result": ' + b"[" * 200_000 + b"\n"),
    "digits": sends("", b'{"id": 1' + b"0" * 100_000 + b', "result": {}}\n'),
    "endless-line": endless("", b"x" * 65536),
    "endless-object": endless("", b'{"id": ' * 8192),
    "flood-of-text": endless("", b"hello\n" * 8192),
    "flood-of-answers": endless("", line({"id": None, "error": {"type": "busy", "message": "no"}}) * 1000),
    "flood-of-heartbeats": endless("block", b"\n" * 65536),
    "silence": Lie("", _never),
    "silence-in-a-block": Lie("block", _never),
    "hangs-up": Lie("", _hang_up),
    "hangs-up-in-a-block": Lie("block", _hang_up),
}


def sent(lie: Lie, request: Answer) -> Iterable[bytes]:
    """What a worker with this habit sends for a request."""
    result = copy.deepcopy(HONEST.get(str(request.get("do")), {}))
    if request.get("do") == "hello":
        result["beat_seconds"] = request.get("beat_seconds")
    answer = {"id": request.get("id"), "result": result}
    return lie.instead(answer) if lie.to in ("", request.get("do")) else [line(answer)]


def serve(lie: Lie, requests: BinaryIO, send: Callable[[bytes], Any]) -> None:
    """Answer requests until the host is gone."""
    with contextlib.suppress(OSError, ValueError):
        for request in requests:
            for piece in sent(lie, json.loads(request)) if request.strip() else ():
                send(piece)


class LyingWorker:
    """A lying worker on a TCP port of this process, for any number of connections."""

    def __init__(self, name: str) -> None:
        self._lie = LIES[name]
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._server.getsockname()[1]}"
        self.bytes_sent = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def __enter__(self) -> LyingWorker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection = self._server.accept()[0]
                threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        def send(piece: bytes) -> None:
            connection.sendall(piece)
            self.bytes_sent += len(piece)

        with connection, connection.makefile("rb") as requests:
            serve(self._lie, cast(BinaryIO, requests), send)
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def main() -> None:
    if sys.argv[1:2] and sys.argv[1] in LIES:

        def send(piece: bytes) -> None:
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()

        serve(LIES[sys.argv[1]], sys.stdin.buffer, send)
    else:
        sys.exit("usage: python -m ampere.devices.conformance.lying LIE, one of " + " ".join(LIES))


if __name__ == "__main__":
    main()
