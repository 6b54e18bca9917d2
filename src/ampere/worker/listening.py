"""A worker behind a TCP port: each host that connects gets a process of its own, one at a time.

    host  <--- lines over TCP --->  worker process        a second host gets the error `busy`
                                       ^ started by
                                    listener, which only waits

Anyone who reaches the port can make this machine train: listen on loopback, and forward the port.
"""

import contextlib
import json
import signal
import socket
import subprocess
import sys
from typing import List, NoReturn, Optional, Tuple

from ampere.core.processes import end_group, own_group, python_program

LEAVING_SECONDS = 12.0  # more than a worker that lost its host in the middle of a variant needs
USAGE = "usage: python3 -m ampere.worker [--listen [HOST:]PORT]"
KEEPALIVE = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))  # a dead line is noticed in 30 s

Worker = Optional["subprocess.Popen[bytes]"]


def listen(arguments: List[str]) -> NoReturn:
    """Serve hosts on a TCP port until this process is ended."""
    host, port = _place(arguments)
    try:
        server = socket.create_server((host, port))
    except OSError as problem:
        sys.exit(f"cannot listen on {host}:{port} ({problem}): choose another port")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print("listening on tcp://{}:{}".format(*server.getsockname()[:2]), file=sys.stderr, flush=True)
    worker: Worker = None
    try:
        while True:
            with server.accept()[0] as connection:
                worker = _busy(worker, connection) or _started(connection)
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        _end(worker)


def _place(arguments: List[str]) -> Tuple[str, int]:
    host, _, port = arguments[-1].rpartition(":")
    if len(arguments) != 2 or arguments[0] != "--listen" or not port.isdigit() or int(port) > 65535:
        sys.exit(USAGE)
    return host or "127.0.0.1", int(port)


def _busy(worker: Worker, connection: socket.socket) -> Worker:
    """The worker, if it still serves a host after the time it needs to leave one; the new host is then refused."""
    if worker is None:
        return None
    try:
        worker.wait(LEAVING_SECONDS)
        return None
    except subprocess.TimeoutExpired:
        refusal = {"id": None, "error": {"type": "busy", "message": "another host is using this worker"}}
        with contextlib.suppress(OSError):
            connection.sendall(json.dumps(refusal).encode() + b"\n")
        return worker


def _started(connection: socket.socket) -> Worker:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for name, value in KEEPALIVE:
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    wire, packed = connection.fileno(), sys.argv[0].endswith(".zip")
    program = [sys.executable, sys.argv[0]] if packed else python_program("ampere.worker.__main__")
    return subprocess.Popen(program, stdin=wire, stdout=wire, **own_group())


def _end(worker: Worker) -> None:
    if worker is not None and worker.poll() is None:
        end_group(worker)
