"""Checks that run inside a process which has the stand-in accelerator; each returns what the tests compare.

    python tests/standin/checks.py            all of them, as JSON
    python tests/standin/checks.py windows    one; AMPERE_STANDIN_WINDOWS=1000 sets how many windows it looks at

A PyTorch backend stays registered until its process ends, so these are not run in the process of the tests.
"""

import gc
import json
import math
import os
import sys
import tempfile
import traceback
from contextlib import contextmanager
from unittest import mock

import pynvml
import torch
import torch._dynamo  # an optimizer imports it
import torch.distributed as dist
from ampere_standin import CARD, SETTINGS, StandinTensor
from torch.nn.parallel import DistributedDataParallel

from ampere import Budget
from ampere.budget import spending
from ampere.budget.readings import CardMeter
from ampere.core import Layer, Network, TrainingSetup
from ampere.core.errors import WorkerError
from ampere.core.windows import Plan
from ampere.meters import selection
from ampere.runtimes import find_runtime
from ampere.runtimes.torch_accelerator import TorchAccelerator
from ampere.runtimes.torch_runtime import TorchRuntime
from ampere.worker.accelerators import ready
from ampere.worker.block import block
from ampere.worker.measuring import Target, measure, window

ON = "standin:0"
SETTINGS["images"] = 2
WINDOWS = int(os.environ.get("AMPERE_STANDIN_WINDOWS", "200"))


def perceptron(width=256, rows=64):
    layers = [Layer("linear", {"lead": (rows,), "bias": True}, width, width, input_grad=i > 0) for i in range(3)]
    return {"layers": Network(tuple(layers), rows).to_json()}


def request(workload=None, **fields):
    setup = TrainingSetup(on=ON, **fields.pop("setup", {})).to_json()
    return {"workload": workload or perceptron(), "setup": setup, "iterations": 8, "warmup": 1, **fields}


class Spy:
    """A meter that looks whether the queue is empty whenever it is read."""

    update_seconds, reading_unit = 1e-6, "J"

    def __init__(self):
        self.read = self.early = 0

    def describe(self):
        return {"name": "spy", "measured": False, "scope": "the queue"}

    def start(self):
        self._look()

    def stop(self):
        self._look()
        return 1.0

    def reading(self):
        return 0.0

    def _look(self):
        self.read += 1
        self.early += not CARD.empty


def readings(count=WINDOWS):
    """How many times the meter was read at borders of windows, and how often before the queue was empty."""
    runtime = find_runtime("torch")
    processor = ready(runtime, ON)
    runtime.prepare(1)
    training, spy = runtime.build(perceptron(64, 16), TrainingSetup(on=ON)), Spy()

    def step():
        training.step()
        CARD.queue(1e-3)  # longer than it takes to get to the next reading

    measure(Plan((1,) * count, yardsticks=1, settling=1), Target(step), step, spy, math.inf, processor)
    return {"read": spy.read, "early": spy.early}


def not_waiting(self):
    """A timer that reads the clock without waiting for the queue."""
    return lambda: 1e-3


def windows():
    """What the meter saw, as it is and with a fault put in."""
    found = {"as_it_is": readings()}
    processor = ready(find_runtime("torch"), ON)
    with mock.patch.object(TorchAccelerator, "synchronize", return_value=None):
        try:
            readings(4)
        except RuntimeError as problem:  # as CUDA's events, which refuse to tell time before it is over
            found["events_without_waiting"] = str(problem)
        with mock.patch.object(processor, "_timed_by_events", False):
            found["without_waiting"] = readings(4)
    CARD.wait()
    with mock.patch.object(TorchAccelerator, "timer", not_waiting):
        found["read_before_waiting"] = readings(4)
    CARD.wait()
    return found


def placement():
    """The devices of parameters, inputs, optimizer state and labels."""
    runtime = TorchRuntime()
    runtime.place(ON)
    training = runtime.build(perceptron(), TrainingSetup(on=ON, optimizer="adam"))
    training.step()
    first = training.last_loss()
    for _ in range(5):
        training.step()
    kinds = {str(weight.device) for weight in training.weights()}
    return {"weights": sorted(kinds), "learns": training.last_loss() < first, "resolved": runtime.place("auto").name}


def device_time():
    """Seconds of one window: busy by its events, of the card's own work, and of the clock until all was done."""
    processor = ready(find_runtime("torch"), ON)
    began = max(CARD.now(), CARD.until)
    measured = window(lambda: CARD.queue(0.02), 5, Spy(), processor)
    return {"busy": measured.busy_seconds, "card": CARD.busy(began, CARD.until), "wall": measured.wall_seconds}


