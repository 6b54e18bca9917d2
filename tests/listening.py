"""Workers that listen on a port of their own choice, for as long as a test needs them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OURS = f"{sys.executable} -m ampere.worker"
NODE = f"node {Path(__file__).parents[1] / 'examples' / 'node-worker' / 'worker.js'}"


@contextmanager
def listening(command: str, place: str = "0") -> Iterator[str]:
    """Its address, as `--device` takes it."""
    process = subprocess.Popen([*command.split(), "--listen", place], stderr=subprocess.PIPE, text=True)
    try:
        yield process.stderr.readline().rpartition(" ")[2].strip()
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()
