"""The process that `besides` starts: times one thing and answers with one line of JSON."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import Any

from ampere.core.errors import AmpereError, ModelError
from ampere.models.loading import load_model
from ampere.models.user_code import find_function, guarded

Task = dict[str, Any]
Batches = Generator[Any, None, None]


def data(task: Task) -> dict[str, float]:
    source, _, name = task["loader"].rpartition(":")
    if not source:
        raise ModelError(f"{task['loader']!r} names no function: write file.py:function")
    function, folder = find_function(source, name)
    with guarded(f"{name} in {source}", folder):
        loader = function()
        if not hasattr(loader, "__iter__"):
            raise ModelError(f"{task['loader']} returned {type(loader).__name__}, which gives no batches")
        with closing(_again_and_again(loader)) as batches:
            next(batches)
        return _counted(lambda: _again_and_again(loader), task["seconds"])


def evaluation(task: Task) -> dict[str, float]:
    import torch

    torch.set_num_threads(task["setup"]["threads"])
    loaded = load_model(task["model"], task["input"], **task["arguments"])
    dtype = getattr(torch, task["setup"]["dtype"])
    model = loaded.model.eval().to(dtype)

    def steps() -> Batches:
        positional, named = ((), loaded.inputs) if isinstance(loaded.inputs, dict) else (loaded.inputs, {})
        ready = [_as(value, dtype) for value in positional]
        while True:
            yield model(*ready, **{name: _as(value, dtype) for name, value in named.items()})

    with guarded(f"evaluating {task['model']}", Path.cwd()), torch.no_grad():
        next(steps())
        return _counted(steps, task["seconds"])


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
