"""The program that runs first on a device without Ampere: `python3 -c THIS ORDER`.

It receives the bundle on standard input, runs the worker from a temporary folder, passes requests on to it, and removes
the folder in the end. ORDER is JSON: size, silence_seconds, environment, without. Threads wait for the host and for the
worker, because Windows cannot wait for pipes in any other way.
"""

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from typing import TYPE_CHECKING, Any, BinaryIO, Dict, Optional, cast

if TYPE_CHECKING:
    Pieces = queue.Queue[Optional[bytes]]  # from the host; empty where it is gone, None where the worker has ended

OLDEST = (3, 8)
TOO_OLD, NO_FOLDER, CUT_SHORT = 91, 92, 93  # exit codes
ENDING_SECONDS = 1.0
END_SIGNALS = ("SIGTERM", "SIGHUP", "SIGINT")
PIECE_BYTES, PIECES_WAITING = 65536, 64


def main() -> int:
    if sys.version_info < OLDEST:
        return failed(TOO_OLD, "Python " + sys.version.split()[0])
    for name in filter(signal.__dict__.get, END_SIGNALS):  # Windows has no SIGHUP
        signal.signal(getattr(signal, name), lambda number, _: sys.exit(128 + number))
    try:
        folder = tempfile.mkdtemp(prefix="ampere-")
    except OSError as problem:
        return failed(NO_FOLDER, str(problem))
    try:
        return run_worker(folder, json.loads(sys.argv[1]))
    except OSError as problem:
        return failed(NO_FOLDER, str(problem))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_worker(folder: str, order: Dict[str, Any]) -> int:
    """The exit code of a worker that is received into the folder and served until it ends or the host is gone."""
    pieces = cast("Pieces", queue.Queue(PIECES_WAITING))
    threading.Thread(target=listen, args=(pieces,), daemon=True).start()
    bundle = folder + "/ampere.zip"
    with open(bundle, "wb") as file:
        begun = receive(file, order["size"], pieces, order["silence_seconds"])
    if begun is None:
        return CUT_SHORT
    kept = {name: value for name, value in os.environ.items() if name not in order["without"]}
    own_threads = kept.get("OMP_NUM_THREADS") or kept.get("MKL_NUM_THREADS") or ""
    # Libraries write to the folder only, and leave no compiled files elsewhere.
    kept.update(order["environment"], TMPDIR=folder, TEMP=folder, TMP=folder, PYTHONDONTWRITEBYTECODE="1")
    kept["AMPERE_OWN_THREADS"] = own_threads  # the host has set those of the worker
    worker = subprocess.Popen(
        [sys.executable, bundle], stdin=subprocess.PIPE, cwd=folder, env=kept, start_new_session=True
    )
    threading.Thread(target=say_when_ended, args=(worker, pieces), daemon=True).start()
    try:
        relay(worker, begun, pieces, order["silence_seconds"])
    finally:
        end(worker)
    if worker.returncode < 0:
        return failed(128 - worker.returncode, "ended by " + signal.Signals(-worker.returncode).name)
    return min(worker.returncode, 254)  # 255 is the exit code of ssh itself


def listen(pieces: "Pieces") -> None:
    """Pass on what the host sends, until it is gone."""
    piece = b"-"
    while piece:
        with contextlib.suppress(OSError):
            piece = os.read(0, PIECE_BYTES)
        pieces.put(piece)


def say_when_ended(worker: "subprocess.Popen[bytes]", pieces: "Pieces") -> None:
    worker.wait()
    pieces.put(None)


def following(pieces: "Pieces", silence_seconds: float) -> Optional[bytes]:
    """The next piece; empty where the host is silent for too long."""
    try:
        return pieces.get(timeout=silence_seconds)
    except queue.Empty:
        return b""


def receive(file: BinaryIO, size: int, pieces: "Pieces", silence_seconds: float) -> Optional[bytes]:
    """Write so many bytes to the file, and return what came after them; None where they do not all come."""
    piece = b""
    while size:
        piece = following(pieces, silence_seconds) or b""
        if not piece:
            return None
        written = file.write(piece[:size])
        size, piece = size - written, piece[written:]
    return piece


def relay(worker: "subprocess.Popen[bytes]", begun: bytes, pieces: "Pieces", silence_seconds: float) -> None:
    """Pass requests on until the worker ends, or the host closes the connection or is silent for too long."""
    stdin = cast(BinaryIO, worker.stdin)
    while True:
        *lines, begun = begun.split(b"\n")
        requests = b"".join(line + b"\n" for line in lines if line)
        if requests:
            with contextlib.suppress(OSError):  # it ended just now: the next turn notices
                stdin.write(requests)
                stdin.flush()
        piece = following(pieces, silence_seconds)
        if not piece:
            return
        begun += piece


def end(worker: "subprocess.Popen[bytes]") -> None:
    """End a worker and its children, by force where it does not end by itself."""
    with contextlib.suppress(OSError):
        cast(BinaryIO, worker.stdin).close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        worker.wait(ENDING_SECONDS)
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(worker.pid, signal.SIGKILL)
        else:
            subprocess.call(["taskkill", "/F", "/T", "/PID", str(worker.pid)], stdout=subprocess.DEVNULL)
    worker.wait()


def failed(code: int, words: str) -> int:
    """The exit code, after writing the cause to standard error."""
    with contextlib.suppress(OSError):
        os.write(2, words.encode() + b"\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
