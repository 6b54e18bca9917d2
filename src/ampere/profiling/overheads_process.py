"""The process that `overheads` starts: times one thing and answers with one line of JSON."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, nullcontext
from functools import partial
from typing import Any

from ampere.core import TrainingSetup
from ampere.core.errors import AmpereError, ModelError
from ampere.core.network import InputSpec
from ampere.models.datasets import Epochs, is_dataset
from ampere.models.user_code import find_function, guarded

Task = dict[str, Any]
Batches = Generator[Any, None, None]


def data(task: Task) -> dict[str, Any]:
    with guarded(task["loader"]):
        return _timed(_loader(task), task["seconds"])


def _loader(task: Task) -> Any:
    """What a training loop iterates over, epoch after epoch."""
    if is_dataset(task["loader"]):
        return Epochs(task["loader"], task["batch"])
    source, _, name = task["loader"].rpartition(":")
    if not source:
        raise ModelError(f"{task['loader']!r} names no function: write file.py:function")
    function = find_function(source, name)
    loader = function()
    if not hasattr(loader, "__iter__"):
        raise ModelError(f"{task['loader']} returned {type(loader).__name__}, which gives no batches")
    return _Anew(function) if hasattr(loader, "__next__") else loader


class _Anew:
    """A loader that ends for good, as a generator does, is made again for each epoch."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __iter__(self) -> Any:
        return self._make()


def _timed(loader: Any, seconds: float) -> dict[str, Any]:
    with closing(_again_and_again(loader, [])) as batches:
        first = next(batches)
    epochs: list[int] = []
    counted = _counted(lambda: _again_and_again(loader, epochs), seconds)
    length = _length(loader) or (epochs[0] if epochs else None)
    overlaps = getattr(loader, "num_workers", 0) > 0
    return {**counted, "epoch_batches": length, "shape": _shape(first), "overlaps": overlaps}


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:  # it has none, as a DataLoader of a stream
        return None


def _shape(batch: Any) -> list[int]:
    """The shape of the first tensor or array in a batch; empty where there is none."""
    if isinstance(batch, Mapping):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        return next((shape for shape in map(_shape, batch) if shape), [])
    return [int(size) for size in getattr(batch, "shape", ())]


def evaluation(task: Task) -> dict[str, float]:
    import torch

    torch.set_num_threads(task["setup"]["threads"])
    setup = TrainingSetup.from_json(task["setup"])
    with guarded(f"evaluating {task['name']}"):
        model, inputs = _built(task["workload"])
        model = model.eval().to(_weights(setup))
        positional, named = _arguments(inputs, setup)

        def steps() -> Batches:
            while True:
                yield model(*positional, **named)

        with torch.no_grad(), _precision(setup):
            next(steps())
            return _counted(steps, task["seconds"])


ROUND_SECONDS = 0.05  # of steps, and of each part: short ones, so that both meet the same machine
FEWEST_ROUNDS, MOST_ROUNDS = 3, 40


def parts(task: Task) -> dict[str, Any]:
    """Rounds of training steps and of each part in turns: CPU and wall seconds of a part over those of a step."""
    import torch

    from ampere.core.optimizers import OPTIMIZERS
    from ampere.runtimes.torch_runtime import trainable

    torch.set_num_threads(task["setup"]["threads"])
    torch.set_flush_denormal(True)
    with guarded(f"timing parts of a run of {task['name']}"):
        model, inputs = _built(task["workload"])
        setup = TrainingSetup.from_json(task["setup"])
        model = model.to(_weights(setup))
        optimizer = OPTIMIZERS[setup.optimizer].make("torch", trainable(model))
        batches = _again_and_again(_loader(task), []) if "loading" in task["parts"] else iter(())
        actions = _actions(model, _arguments(inputs, setup), optimizer, setup, task["parts"], batches)
        for action in (*actions.values(), actions["step"]):
            action(1)
        return {"rounds": _rounds(actions, task["seconds"])}


Action = Callable[[int], None]  # does something so many times


def _actions(
    model: Any,
    arguments: Any,
    optimizer: Any,
    setup: TrainingSetup,
    asked: dict[str, int],
    data: Iterator[Any],
) -> dict[str, Action]:
    import torch

    from ampere.runtimes.plain_script import training_loss
    from ampere.runtimes.torch_model import called

    positional, named = arguments
    ready = called(model, named or positional)

    def train(batches: int, times: int, load: Callable[[], Any] = lambda: None) -> None:
        model.train()
        for _ in range(times):
            load()
            optimizer.zero_grad(set_to_none=True)
            for _ in range(batches):
                with _precision(setup):
                    loss = training_loss(ready(*positional, **named))
                torch.autograd.backward(loss / batches if batches > 1 else loss)
            optimizer.step()

    def evaluate(batches: int, times: int) -> None:
        model.eval()
        with torch.no_grad(), _precision(setup):
            for _ in range(batches * times):
                ready(*positional, **named)

    def checkpoint(files: int, times: int) -> None:
        for _ in range(files * times):
            with tempfile.TemporaryFile() as file:
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
                file.flush()
                os.fsync(file.fileno())

    loading = partial(train, load=partial(next, data))
    known: dict[str, Callable[[int, int], None]] = {
        "evaluation": evaluate,
        "accumulation": train,
        "checkpoint": checkpoint,
        "loading": loading,
    }
    return {"step": partial(train, 1), **{name: partial(known[name], count) for name, count in asked.items()}}


