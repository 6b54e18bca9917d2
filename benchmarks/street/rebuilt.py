"""Trains a model by its own code and as it is built from its description, step by step in turn, in this one process.

    python benchmarks/street/rebuilt.py FILE.py NAME SECONDS

The processor's state and the memory that the process happens to get are the same for both. The loss and the optimizer
of the model's own code are those of train.py.
"""

import json
import sys
import time
from statistics import median

import torch
from train import FEWEST_STEPS, WARMUP, build, training_loop

from ampere.core import Network
from ampere.runtimes.torch_network import build_chain
from ampere.runtimes.torch_program import Program
from ampere.tracing.program import program_of
from ampere.tracing.trace import trace


def main():
    path, name, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    torch.set_num_threads(1)
    model, inputs = build(path, name)
    loops = {"own_seconds": training_loop(model, inputs), "seconds": rebuilt_loop(described(model, inputs))}
    spent = {which: [] for which in loops}
    began = time.perf_counter()
    while time.perf_counter() - began < 2 * seconds or len(spent["seconds"]) < WARMUP + FEWEST_STEPS:
        for which, steps in loops.items():
            cpu = time.process_time()
            next(steps)
            spent[which].append(time.process_time() - cpu)
    print(json.dumps({which: median(found[WARMUP:]) for which, found in spent.items()}))


def described(model, inputs):
    """The step that a worker on another machine builds: from the model's program, or where it has none its layers."""
    program = program_of(model, inputs)
    return from_layers(model, inputs) if program is None else Program(json.loads(json.dumps(program)))


def from_layers(model, inputs):
    network = Network.from_json(json.loads(json.dumps(trace(model, inputs).to_json())))
    unknown = sorted({layer.name for layer in network.layers if layer.kind == "opaque"})
    if unknown:
        sys.exit(f"{', '.join(unknown)} cannot be built from a description")
    return build_chain(network, torch.float32)


def rebuilt_loop(chain):
    optimizer = torch.optim.SGD(chain.trained, lr=1e-4)
    while True:
        optimizer.zero_grad()
        chain.loss().backward()
        optimizer.step()
        yield


if __name__ == "__main__":
    main()
