"""The program that runs first on a device without Ampere: `python3 -c THIS ORDER`.

It receives the bundle on standard input, runs the worker from a temporary folder, passes requests on to it, and removes
the folder in the end. ORDER is JSON: size, silence_seconds, environment, without.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import Any, BinaryIO, Dict, cast

OLDEST = (3, 8)
TOO_OLD, NO_FOLDER, CUT_SHORT = 91, 92, 93  # exit codes
ENDING_SECONDS = 1.0
END_SIGNALS = ("SIGTERM", "SIGHUP", "SIGINT")


def main() -> int:
    if sys.version_info < OLDEST:
        return failed(TOO_OLD, "Python " + sys.version.split()[0])
    for name in END_SIGNALS:
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
    bundle = folder + "/ampere.zip"
    with open(bundle, "wb") as file:
        if not receive(file, order["size"], order["silence_seconds"]):
            return CUT_SHORT
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)  # so that the worker's end is noticed while waiting for the host
    kept = {name: value for name, value in os.environ.items() if name not in order["without"]}
    # Libraries write to the folder only, and leave no compiled files elsewhere.
    kept.update(order["environment"], TMPDIR=folder, PYTHONDONTWRITEBYTECODE="1")
    worker = subprocess.Popen(
        [sys.executable, bundle], stdin=subprocess.PIPE, cwd=folder, env=kept, start_new_session=True
    )
    try:
        relay(worker, woken, order["silence_seconds"])
    finally:
        end(worker)
    if worker.returncode < 0:
        return failed(128 - worker.returncode, "ended by " + signal.Signals(-worker.returncode).name)
    return min(worker.returncode, 254)  # 255 is the exit code of ssh itself


def receive(file: BinaryIO, size: int, silence_seconds: float) -> bool:
    """Copy so many bytes from standard input to the file; False where they do not all come."""
    while size:
        there = select.select([0], [], [], silence_seconds)[0]
        piece = os.read(0, min(size, 65536)) if there else b""
        if not piece:
            return False
        size -= file.write(piece)
    return True


def relay(worker: "subprocess.Popen[bytes]", woken: int, silence_seconds: float) -> None:
    """Pass requests on until the worker ends, or the host closes the connection or is silent for too long."""
    stdin, begun = cast(BinaryIO, worker.stdin), b""
    while True:
        there = select.select([0, woken], [], [], silence_seconds)[0]
        if woken in there and os.read(woken, 64) and worker.poll() is None:
            continue  # it was only paused or resumed
        piece = os.read(0, 65536) if 0 in there else b""
        if woken in there or not piece:
            return
        lines = (begun + piece).split(b"\n")
        begun = lines.pop()
        requests = b"".join(line + b"\n" for line in lines if line)
        if requests:
            with contextlib.suppress(OSError):  # it ended just now: the next turn notices
                stdin.write(requests)
                stdin.flush()


def end(worker: "subprocess.Popen[bytes]") -> None:
    """End a worker and its children, by force where it does not end by itself."""
    with contextlib.suppress(OSError):
        cast(BinaryIO, worker.stdin).close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        worker.wait(ENDING_SECONDS)
    with contextlib.suppress(OSError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


def failed(code: int, words: str) -> int:
    """The exit code, after writing the cause to standard error."""
    with contextlib.suppress(OSError):
        os.write(2, words.encode() + b"\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
