"""The program that runs first on a device with nothing installed: `python3 -c THIS ORDER`."""

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
LAST_BREATH_SECONDS = 1.0
ENDING = ("SIGTERM", "SIGHUP", "SIGINT")


def main() -> int:
    if sys.version_info < OLDEST:
        return said(TOO_OLD, "Python " + sys.version.split()[0])
    for name in ENDING:
        signal.signal(getattr(signal, name), lambda number, _: sys.exit(128 + number))
    try:
        folder = tempfile.mkdtemp(prefix="ampere-")
    except OSError as problem:
        return said(NO_FOLDER, str(problem))
    try:
        return arrive(folder, json.loads(sys.argv[1]))
    except OSError as problem:
        return said(NO_FOLDER, str(problem))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def arrive(folder: str, order: Dict[str, Any]) -> int:
    parcel = folder + "/ampere.zip"
    with open(parcel, "wb") as file:
        if not receive(file, order["size"], order["silence_seconds"]):
            return CUT_SHORT
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)  # so that the worker's end is noticed while waiting for the host
    kept = {name: value for name, value in os.environ.items() if name not in order["without"]}
    # Libraries keep what they write to the folder, and leave no compiled files behind elsewhere.
    kept.update(order["environment"], TMPDIR=folder, PYTHONDONTWRITEBYTECODE="1")
    worker = subprocess.Popen(
        [sys.executable, parcel], stdin=subprocess.PIPE, cwd=folder, env=kept, start_new_session=True
    )
    try:
        relay(worker, woken, order["silence_seconds"])
    finally:
        end(worker)
    if worker.returncode < 0:
        return said(128 - worker.returncode, "ended by " + signal.Signals(-worker.returncode).name)
    return min(worker.returncode, 254)  # 255 is what ssh itself says


def receive(file: BinaryIO, size: int, silence_seconds: float) -> bool:
    while size:
        there = select.select([0], [], [], silence_seconds)[0]
        piece = os.read(0, min(size, 65536)) if there else b""
        if not piece:
            return False
        size -= file.write(piece)
    return True


def relay(worker: "subprocess.Popen[bytes]", woken: int, silence_seconds: float) -> None:
    """Passes requests on until the worker ends, the host hangs up, or says nothing for too long."""
    stdin, begun = cast(BinaryIO, worker.stdin), b""
    while True:
        there = select.select([0, woken], [], [], silence_seconds)[0]
        if woken in there and os.read(woken, 64) and worker.poll() is None:
            continue  # it was only stopped, or goes on again
        piece = os.read(0, 65536) if 0 in there else b""
        if woken in there or not piece:
            return
        lines = (begun + piece).split(b"\n")
        begun = lines.pop()
        requests = b"".join(line + b"\n" for line in lines if line)
        if requests:
            with contextlib.suppress(OSError):  # it ended just now: the next turn sees that
                stdin.write(requests)
                stdin.flush()


def end(worker: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(OSError):
        cast(BinaryIO, worker.stdin).close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        worker.wait(LAST_BREATH_SECONDS)
    with contextlib.suppress(OSError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


def said(code: int, words: str) -> int:
    with contextlib.suppress(OSError):
        os.write(2, words.encode() + b"\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
