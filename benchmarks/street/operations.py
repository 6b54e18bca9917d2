"""Holds the operations of a model's own training step against those of the networks built from its description.

    python benchmarks/street/operations.py FILE.py[:NAME] ... [--worst 8]

Forward, backward and update of one step each, operation by operation, with the shapes, strides and types of what each
reads. Every operation of the own code is weighed by its seconds (the least of some steps) and looked for in the other
step, first as it is, then with other strides, then with other shapes of the same size:

    same     share of the own code's seconds whose operations are there with the same shapes, strides and types
    shapes   with the same shapes
    sizes    with as many values
    price    seconds of all operations of the network that was built, relative to those of the own code

A network is built from its layers, which is all there is of narrower likes of a model, and from its program. No figure
says what a whole step takes: Python, autograd and memory are not in them. It needs no quiet machine.
"""

import argparse
import multiprocessing
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import torch
from rebuilt import described, from_layers, rebuilt_loop
from torch.utils._python_dispatch import TorchDispatchMode
from train import build, training_loop

STEPS = 5
LEVELS = ("same", "shapes", "sizes")
WAYS = {"layers": from_layers, "program": described}
IDLE = ("detach", "device", "_local_scalar_dense")  # that compute nothing, or that only a dispatch mode sees


class Seen(TorchDispatchMode):
    """Each operation with what it reads, and its seconds."""

    def __init__(self):
        super().__init__()
        self.operations = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        began = time.perf_counter()
        out = func(*args, **(kwargs or {}))
        seconds = time.perf_counter() - began
        if name_of(func) in IDLE:
            return out
        read = [tensor for value in args for tensor in tensors_in(value)]
        self.operations.append((name_of(func), tuple(map(as_text, read)), seconds))
        return out


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for part in value for t in tensors_in(part)] if isinstance(value, (list, tuple)) else []


def name_of(func):
    return func._schema.name.partition("::")[2]


def as_text(tensor):
    if tensor.layout != torch.strided:
        return (str(tensor.dtype), tuple(tensor.shape), ())
    strides = tuple(s if n > 1 else 0 for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return (str(tensor.dtype).replace("torch.", ""), tuple(tensor.shape), strides)


def seen_in(steps):
    """The operations of a step, each with the least of its seconds in several."""
    rounds = []
    next(steps)
    for _ in range(STEPS):
        with Seen() as seen:
            next(steps)
        rounds.append(seen.operations)
    alike = [found for found in rounds if [o[:2] for o in found] == [o[:2] for o in rounds[-1]]]
    least = [min(each[2] for each in place) for place in zip(*alike, strict=True)]
    return [(name, read, seconds) for (name, read, _), seconds in zip(rounds[-1], least, strict=True)]


def at_level(name, read, level):
    """An operation, as far as it must agree with another."""
    plain = name.rstrip("_")
    if level == "same":
        return name, read
    if level == "shapes":
        return plain, tuple((kind, shape) for kind, shape, _ in read)
    return plain, tuple(sorted(count(shape) for _, shape, _ in read))


def count(shape):
    values = 1
    for n in shape:
        values *= n
    return values


def compared(own, built):
    """Shares at each level, the relative price, and the largest differences by operation and size."""
    total = sum(seconds for *_, seconds in own)
    shares, left, there = {}, list(own), list(built)
    matched = 0.0
    for level in LEVELS:
        offered = Counter(at_level(name, read, level) for name, read, _ in there)
        missing, taken = [], Counter()
        for name, read, seconds in left:
            key = at_level(name, read, level)
            if taken[key] < offered[key]:
                taken[key] += 1
                matched += seconds
            else:
                missing.append((name, read, seconds))
        rest = []
        for each in there:
            key = at_level(*each[:2], level)
            taken[key] -= 1
            if taken[key] < 0:
                rest.append(each)
        left, there, shares[level] = missing, rest, matched / total
    groups = defaultdict(lambda: [0, 0.0])
    for sign, found in ((-1, left), (1, there)):
        for name, read, seconds in found:
            shapes = " ".join("x".join(map(str, shape)) or "1" for _, shape, _ in read[:3])
            entry = groups[f"{name} {shapes}"]
            entry[0] += sign
            entry[1] += sign * seconds
    worst = sorted(groups.items(), key=lambda item: -abs(item[1][1]))
    return {
        **shares,
        "price": sum(seconds for *_, seconds in built) / total,
        "own": len(own),
        "built": len(built),
        "worst": [(what, times, seconds / total) for what, (times, seconds) in worst],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="FILE.py[:NAME]")
    parser.add_argument("--worst", type=int, default=0, help="differences to list for each model")
    options = parser.parse_args()
    models = [each for given in options.models for each in named(given)]
    print(f"{'model':24}{'built from':12}" + "".join(f"{head:>9}" for head in (*LEVELS, "price", "own", "built")))
    forked = multiprocessing.get_context("fork")
    for model in models:  # each in a process of its own, so that one does not end the others
        process = forked.Process(target=show, args=(*model, options.worst))
        process.start()
        process.join()


def named(given):
    path, colon, name = given.partition(".py:")
    if colon:
        return [(path + ".py", name)]
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from own_code import factories

    return [(given, each) for each in factories(Path(given))]


def show(path, name, worst):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, inputs = build(path, name)
    own = seen_in(training_loop(model, inputs))
    for way, made in WAYS.items():
        try:
            found = compared(own, seen_in(rebuilt_loop(made(model, inputs))))
        except (Exception, SystemExit) as problem:
            print(f"{name:24}{way:12} {problem}", flush=True)
            continue
        cells = "".join(f"{found[head]:9.1%}" for head in (*LEVELS, "price"))
        print(f"{name:24}{way:12}{cells}{found['own']:9}{found['built']:9}", flush=True)
        for what, times, share in found["worst"][:worst]:
            print(f"    {share:+7.1%} {times:+5}  {what}")


if __name__ == "__main__":
    main()