@contextmanager
def leaking():
    """Keeps every training that is built, as a list somewhere would."""
    kept, build = [], TorchRuntime.build

    def keeping(self, workload, setup):
        kept.append(build(self, workload, setup))
        return kept[-1]

    with mock.patch.object(TorchRuntime, "build", keeping):
        yield


def left_by(task):
    """Bytes allocated and cached on the card after a block, beyond those before it."""
    gc.collect()
    torch.standin.empty_cache()
    before = CARD.allocated
    task()
    return {"allocated": CARD.allocated - before, "cached": CARD.reserved - before}


def memory():
    block(request())  # what stays for good is there from now on
    found = {"as_it_is": left_by(lambda: block(request()))}
    with mock.patch.object(TorchAccelerator, "release", return_value=None):
        found["not_released"] = left_by(lambda: block(request()))
    with leaking():
        found["leaked"] = left_by(lambda: block(request()))
    found["peaks"] = [block(request(perceptron(width=width)))["conditions"]["peak_bytes"] for width in (256, 512, 256)]
    return found


def refused(workload, **fields):
    try:
        block(request(workload, **fields))
    except WorkerError as problem:
        return problem.to_json()
    return None


def full():
    """What comes of a variant that does not fit, and whether the next one trains."""
    errors = []
    left = left_by(lambda: errors.append(refused(perceptron(width=4000))))
    return {"error": errors[0], "left": left, "next": block(request())["flags"]}


def forks():
    """Blocks that ask for a process of their own, where nothing may be forked."""

    def forbidden():
        raise AssertionError("forked after the accelerator was used")

    runtime = find_runtime("torch")
    ready(runtime, ON)
    with mock.patch.object(os, "fork", forbidden):
        answer = block(request(isolation="fork"))
        return {"flags": answer["flags"], "windows": len(answer["target"]), "ready": runtime.ready_to_fork({}, 1)}


def mixed():
    """What an input that stays on the CPU comes to."""
    try:
        StandinTensor(torch.ones(3)) + torch.ones(3)
    except RuntimeError as problem:
        return str(problem)
    return None


def budget():
    """What a budget reads of the card that this process trains on, and how often before the queue was empty."""
    SETTINGS["nvml"] = {"update_seconds": 0.02}
    selection._choice.cache_clear()
    early, read = [], pynvml.nvmlDeviceGetTotalEnergyConsumption

    def looking(card):
        early.append(not CARD.empty)
        return read(card)

    followed = Budget(1e6, on="standin")
    with mock.patch.object(pynvml, "nvmlDeviceGetTotalEnergyConsumption", looking), followed:
        for _ in range(4):
            CARD.queue(0.05)
            followed.step()
    return {"meter": followed.meter.scope, "joules": followed.spent, "read": len(early), "early": sum(early)}


def ranks():
    """What each of two ranks read and spent that train together over gloo: each on a card of its own, and on one."""
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory() as folder:
        started = [start_rank(rank, folder, writing) for rank in range(2)]
        os.close(writing)
        with open(reading) as pipe:
            said = [json.loads(line) for line in pipe]
        for process in started:
            os.waitpid(process, 0)
    return {job: [one[job] for one in said] for job in ("two_cards", "one_card")}


def start_rank(rank, folder, answers):
    process = os.fork()  # no card was used yet
    if process == 0:
        try:
            dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
            SETTINGS["nvml"] = {"update_seconds": 0.02}
            said = {"two_cards": trained_by(rank, f"GPU-{rank}"), "one_card": trained_by(rank, "GPU-0")}
            os.write(answers, json.dumps(said).encode() + b"\n")
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    return process


def trained_by(rank, card):
    selection._choice.cache_clear()
    model, read, stop = DistributedDataParallel(torch.nn.Linear(4, 2)), [], CardMeter.stop
    with (
        mock.patch("ampere_standin.UUID", card),
        mock.patch.object(CardMeter, "stop", lambda self: read.append(stop(self)) or read[-1]),
        mock.patch.object(spending, "READINGS_APART", 0),
        Budget(1e6, on="standin") as followed,
    ):
        for _ in range(4):
            model(torch.randn(3, 4)).sum().backward()  # which waits for the other rank
            CARD.queue(0.03 * (1 + rank))
            followed.step()
    return {"read": sum(read), "spent": followed.spent}


CHECKS = (
    ranks,
    placement,
    windows,
    device_time,
    memory,
    full,
    forks,
    mixed,
    budget,
)  # the first forks, the last brings a meter


def main():
    gc.freeze()  # libraries stay: to look through them after every block takes longest
    wanted = [check for check in CHECKS if not sys.argv[1:] or check.__name__ in sys.argv[1:]]
    print(json.dumps({check.__name__: check() for check in wanted}))


if __name__ == "__main__":
    main()
