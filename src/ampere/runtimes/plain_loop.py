"""A process that trains as a user's script does what a bare script cannot: on a card, in other precisions, changed."""

import contextlib
import json
import sys
from typing import Any, Dict, Optional

from ampere.core import TrainingSetup

from .changed_training import build_changed
from .plain_script import Step, answer_when_asked, trained
from .torch_runtime import TorchRuntime
from .user_code import find_factory


def main() -> None:
    task = json.loads(sys.argv.pop(1))  # the user's code finds no arguments
    if "factory" in task["workload"]:
        with contextlib.suppress(Exception):  # what is wrong with it is said when it is built
            find_factory(task["workload"]["factory"])
    answer_when_asked(
        task, lambda: build(task["workload"], TrainingSetup.from_json(task["setup"]), task.get("changes"))
    )


def train(
    workload: Dict[str, Any],
    setup: TrainingSetup,
    seconds: float,
    at_most: Optional[float] = None,
    changes: Optional[Dict[str, Any]] = None,
) -> Dict[str, Any]:
    return trained(build(workload, setup, changes), seconds, at_most)


def build(workload: Dict[str, Any], setup: TrainingSetup, changes: Optional[Dict[str, Any]] = None) -> Step:
    runtime = TorchRuntime()
    processor = runtime.place(setup.on)
    runtime.prepare(setup.threads)
    training = build_changed(workload, setup, changes) if changes else runtime.build(workload, setup)
    return Step(training.step, training.last_loss, training.parameters, processor.synchronize, processor.timer)
