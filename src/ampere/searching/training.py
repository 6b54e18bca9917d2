"""A classification made by the project, for a search whose user brings no data: each class has a few smooth patterns,
shifted, scaled and under noise; for tokens, words that are more frequent in it.

It tells networks apart that learn little from those that learn much. It says nothing of anybody's real data.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ampere.core.errors import AmpereError, ModelError, UsageError
from ampere.core.optimizers import OPTIMIZERS
from ampere.models.user_code import explain, find_function, guarded

from .choosing import Candidate, in_words
from .result import Trial
from .spaces import SearchSpace

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ampere.models.loading import LoadedModel


TRAINING, TESTING = 4000, 1000  # examples
PATTERNS, SHIFT, NOISE = 4, 3, 1.0  # a class; places; standard deviations of a pattern
KEYWORDS, KEYWORD_SHARE = 12, 0.15
COARSER = 4  # a pattern changes over so many places


class Task(NamedTuple):
    train: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]


def make_task(example: Tensor, classes: int, words: int = 0, seed: int = 0) -> Task:
    """Inputs like the example, whose first dimension is the batch; `words` are those of a vocabulary."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (TRAINING + TESTING,), generator=generator)
    shape = tuple(example.shape[1:])
    if example.is_floating_point():
        inputs = _images(torch, shape, labels, classes, generator)
    else:
        inputs = _texts(torch, shape, labels, classes, words or int(example.max()) + 1, generator)
    return Task((inputs[:TRAINING], labels[:TRAINING]), (inputs[TRAINING:], labels[TRAINING:]))


def can_make(example: Any) -> bool:
    """Channels of at most two places, or a row of words."""
    import torch

    if not isinstance(example, torch.Tensor):
        return False
    if example.is_floating_point():
        return 2 <= example.dim() <= 4
    return example.dim() == 2 and example.dtype in (torch.int64, torch.int32)


def _images(torch: Any, shape: tuple[int, ...], labels: Tensor, classes: int, generator: Any) -> Tensor:
    """Channels and one or two places; a series of rows is an image of one channel."""
    planes = (1,) * max(0, 3 - len(shape)) + shape
    places = tuple(planes[-2:])
    coarse = (classes * PATTERNS, planes[0], *(max(1, -(-p // COARSER)) for p in places))
    drawn = torch.randn(coarse, generator=generator)
    patterns = torch.nn.functional.interpolate(drawn, size=places, mode="bilinear", align_corners=False)
    patterns = patterns / patterns.std(dim=(1, 2, 3), keepdim=True)
    which = labels * PATTERNS + torch.randint(PATTERNS, labels.shape, generator=generator)
    shifts = torch.randint(-SHIFT, SHIFT + 1, (len(labels), 2), generator=generator)
    moved = [torch.roll(patterns[w], (int(y), int(x)), dims=(1, 2)) for w, (y, x) in zip(which, shifts, strict=True)]
    size = 0.7 + 0.6 * torch.rand(len(labels), 1, 1, 1, generator=generator)
    noisy = size * torch.stack(moved) + NOISE * torch.randn((len(labels), *planes), generator=generator)
    result: Tensor = noisy.reshape(len(labels), *shape)
    return result


def _texts(torch: Any, length: tuple[int, ...], labels: Tensor, classes: int, words: int, generator: Any) -> Tensor:
    keywords = torch.randint(words, (classes, KEYWORDS), generator=generator)
    spoken = torch.randint(KEYWORDS, (len(labels), *length), generator=generator)
    noise = torch.randint(words, (len(labels), *length), generator=generator)
    meant = torch.rand((len(labels), *length), generator=generator) < KEYWORD_SHARE
    result: Tensor = torch.where(meant, keywords[labels].gather(1, spoken), noise)
    return result


# Short trainings: the user's own function, or a small one on a data set that the project makes.

Train = Callable[["nn.Module", Candidate], Any]  # a model and what it is; its accuracy, from 0 to 1

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

    chosen = OPTIMIZERS[candidate.optimizer]
    optimizer = chosen.make("torch", model.parameters(), lr=chosen.usual_rate)
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
