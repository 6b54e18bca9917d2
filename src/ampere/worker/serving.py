"""Serving a host: one JSON line in, one JSON line out, heartbeats in between.

    fd 0 --dup--> requests      fd 0 becomes /dev/null
    fd 1 --dup--> answers       fd 1 becomes standard error

So whatever a model prints or reads stays apart from the protocol. Every request gets one answer.
"""

import contextlib
import json
import os
import queue
import threading
import time
from typing import Any, BinaryIO, Callable, Collection, Dict, Optional

from ampere.core.errors import WorkerError, as_worker_error, bad_request
from ampere.core.escaping import printable
from ampere.core.processes import end_own_group
from ampere.core.protocol import PROTOCOL, PROTOCOLS, lines_of, older_side
from ampere.meters import counters, load

from .block import block, yardstick_alone
from .machine import hello
from .requests import BlockRequest, Request, beat_seconds_of, check_allowed, checked, id_in, parse


class Heartbeat:
    """Calls `beat` at regular intervals while a request is worked on; at rest no thread wakes up."""

    def __init__(self, beat: Callable[[], None]) -> None:
        self._beat, self._seconds = beat, 0.0
        self._working = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def every(self, seconds: Optional[float]) -> None:
        """Set the interval from now on; None stops the heartbeat."""
        self._seconds = seconds or 0.0
        if seconds and self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def work(self) -> None:
        self._working.set()

    def rest(self) -> None:
        self._working.clear()

    def _run(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # the host is gone
            while self._working.wait() and self._seconds:
                time.sleep(self._seconds)
                if self._working.is_set():
                    self._beat()
        self._thread = None


ORPHAN_GRACE_SECONDS = 10.0


class Channel:
    """The pipe to the host: one JSON object a line."""

    def __init__(self, requests: BinaryIO, answers: BinaryIO) -> None:
        self._requests, self._answers = requests, answers
        self._writing = threading.Lock()
        self.heartbeat = Heartbeat(lambda: self._write(b"\n"))
        self._lines: queue.Queue[Optional[bytes]] = queue.Queue()
        # A thread, so that a closed pipe is noticed even while a variant hangs.
        threading.Thread(target=self._listen, daemon=True).start()

    def receive(self) -> Optional[bytes]:
        """The next request, or None when the host is gone; an empty line only says that it is still there."""
        self.heartbeat.rest()
        line = self._lines.get()
        while line is not None and not line.strip():
            line = self._lines.get()
        self.heartbeat.work()
        return line

    def send(self, answer: Dict[str, Any]) -> None:
        self._write(json.dumps(answer, allow_nan=False).encode() + b"\n")

    def _write(self, line: bytes) -> None:
        with self._writing:
            self._answers.write(line)
            self._answers.flush()

    def _listen(self) -> None:
        for line in lines_of(self._requests):
            self._lines.put(line)
        self._lines.put(None)
        time.sleep(ORPHAN_GRACE_SECONDS)
        end_own_group()


def open_channel() -> Channel:
    """The channel over standard input and output, which are replaced for everything else."""
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return Channel(os.fdopen(requests, "rb"), os.fdopen(answers, "wb"))


Allowed = Optional[Collection[str]]  # modules whose functions a host may name; None for any


def handshake(request: Request, beat_every: Callable[[Optional[float]], None], allowed: Allowed) -> Dict[str, Any]:
    """Answer to `hello`: what this worker is, which protocol is used, and how often it sends a heartbeat."""
    version, beat_seconds = agreed(request.get("protocols", [PROTOCOL])), beat_seconds_of(request)
    factories = True if allowed is None else sorted(allowed) or False
    described = {**hello(request), "protocol": version, "factories": factories, "beat_seconds": beat_seconds}
    beat_every(beat_seconds)
    return described


def agreed(offered: Any) -> int:
    """The newest version that both sides speak."""
    if not isinstance(offered, list) or not all(type(version) is int for version in offered):
        raise bad_request(f"protocols is {offered!r}, but must be a list of whole numbers")
    shared = set(offered) & set(PROTOCOLS)
    if not shared:
        spoken = " and ".join(map(str, PROTOCOLS))
        remedy = older_side(PROTOCOLS, offered)
        raise WorkerError("protocol", f"this worker speaks protocol {spoken}, and was asked for {offered}: {remedy}")
    return max(shared)


Actions = Dict[str, Callable[[Request], Dict[str, Any]]]


def serve(channel: Channel, allowed: Allowed = None) -> None:
    """Answer requests until the host is gone."""

    def train(request: Request) -> Dict[str, Any]:
        check_allowed(BlockRequest.from_json(request), allowed)
        return block(request, lambda error: channel.send(refusal(request.get("id"), error)), serving=True)

    actions: Actions = {
        "hello": lambda request: handshake(request, channel.heartbeat.every, allowed),
        "ping": lambda request: {},
        "block": train,
        "yardstick": yardstick_alone,
        "counters": counters,
        "load": load,
    }
    line = channel.receive()
    while line is not None:
        channel.send(answer(line, actions))
        line = channel.receive()


def answer(line: bytes, actions: Actions) -> Dict[str, Any]:
    """The answer to one line: its result, or its error."""
    name = None
    try:
        request = parse(line)
        name = id_in(request)
        return {"id": name, "result": actions[checked(request)["do"]](request)}
    except (Exception, SystemExit) as problem:
        return refusal(name, as_worker_error(problem))


LONGEST_MESSAGE = 500  # characters


def refusal(name: Any, error: WorkerError) -> Dict[str, Any]:
    """The answer to a request that is not carried out."""
    record: Dict[str, Any] = {"type": error.type, "message": printable(str(error)[:LONGEST_MESSAGE])}
    if error.type == "protocol":
        record["protocols"] = list(PROTOCOLS)
    return {"id": name, "error": record}
