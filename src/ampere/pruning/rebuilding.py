"""A saved pruned model as a factory, so that a worker can train it: `ampere.pruning.rebuilding:build`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ampere.models.loading import LoadedModel
from ampere.profiling.experiment import Experiment

from .result import Pruned
from .saving import load, save

FACTORY = "ampere.pruning.rebuilding:build"


def build(path: str, factory: str, arguments: dict[str, Any]) -> Any:
    """What the factory of the original makes, made into the pruned model that the file describes."""
    from ampere.runtimes.user_code import find_factory

    made = find_factory(factory)(**arguments)
    model, *inputs = made if isinstance(made, tuple) else (made,)
    pruned = load(path, model)
    return (pruned, *inputs) if inputs else pruned


def experiment_of(pruned: Pruned, loaded: LoadedModel, original: Experiment, path: Path) -> Experiment:
    """To be measured: saved at `path`, and trained on the inputs of the original."""
    save(pruned, loaded.model, loaded.inputs, path)
    arguments = {"path": str(path), "factory": loaded.factory, "arguments": dict(loaded.arguments)}
    subject = {**original.subject, "factory": FACTORY, "arguments": arguments}
    return Experiment(pruned.networks[1], subject, "network", original.allocator)