def _rounds(actions: dict[str, Action], seconds: float) -> dict[str, list[list[float]]]:
    repeats = {name: max(1, round(ROUND_SECONDS / max(_spent(action, 1)[1], 1e-6))) for name, action in actions.items()}
    rounds: dict[str, list[list[float]]] = {name: [] for name in actions if name != "step"}
    ends = time.monotonic() + seconds
    for number in range(MOST_ROUNDS):
        if number >= FEWEST_ROUNDS and time.monotonic() >= ends:
            break
        before = _spent(actions["step"], repeats["step"])
        found = {name: _spent(actions[name], repeats[name]) for name in rounds}
        after = _spent(actions["step"], repeats["step"])
        for name, spent in found.items():
            rounds[name].append([2 * part / (a + b) for part, a, b in zip(spent, before, after, strict=True)])
    return rounds


def _spent(action: Action, times: int) -> tuple[float, float]:
    """CPU and wall seconds of one, on average."""
    began, cpu = time.perf_counter(), time.process_time()
    action(times)
    return (time.process_time() - cpu) / times, (time.perf_counter() - began) / times


def _weights(setup: TrainingSetup) -> Any:
    """The type of the weights."""
    from ampere.runtimes.torch_runtime import DTYPES

    return DTYPES[setup.dtype]


def _precision(setup: TrainingSetup) -> Any:
    import torch

    return torch.autocast("cpu", dtype=torch.bfloat16) if setup.dtype == "autocast_bfloat16" else nullcontext()


def _arguments(inputs: Any, setup: TrainingSetup) -> tuple[list[Any], dict[str, Any]]:
    kind = _weights(setup)
    if isinstance(inputs, dict):
        return [], {name: _as(value, kind) for name, value in inputs.items()}
    return [_as(value, kind) for value in inputs], {}


def _built(workload: dict[str, Any]) -> tuple[Any, Any]:
    """A model by its own code, and its inputs: positional ones as a sequence, named ones as a dict."""
    from ampere.runtimes.torch_model import tensors_of
    from ampere.runtimes.user_code import find_factory

    made = find_factory(workload["factory"])(**(workload.get("arguments") or {}))
    model, example = made if isinstance(made, tuple) else (made, None)
    specs = workload.get("inputs")
    if isinstance(specs, dict):
        return model, tensors_of({name: InputSpec.from_json(record) for name, record in specs.items()})
    if specs is not None:
        return model, tensors_of([InputSpec.from_json(record) for record in specs])
    return model, example if isinstance(example, (dict, list, tuple)) else (example,)


def _as(value: Any, dtype: Any) -> Any:
    return value.to(dtype) if getattr(value, "is_floating_point", bool)() else value


def _again_and_again(loader: Any, epochs: list[int]) -> Batches:
    """Epoch after epoch; the batches of each that ended are noted."""
    while True:
        given = 0
        for batch in loader:
            given += 1
            yield batch
        if not epochs and not given:
            raise ModelError("the loader gives no batch at all: it must give one or more")
        if not given:
            raise ModelError(
                f"the loader ended after {sum(epochs):,} batches and cannot start again: return a DataLoader"
            )
        epochs.append(given)


def _counted(start: Callable[[], Batches], seconds: float) -> dict[str, float]:
    count, began, cpu = 0, time.monotonic(), _cpu_seconds()
    with closing(start()) as batches:
        for _ in batches:
            count += 1
            if time.monotonic() - began >= seconds:
                break
    return {"batches": count, "seconds": time.monotonic() - began, "cpu_seconds": _cpu_seconds() - cpu}


def _cpu_seconds() -> float:
    """Of this process and of its children that have ended."""
    spent = os.times()
    return time.process_time() + spent.children_user + spent.children_system


TASKS: dict[str, Callable[[Task], dict[str, Any]]] = {"data": data, "evaluation": evaluation, "parts": parts}


def main() -> None:
    answers = os.dup(1)
    os.dup2(2, 1)  # what the user's code prints is no answer
    task = json.loads(sys.argv.pop(1))  # the user's code finds no arguments
    try:
        answer: dict[str, Any] = TASKS[task["what"]](task)
    except AmpereError as error:
        answer = {"error": str(error)}
    os.write(answers, json.dumps(answer).encode())


if __name__ == "__main__":
    main()
