"""The process that `overheads` starts: times one thing and answers with one line of JSON."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any

from ampere.core.errors import AmpereError, ModelError
from ampere.core.network import InputSpec
from ampere.models.datasets import Epochs, is_dataset
from ampere.models.user_code import find_function, guarded

Task = dict[str, Any]
Batches = Generator[Any, None, None]


def data(task: Task) -> dict[str, float]:
    if is_dataset(task["loader"]):
        return _timed(Epochs(task["loader"], task["batch"]), task["seconds"])
    source, _, name = task["loader"].rpartition(":")
    if not source:
        raise ModelError(f"{task['loader']!r} names no function: write file.py:function")
    function = find_function(source, name)
    with guarded(f"{name} in {source}"):
        loader = function()
        if not hasattr(loader, "__iter__"):
            raise ModelError(f"{task['loader']} returned {type(loader).__name__}, which gives no batches")
        return _timed(loader, task["seconds"])


def _timed(loader: Any, seconds: float) -> dict[str, float]:
    with closing(_again_and_again(loader)) as batches:
        next(batches)
    return _counted(lambda: _again_and_again(loader), seconds)


def evaluation(task: Task) -> dict[str, float]:
    import torch

    torch.set_num_threads(task["setup"]["threads"])
    dtype = getattr(torch, task["setup"]["dtype"])
    with guarded(f"evaluating {task['name']}"):
        model, inputs = _built(task["workload"])
        model = model.eval().to(dtype)
        named = {name: _as(value, dtype) for name, value in inputs.items()} if isinstance(inputs, dict) else {}
        positional = [] if named else [_as(value, dtype) for value in inputs]

        def steps() -> Batches:
            while True:
                yield model(*positional, **named)

        with torch.no_grad():
            next(steps())
            return _counted(steps, task["seconds"])


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


def _again_and_again(loader: Any) -> Batches:
    """Epoch after epoch."""
    while True:
        empty = True
        for batch in loader:
            empty = False
            yield batch
        if empty:
            raise ModelError("the loader gives no batch at all: it must give one or more")


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


TASKS: dict[str, Callable[[Task], dict[str, float]]] = {"data": data, "evaluation": evaluation}


def main() -> None:
    answers = os.dup(1)
    os.dup2(2, 1)  # what the user's code prints is no answer
    task = json.loads(sys.argv[1])
    try:
        answer: dict[str, Any] = TASKS[task["what"]](task)
    except AmpereError as error:
        answer = {"error": str(error)}
    os.write(answers, json.dumps(answer).encode())


if __name__ == "__main__":
    main()
