"""The images of the case study: scikit-learn's digits, the user's own data sets, or faces drawn by Ampere.

Drawn heads differ in place, size, tilt, shape and light; brows, noses and eyes are their own; something may cover a
part; pixels are noisy. The smile is the curve of a thin mouth, from broad to hardly there: some cannot be recognised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ampere.core.errors import UsageError
from ampere.models.datasets import DIGITS, Dataset, Examples, has_digits, load

SIZE = 28  # pixels a side of a drawn face
TRAINED, TESTED = 12_000, 2_000  # images at most
NOISE = 0.1
FAINTEST, BROADEST = 0.05, 0.6  # how far the corners of the mouth are above or below its middle
MIDDLE, SPREAD = 0.4, 0.25  # of all pixels, about
CHUNK = 2000
FACES = "faces"

Field = NDArray[np.float32]
Vary = Callable[[float, float], Field]  # a number for each face, between two


class Kind(NamedTuple):
    """What a network must take and give to classify such images."""

    channels: int
    size: int
    classes: int


KINDS = {
    DIGITS: Kind(1, 28, 10),
    "mnist": Kind(1, 28, 10),
    "cifar10": Kind(3, 32, 10),
    "celeba": Kind(3, 64, 2),
    FACES: Kind(1, SIZE, 10),  # two of the ten are used
}


def chosen(data: str) -> str:
    """What the user asked for; else digits, which are real, or drawn faces where scikit-learn is not installed."""
    return data or (DIGITS if has_digits() else FACES)


def name_of(data: str) -> str:
    return chosen(data).partition(":")[0]


def kind_of(data: str) -> Kind:
    name = name_of(data)
    if name not in KINDS:
        raise UsageError(f"{data}: the case study classifies images: choose {', '.join(KINDS)}")
    return KINDS[name]


def task(data: str, seed: int, trained: int = TRAINED, tested: int = TESTED) -> Dataset:
    """What is learnt and tested on, at most so many images; gender in CelebA as in the paper, smiles in drawn faces."""
    kind = kind_of(data)
    if name_of(data) == FACES:
        return Dataset(draw_faces(trained, 2 * seed), draw_faces(tested, 2 * seed + 1), kind.classes)
    return load(chosen(data), trained, tested, seed)


def draw_faces(count: int, seed: int) -> Examples:
    rng = np.random.default_rng([seed, 28])
    labels = rng.integers(0, 2, count)
    parts = [_faces(rng, labels[i : i + CHUNK]) for i in range(0, count, CHUNK)]
    return Examples(np.concatenate(parts).astype(np.float32)[:, None], labels.astype(np.int64))


def _faces(rng: np.random.Generator, smiles: NDArray[np.int64]) -> Field:
    count = len(smiles)

    def vary(low: float, high: float) -> Field:
        return rng.uniform(low, high, (count, 1, 1)).astype(np.float32)

    across, down = _coordinates(vary(-0.15, 0.15), vary(-0.15, 0.15), vary(-0.25, 0.25), vary(0.85, 1.25))
    light = vary(0.1, 0.5) + vary(-0.15, 0.15) * across + vary(-0.15, 0.15) * down
    head = _inside((across / vary(0.6, 0.8)) ** 2 + (down / vary(0.75, 0.95)) ** 2 - 1, 0.1)
    picture = light * (1 - head) + (light + vary(0.2, 0.5)) * head
    for side in (-1, 1):
        eye = ((across - side * vary(0.22, 0.34)) / 0.09) ** 2 + ((down + vary(0.15, 0.3)) / vary(0.04, 0.09)) ** 2
        brow = ((across - side * 0.28) / 0.15) ** 2 + (
            (down + vary(0.35, 0.5) + side * vary(-0.2, 0.2) * across) / 0.04
        ) ** 2
        picture -= vary(0.2, 0.5) * np.exp(-eye) + vary(0.0, 0.4) * np.exp(-brow)
    picture -= vary(0.0, 0.25) * np.exp(-((across / 0.06) ** 2) - ((down - 0.08) / 0.15) ** 2)
    picture -= vary(0.3, 0.6) * _mouth(across, down, vary, smiles)
    picture += _cover(across, down, vary)
    noisy: Field = picture + rng.normal(0, NOISE, picture.shape).astype(np.float32)
    return (noisy - MIDDLE) / SPREAD


def _coordinates(x: Field, y: Field, tilt: Field, size: Field) -> tuple[Field, Field]:
    """The coordinates of each pixel in each face's own frame, in which the head is about 1 wide."""
    row = np.linspace(-1, 1, SIZE, dtype=np.float32)
    across, down = (row[None, None, :] - x) / size, (row[None, :, None] - y) / size
    return across * np.cos(tilt) + down * np.sin(tilt), down * np.cos(tilt) - across * np.sin(tilt)


def _mouth(across: Field, down: Field, vary: Vary, smiles: NDArray[np.int64]) -> Field:
    width = vary(0.25, 0.45)
    bend = vary(FAINTEST, BROADEST) * np.where(smiles, 1, -1)[:, None, None]
    curve = vary(0.35, 0.5) - bend * ((across / width) ** 2 - 0.5) * 0.5
    line: Field = np.exp(-(((down - curve) / 0.08) ** 2)) * _inside(np.abs(across) / width - 1, 0.1)
    return line


def _cover(across: Field, down: Field, vary: Vary) -> Field:
    """A bar somewhere, over a third of the faces."""
    there = vary(0, 1) < 1 / 3
    bar: Field = there * vary(-0.5, 0.5) * _inside(np.abs(across * vary(-1, 1) + down - vary(-1, 1)) - 0.1, 0.05)
    return bar


def _inside(distance: NDArray[Any], edge: float) -> Field:
    """1 where a distance is negative, 0 where it is positive, soft between."""
    soft = 1 / (1 + np.exp(np.clip(distance / (edge / 4), -30, 30)))
    return soft.astype(np.float32)
