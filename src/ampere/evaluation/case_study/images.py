"""Grey images of two classes: faces drawn by Ampere that smile or do not, or the user's own copy of CelebA.

Drawn heads differ in place, size, tilt, shape and light; brows, noses and eyes are their own; something may cover a
part; pixels are noisy. The smile is the curve of a thin mouth, from broad to hardly there: some cannot be recognised.

CelebA is a folder with `img_align_celeba/` and `list_attr_celeba.txt`, as it is distributed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ampere.core.errors import RuntimeMissingError, UsageError

SIZE = 28  # pixels a side, as the 5-layer CNN takes them
TRAINED, TESTED = 12_000, 2_000  # images
NOISE = 0.1
FAINTEST, BROADEST = 0.05, 0.6  # how far the corners of the mouth are above or below its middle
MIDDLE, SPREAD = 0.4, 0.25  # of all pixels, about
CHUNK = 2000
ATTRIBUTE = "Male"  # the paper's
PHOTOGRAPHS, TABLE = "img_align_celeba", "list_attr_celeba.txt"

Pixels = NDArray[np.float32]  # (images, SIZE, SIZE)
Labels = NDArray[np.int64]  # 0 or 1
Field = NDArray[np.float32]
Vary = Callable[[float, float], Field]  # a number for each face, between two


class Images(NamedTuple):
    pixels: Pixels
    labels: Labels

    def tensors(self) -> tuple[Any, Any]:
        import torch

        return torch.from_numpy(self.pixels[:, None]), torch.from_numpy(self.labels)


class Task(NamedTuple):
    """What is learnt, and what it is tested on."""

    trained: Images
    tested: Images


def task(celeba: str, seed: int, trained: int = TRAINED, tested: int = TESTED) -> Task:
    """The task: gender in a folder of CelebA as in the paper; without one, whether a drawn face smiles."""
    if celeba:
        return Task(*load_celeba(Path(celeba), trained, tested))
    return Task(draw_faces(trained, 2 * seed), draw_faces(tested, 2 * seed + 1))


def name_of(celeba: str) -> str:
    return "celeba" if celeba else "faces"


def draw_faces(count: int, seed: int) -> Images:
    rng = np.random.default_rng([seed, 28])
    labels = rng.integers(0, 2, count)
    parts = [_faces(rng, labels[i : i + CHUNK]) for i in range(0, count, CHUNK)]
    return Images(np.concatenate(parts).astype(np.float32), labels.astype(np.int64))


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


def load_celeba(folder: Path, trained: int, tested: int, attribute: str = ATTRIBUTE) -> tuple[Images, Images]:
    """The first photographs to learn from and the last to be tested on, as CelebA itself divides them."""
    if importlib.util.find_spec("PIL") is None:
        raise RuntimeMissingError("photographs need Pillow: pip install 'ampere-energy[plot]'")
    rows = labels_in(folder, attribute)
    if len(rows) < trained + tested:
        raise UsageError(
            f"{folder} lists {len(rows)} photographs, but {trained + tested} are needed: get all of CelebA"
        )
    return _read(folder, Random(0).sample(rows[:-tested], trained)), _read(folder, rows[-tested:])


def labels_in(folder: Path, attribute: str) -> list[tuple[str, int]]:
    """Each photograph's name, and whether it has the attribute."""
    try:
        _, names, *lines = (folder / TABLE).read_text().splitlines()
        column = names.split().index(attribute) + 1
        return [(cells[0], int(cells[column] == "1")) for cells in map(str.split, lines) if cells]
    except OSError as error:
        raise UsageError(
            f"{folder} has no readable {TABLE} ({error.strerror}): give the folder that holds it and {PHOTOGRAPHS}/"
        ) from None
    except (ValueError, IndexError):
        raise UsageError(f"{folder / TABLE} is no table of CelebA's with a column {attribute}: get it again") from None


def _read(folder: Path, rows: list[tuple[str, int]]) -> Images:
    from PIL import Image

    pixels = np.empty((len(rows), SIZE, SIZE), dtype=np.float32)
    for i, (name, _) in enumerate(rows):
        path = folder / PHOTOGRAPHS / name
        try:
            with Image.open(path) as photograph:
                pixels[i] = np.asarray(photograph.convert("L").resize((SIZE, SIZE)), dtype=np.float32) / 128 - 1
        except OSError as error:
            raise UsageError(f"{path} cannot be read ({error}): get CelebA's {PHOTOGRAPHS} again") from None
    return Images(pixels, np.array([label for _, label in rows], dtype=np.int64))
