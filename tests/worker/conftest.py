import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.processes import warm_popen

from ampere.core import Measurement, Meter, Network
from ampere.core.processes import python_program
from ampere.runtimes.conformance import EXAMPLES

WORKLOADS = Path(__file__).with_name("workloads.py")


def measurement(result):
    """The answer to a block, as the host reads it."""
    return Measurement.from_json({**result, "meter": Meter("any", False)})


class RawWorker:
    """A worker spoken to by hand: lines in, lines out."""

    def __init__(self, **environment):
        others = {name for name, value in environment.items() if os.environ.get(name) != value}
        # Other settings than ours may be read while PyTorch is imported.
        start = warm_popen if all(name.startswith("AMPERE_") for name in others) else subprocess.Popen
        pipe, command = subprocess.PIPE, python_program("ampere.worker.__main__")
        self.process = start(
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

    def block(self, workload, **fields):
        quick = {"iterations": 2, "warmup": 1, **fields}
        return self.ask("block", workload=workload, **quick)

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
def workload_of():
    return lambda name, **more: {"factory": f"{WORKLOADS}:{name}", **more}


@pytest.fixture(scope="session")
def examples():
    """Layers of every kind that can be built."""
    return EXAMPLES


@pytest.fixture(scope="session")
def layers_workload():
    return lambda *layers: {"layers": Network(tuple(layers), 3).to_json()}
