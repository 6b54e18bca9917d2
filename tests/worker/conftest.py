import json
import subprocess
import sys
from pathlib import Path

import pytest

from ampere.core import Network
from ampere.runtimes.conformance import EXAMPLES

SUBJECTS = Path(__file__).with_name("subjects.py")


class RawWorker:
    """A worker spoken to by hand: lines in, lines out."""

    def __init__(self, **environment):
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", "ampere.worker"]
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=environment or None
        )

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def ask(self, do, **fields):
        answer = self.say(json.dumps({"id": 7, "do": do, **fields}))
        assert answer["id"] == 7
        return answer

    def block(self, subject, **fields):
        quick = {"iterations": 2, "warmup": 1, **fields}
        return self.ask("block", subject=subject, **quick)

    def end(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="session")
def start_worker():
    started = []

    def start(**environment):
        started.append(RawWorker(**environment))
        return started[-1]

    yield start
    for worker in started:
        worker.end()


@pytest.fixture(scope="session")
def worker(start_worker):
    return start_worker()


@pytest.fixture(scope="session")
def subject_of():
    return lambda name, **more: {"factory": f"{SUBJECTS}:{name}", **more}


@pytest.fixture(scope="session")
def examples():
    """Layers of every kind that can be built."""
    return EXAMPLES


@pytest.fixture(scope="session")
def layers_subject():
    return lambda *layers: {"layers": Network(tuple(layers), 3).to_json()}
