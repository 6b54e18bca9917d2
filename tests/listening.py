"""Workers that listen on a port of their own choice, for as long as a test needs them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OURS = f"{sys.executable} -m ampere.worker"
NODE = f"node {Path(__file__).parents[1] / 'examples' / 'node-worker' / 'worker.js'}"
WARM_OURS = f"{sys.executable} {__file__}"  # ours, whose workers start warm: see processes.py
TOKEN = "a-token-of-the-tests"


@contextmanager
def listener(
    command: str, place: str = "0", *more: str, token: str = ""
) -> Iterator[tuple[subprocess.Popen, str, str]]:
    """Its process, its address as `--device` takes it, and the token that it shows."""
    if command == WARM_OURS and os.name == "posix":
        from tests.processes import warm_address

        warm_address()  # it is started by this process, if need be, and not by each listener
    environment = {**os.environ, "AMPERE_WORKER_TOKEN": token}
    words = [*command.split(), "--listen", place, *more]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        address = process.stderr.readline().rpartition(" ")[2].strip()
        yield process, address, process.stderr.readline().partition("=")[2].partition(";")[0]
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


@contextmanager
def listening(command: str, place: str = "0", *more: str) -> Iterator[str]:
    """Its address; this process presents the right token."""
    before = os.environ.get("AMPERE_WORKER_TOKEN")
    os.environ["AMPERE_WORKER_TOKEN"] = TOKEN
    try:
        with listener(command, place, *more, token=TOKEN) as (_, address, _):
            yield address
    finally:
        del os.environ["AMPERE_WORKER_TOKEN"]
        if before is not None:
            os.environ["AMPERE_WORKER_TOKEN"] = before


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])
    from tests.processes import warm_subprocess

    from ampere.worker import __main__ as ours
    from ampere.worker import listening as serving

    if os.name == "posix":
        serving.subprocess = warm_subprocess()  # type: ignore[assignment]
    ours.main()
