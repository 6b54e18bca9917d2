import json
import subprocess
import sys
from pathlib import Path

import pytest

from ampere.network import Layer, Network

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


def conv(kind="conv", size=(8, 8), groups=1, channels=(4, 8), **more):
    n = len(size)
    config = {
        "batch": 3,
        "size_in": size,
        "kernel": (3,) * n,
        "stride": (1,) * n,
        "padding": (1,) * n,
        "dilation": (1,) * n,
        "bias": True,
        "groups": groups,
    }
    return Layer(kind, {**config, **more}, *channels)


def recurrent(kind):
    config = {"batch": 3, "length": 5, "layers": 2, "directions": 2, "bias": True}
    return [Layer(kind, {**config, **more}, 6, 7) for more in ({}, {"state_grad": True})]


EXAMPLES = {
    "conv": [conv(), conv(size=(9,)), conv(size=(4, 4, 4)), conv(stride=(2, 2), bias=False)],
    "conv_grouped": [conv("conv_grouped", groups=2), conv("conv_grouped", groups=0)],
    "conv_transposed": [conv("conv_transposed", stride=(2, 2), output_padding=(1, 1))],
    "linear": [Layer("linear", {"lead": (3, 5), "bias": True}, 8, 4)],
    "matmul": [Layer("matmul", {"batch": 6, "rows": 5, **more}, 4, 7) for more in ({}, {"gradients": 1})],
    "attention": [
        Layer("attention", {"batch": 3, "heads": 2, "queries": 5, "keys": 6, **more}, 8, 7)
        for more in ({}, {"dropout": True}, {"causal": True})
    ],
    "lstm": recurrent("lstm"),
    "gru": recurrent("gru"),
    "rnn": recurrent("rnn"),
    "norm_batch": [Layer("norm_batch", {"batch": 3, "size": (4,) * n}, 6, 6) for n in range(4)],
    "norm_layer": [
        Layer("norm_layer", {"lead": (3, 5), **more}, 6, 6) for more in ({}, {"bias": False}, {"groups": 2})
    ],
    "embedding": [Layer("embedding", {"lead": (3, 5)}, 11, 6, input_grad=False)],
    "scale": [Layer("scale", {"values": values}, 6, 6) for values in (24, 25, 4)],
    "glue": [Layer("glue", {"batch": 3}, 1, 1)],
}


@pytest.fixture(scope="session")
def examples():
    """Layers of every kind that can be built."""
    return EXAMPLES


@pytest.fixture(scope="session")
def layers_subject():
    return lambda *layers: {"layers": Network(tuple(layers), 3).to_json()}
