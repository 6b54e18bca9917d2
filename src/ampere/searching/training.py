"""Short trainings of candidates: by a function of the user, or on a classification task that Ampere makes.

In that task each class has a few smooth patterns, shifted, scaled and with noise; for tokens, words that are more
frequent in it. It separates networks that learn little from those that learn much. It says nothing about real data.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ampere.core.errors import AmpereError, ModelError, UsageError
from ampere.core.optimizers import OPTIMIZERS
from ampere.models.user_code import explain, find_function, guarded

from .result import Candidate, Trial, in_words
from .spaces import SearchSpace

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ampere.models.loading import LoadedModel


TRAINING, TESTING = 4000, 1000  # examples
PATTERNS, SHIFT, NOISE = 4, 3, 1.0  # a class; pixels; standard deviations of a pattern
KEYWORDS, KEYWORD_SHARE = 12, 0.15
COARSER = 4  # pixels over which a pattern changes


class Task(NamedTuple):
    train: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]


def make_task(example: Tensor, classes: int, words: int = 0, seed: int = 0) -> Task:
    """A task with inputs like the example, whose first dimension is the batch; `words` is the size of a vocabulary."""
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
    """Whether a task can be made with such inputs: channels of at most two dimensions, or a row of words."""
    import torch

    if not isinstance(example, torch.Tensor):
        return False
    if example.is_floating_point():
        return 2 <= example.dim() <= 4
    return example.dim() == 2 and example.dtype in (torch.int64, torch.int32)


def _images(torch: Any, shape: tuple[int, ...], labels: Tensor, classes: int, generator: Any) -> Tensor:
    """Channels with one or two dimensions; a series of rows is an image of one channel."""
    planes = (1,) * max(0, 3 - len(shape)) + shape
    size = tuple(planes[-2:])
    coarse = (classes * PATTERNS, planes[0], *(max(1, -(-p // COARSER)) for p in size))
    drawn = torch.randn(coarse, generator=generator)
    patterns = torch.nn.functional.interpolate(drawn, size=size, mode="bilinear", align_corners=False)
    patterns = patterns / patterns.std(dim=(1, 2, 3), keepdim=True)
    which = labels * PATTERNS + torch.randint(PATTERNS, labels.shape, generator=generator)
    shifts = torch.randint(-SHIFT, SHIFT + 1, (len(labels), 2), generator=generator)
    moved = [torch.roll(patterns[w], (int(y), int(x)), dims=(1, 2)) for w, (y, x) in zip(which, shifts, strict=True)]
    scale = 0.7 + 0.6 * torch.rand(len(labels), 1, 1, 1, generator=generator)
    noisy = scale * torch.stack(moved) + NOISE * torch.randn((len(labels), *planes), generator=generator)
    result: Tensor = noisy.reshape(len(labels), *shape)
    return result


def _texts(torch: Any, length: tuple[int, ...], labels: Tensor, classes: int, words: int, generator: Any) -> Tensor:
    keywords = torch.randint(words, (classes, KEYWORDS), generator=generator)
    chosen = torch.randint(KEYWORDS, (len(labels), *length), generator=generator)
    noise = torch.randint(words, (len(labels), *length), generator=generator)
    is_keyword = torch.rand((len(labels), *length), generator=generator) < KEYWORD_SHARE
    result: Tensor = torch.where(is_keyword, keywords[labels].gather(1, chosen), noise)
    return result


# Training a candidate.

# Called with a model and its candidate; returns its accuracy from 0 to 1, or (accuracy, number of test examples).
Train = Callable[["nn.Module", Candidate], Any]

TESTED_AT_ONCE = 250
EARLY = 0.25  # of a training, after which one at chance level may be stopped
CLIPPED_AT = 1.0  # so that one rate serves narrow and wide networks
DEVIATIONS = 3.0  # of binomial noise, within which an accuracy is at chance level
MADE_TASK = "a short training on a data set that Ampere makes"


class Diverged(Exception):
    """A loss that is not a number any more."""


def of_user(spec: str) -> Train:
    """The training function at `file.py:function`."""
    if ":" not in spec:
        raise UsageError(
            f"--train {spec} is not a function: write file.py:function, called as function(model, candidate)"
        )
    source, _, name = spec.rpartition(":")
    function = find_function(source, name)

    def train(model: nn.Module, candidate: Candidate) -> Any:
        with guarded(f"{name} in {source}"):
            return function(model, candidate)

    train.__name__ = _short_name(spec)
    return train


def on_made_task(space: SearchSpace, steps: int, seed: int, early: bool = False) -> tuple[Train, Chance]:
    """A training on the same examples for every candidate, `steps` steps of the original's batch, and its chance.

    With `early` its accuracy is also tested after a part of these steps.
    """
    original = space.build(space.original)
    task = _task(original, space.name, seed)
    examples = steps * space.network(space.original).batch
    labels = task.test[1]
    chance = Chance(float(labels.bincount().max()) / len(labels), len(labels))
    return lambda model, candidate: _trained(model, task, candidate, examples, seed, early), chance


def _task(original: LoadedModel, name: str, seed: int) -> Task:
    import torch

    example: Any
    [example] = original.inputs if isinstance(original.inputs, tuple) and len(original.inputs) == 1 else (None,)
    classes = _classes(original) if can_make(example) else None
    if classes is None:
        raise UsageError(
            f"{name} gives no scores of classes for one input of images, series or words: "
            "bring a training, --train file.py:function"
        )
    embeddings = [m for m in original.model.modules() if isinstance(m, torch.nn.Embedding)]
    return make_task(example, classes, embeddings[0].num_embeddings if embeddings else 0, seed)


def _classes(original: LoadedModel) -> int | None:
    """How many classes the model scores; None where its output is something else."""
    import torch

    inputs, model = original.inputs, original.model.eval()
    with torch.no_grad():
        scores = model(**inputs) if isinstance(inputs, dict) else model(*inputs)
    if not isinstance(scores, torch.Tensor) or scores.dim() != 2 or scores.shape[1] < 2:
        return None
    return int(scores.shape[1])


class Chance(NamedTuple):
    """The accuracy of guessing, and on how many examples accuracy is tested where that is known."""

    accuracy: float
    examples: int | None = None

    def explains(self, accuracy: float, examples: int | None = None) -> bool:
        """Whether guessing may be as accurate, within the binomial noise of the test."""
        examples = examples or self.examples
        noise = sqrt(self.accuracy * (1 - self.accuracy) / examples) if examples else 0.0
        return accuracy <= self.accuracy + DEVIATIONS * noise


def chance_of(space: SearchSpace) -> Chance | None:
    """Guessing one of the original's classes; None where its output has none."""
    classes = _classes(space.build(space.original))
    return Chance(1 / classes) if classes else None


