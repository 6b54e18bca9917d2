"""Trains a model as a plain script does, and prints what a step took. It knows nothing of Ampere.

    python benchmarks/street/train.py FILE.py NAME SECONDS [THREADS]

The function NAME of the file returns a model and its inputs, or a function that does a whole step. The loss of a model
is its own, cross entropy of class scores, or the mean of squares. CPU time is the mean over steps of this process, so
that it can be compared with a yardstick however the machine's speed changes; wall time is the median. When training
began and ended is by the clock that all processes share.
"""

import importlib.util
import json
import sys
import time
from statistics import mean, median

import torch
import torch.nn.functional as F

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

WARMUP, FEWEST_STEPS = 3, 3


def build(path, name):
    spec = importlib.util.spec_from_file_location("model_file", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)()


def loss_of(output):
    loss = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    if loss is not None:
        return loss
    if output.dim() == 2 and output.shape[1] > 1:
        return F.cross_entropy(output, torch.arange(len(output)) % output.shape[1])
    return output.square().mean()


def main():
    path, name, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    if len(sys.argv) > 4:
        torch.set_num_threads(int(sys.argv[4]))
    made = build(path, name)
    steps = called_again_and_again(made) if callable(made) else training_loop(*made)
    for _ in range(WARMUP):
        next(steps)
    print("training", flush=True)
    busy, wall, faults, began = [], [], page_faults(), time.perf_counter()
    while time.perf_counter() - began < seconds or len(wall) < FEWEST_STEPS:
        cpu, now = time.process_time(), time.perf_counter()
        next(steps)
        busy.append(time.process_time() - cpu)
        wall.append(time.perf_counter() - now)
    ended = time.perf_counter()
    record = {"busy_seconds": mean(busy), "wall_seconds": median(wall), "steps": len(busy)}
    print(json.dumps({**record, "page_faults": (page_faults() - faults) / len(busy), "between": [began, ended]}))


def called_again_and_again(step):
    while True:
        yield step()


def training_loop(model, inputs):
    """The loop that everybody writes; it pauses after each step, for the clock."""
    model.train()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    while True:
        optimizer.zero_grad()
        if isinstance(inputs, dict):
            output = model(**inputs)
        else:
            output = model(*inputs) if isinstance(inputs, tuple) else model(inputs)
        loss = loss_of(output)
        loss.backward()
        optimizer.step()
        yield


def page_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt if resource else 0


if __name__ == "__main__":
    main()
