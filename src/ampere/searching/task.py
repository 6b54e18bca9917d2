"""A classification made by the project, for a search whose user brings no data: each class has a few smooth patterns,
shifted, scaled and under noise; for tokens, words that are more frequent in it.

It tells networks apart that learn little from those that learn much. It says nothing of anybody's real data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor

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