def _trained(
    model: nn.Module, task: Task, candidate: Candidate, examples: int, seed: int, early: bool
) -> Generator[float, None, float]:
    """The accuracy at the end of a training; after a part of it too, where that is wanted."""
    import torch

    chosen = OPTIMIZERS[candidate.optimizer]
    optimizer = chosen.make("torch", model.parameters(), lr=chosen.usual_rate)
    generator = torch.Generator().manual_seed(seed)
    inputs, labels = task.train
    model.train()
    steps = max(1, round(examples / candidate.batch))
    for step in range(steps):
        if early and step == round(EARLY * steps) > 0:
            yield _tested(model, task)
            model.train()
        batch = torch.randint(len(labels), (candidate.batch,), generator=generator)
        loss = torch.nn.functional.cross_entropy(model(inputs[batch]), labels[batch])
        if not torch.isfinite(loss):
            raise Diverged(f"its loss became {float(loss)}")
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIPPED_AT)
        optimizer.step()
    return _tested(model, task)


def _tested(model: nn.Module, task: Task) -> float:
    import torch

    model.eval()
    with torch.no_grad():
        inputs, labels = task.test
        parts = zip(torch.split(inputs, TESTED_AT_ONCE), torch.split(labels, TESTED_AT_ONCE), strict=True)
        right = [model(x).argmax(1) == y for x, y in parts]
    return float(torch.cat(right).float().mean())


def tried(
    train: Train,
    space: SearchSpace,
    candidate: Candidate,
    seed: int,
    chance: Chance | None = None,
    stop_at_chance: bool = False,
) -> Trial:
    """The trial of a candidate. One that cannot be trained is a failed trial, and the search goes on.

    A training that yields accuracies on its way ends, with `stop_at_chance`, at the first that guessing explains.
    """
    import torch

    torch.manual_seed(seed)
    began = time.perf_counter()
    stopped = False
    try:
        score = train(space.build(candidate.arguments).model, candidate)
        if isinstance(score, Generator):
            score, stopped = _followed(score, name_of(train), chance if stop_at_chance else None)
    except Exception as error:
        failure = str(error) if isinstance(error, (AmpereError, Diverged)) else explain(error)
        return Trial(candidate, None, time.perf_counter() - began, failure)
    seconds, (score, examples) = time.perf_counter() - began, _with_examples(score)
    accuracy = _accuracy(score, name_of(train))
    if math.isnan(accuracy):
        return Trial(candidate, None, seconds, f"its accuracy is {accuracy}")
    at_chance = chance is not None and chance.explains(accuracy, examples)
    return Trial(candidate, accuracy, seconds, at_chance=at_chance, stopped_early=stopped)


def _followed(scores: Generator[Any, None, Any], name: str, chance: Chance | None) -> tuple[Any, bool]:
    """The score at the end of a training, or the first on its way that is at chance level and so stops it."""
    last: Any = None
    while True:
        try:
            last = next(scores)
        except StopIteration as end:
            last = last if end.value is None else end.value
            if last is None:
                raise ModelError(f"{name} yielded no accuracy: yield it while training, and return the last") from None
            return last, False
        accuracy, examples = _with_examples(last)
        if chance and chance.explains(_accuracy(accuracy, name), examples):
            scores.close()
            return last, True


def _with_examples(score: Any) -> tuple[Any, int | None]:
    if isinstance(score, tuple) and len(score) == 2 and isinstance(score[1], int) and score[1] > 0:
        return score
    return score, None


def _accuracy(score: Any, name: str) -> float:
    try:
        accuracy = float(score)
    except (TypeError, ValueError, RuntimeError):
        raise ModelError(
            f"{name} returned {type(score).__name__}, not a number: return the accuracy, from 0 to 1"
        ) from None
    if accuracy < 0 or accuracy > 1:
        raise ModelError(f"{name} returned {accuracy:g}, which is not an accuracy: return a share from 0 to 1")
    return accuracy


def refuse_if_none_trained(trials: list[Trial]) -> None:
    if trials and all(trial.accuracy is None for trial in trials):
        why = f"{in_words(trials[0].candidate.arguments)}: {trials[0].failure}"
        raise ModelError(
            f"none of {len(trials)} candidates could be trained ({why}): "
            "try another optimizer, or a training of your own with --train file.py:function"
        )


def name_of(train: str | Train | None) -> str:
    if train is None:
        return MADE_TASK
    return _short_name(train) if isinstance(train, str) else str(getattr(train, "__name__", type(train).__name__))


def _short_name(spec: str) -> str:
    return Path(spec.rpartition(":")[0]).name + ":" + spec.rpartition(":")[2]
