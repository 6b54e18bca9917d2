"""Short trainings: the user's own function, or a small one on a data set that the project makes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.errors import AmpereError, ModelError, UsageError
from ampere.models.user_code import explain, find_function, guarded

from .choosing import Candidate, in_words
from .result import Trial
from .space import SearchSpace
from .task import Task, can_make, make_task

if TYPE_CHECKING:
    from torch import nn

    from ampere.models.loading import LoadedModel

Train = Callable[["nn.Module", Candidate], Any]  # a model and what it is; its accuracy, from 0 to 1

RATES = {"sgd": {"lr": 0.1}, "momentum": {"lr": 0.02, "momentum": 0.9}, "adam": {"lr": 1e-3}, "adamw": {"lr": 1e-3}}
TESTED_AT_ONCE = 250
CLIPPED_AT = 1.0  # so that one rate serves narrow and wide networks
OURS = "a short training on a data set that Ampere makes"


class Diverged(Exception):
    """A loss that is no number any more."""


def of_user(spec: str) -> Train:
    """`file.py:function`."""
    if ":" not in spec:
        raise UsageError(
            f"--train {spec} names no function: write file.py:function, called as function(model, candidate)"
        )
    source, _, name = spec.rpartition(":")
    function, folder = find_function(source, name)

    def train(model: nn.Module, candidate: Candidate) -> Any:
        with guarded(f"{name} in {source}", folder):
            return function(model, candidate)

    train.__name__ = place_of(spec)
    return train


def ours(space: SearchSpace, steps: int, seed: int) -> Train:
    """The same examples for every candidate, so many steps of the original's batch."""
    original = space.build(space.original)
    task = _task(original, space.name, seed)
    examples = steps * space.network(space.original).batch
    return lambda model, candidate: _trained(model, task, candidate, examples, seed)


def _task(original: LoadedModel, name: str, seed: int) -> Task:
    import torch

    example: Any
    [example] = original.inputs if isinstance(original.inputs, tuple) and len(original.inputs) == 1 else (None,)
    with torch.no_grad():
        scores = original.model.eval()(example) if can_make(example) else None
    if not isinstance(scores, torch.Tensor) or scores.dim() != 2 or scores.shape[1] < 2:
        raise UsageError(
            f"{name} gives no scores of classes for one input of images, series or words: "
            "bring a training, --train file.py:function"
        )
    embeddings = [m for m in original.model.modules() if isinstance(m, torch.nn.Embedding)]
    return make_task(example, scores.shape[1], embeddings[0].num_embeddings if embeddings else 0, seed)


def _trained(model: nn.Module, task: Task, candidate: Candidate, examples: int, seed: int) -> float:
    import torch

    optimizers: dict[str, Any] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    optimizer = optimizers.get(candidate.optimizer, torch.optim.SGD)(model.parameters(), **RATES[candidate.optimizer])
    generator = torch.Generator().manual_seed(seed)
    inputs, labels = task.train
    model.train()
    for _ in range(max(1, round(examples / candidate.batch))):
        batch = torch.randint(len(labels), (candidate.batch,), generator=generator)
        loss = torch.nn.functional.cross_entropy(model(inputs[batch]), labels[batch])
        if not torch.isfinite(loss):
            raise Diverged(f"its loss became {float(loss)}")
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIPPED_AT)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        inputs, labels = task.test
        parts = zip(torch.split(inputs, TESTED_AT_ONCE), torch.split(labels, TESTED_AT_ONCE), strict=True)
        right = [model(x).argmax(1) == y for x, y in parts]
    return float(torch.cat(right).float().mean())


def tried(train: Train, space: SearchSpace, candidate: Candidate, seed: int) -> Trial:
    """A candidate that cannot be trained is told as such; the search goes on."""
    import torch

    torch.manual_seed(seed)
    began = time.perf_counter()
    try:
        score = train(space.build(candidate.arguments).model, candidate)
    except Exception as error:
        failure = str(error) if isinstance(error, (AmpereError, Diverged)) else explain(error)
        return Trial(candidate, None, time.perf_counter() - began, failure)
    accuracy, seconds = _accuracy(score, name_of(train)), time.perf_counter() - began
    if math.isnan(accuracy):
        return Trial(candidate, None, seconds, f"its accuracy is {accuracy}")
    return Trial(candidate, accuracy, seconds)


def _accuracy(score: Any, name: str) -> float:
    try:
        accuracy = float(score)
    except (TypeError, ValueError, RuntimeError):
        raise ModelError(
            f"{name} returned {type(score).__name__}, not a number: return the accuracy, from 0 to 1"
        ) from None
    if accuracy < 0 or accuracy > 1:
        raise ModelError(f"{name} returned {accuracy:g}, which is no accuracy: return a share from 0 to 1")
    return accuracy


def refuse_if_none_trained(trials: list[Trial]) -> None:
    if trials and all(trial.accuracy is None for trial in trials):
        why = f"{in_words(trials[0].candidate.arguments)}: {trials[0].failure}"
        raise ModelError(
            f"none of {len(trials)} candidates could be trained ({why}): "
            "try another optimiser, or a training of your own with --train file.py:function"
        )


def name_of(train: str | Train | None) -> str:
    if train is None:
        return OURS
    return place_of(train) if isinstance(train, str) else str(getattr(train, "__name__", type(train).__name__))


def place_of(spec: str) -> str:
    return Path(spec.rpartition(":")[0]).name + ":" + spec.rpartition(":")[2]
