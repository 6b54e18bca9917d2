"""CelebA for those who have it: a folder with `img_align_celeba/` and `list_attr_celeba.txt`, as it is handed out."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from random import Random

import numpy as np

from ampere.core.errors import RuntimeMissingError, UsageError

from .images import SIZE, Images

ATTRIBUTE = "Male"  # the paper's
PHOTOGRAPHS, TABLE = "img_align_celeba", "list_attr_celeba.txt"


def load(folder: Path, trained: int, tested: int, attribute: str = ATTRIBUTE) -> tuple[Images, Images]:
    """The first photographs to learn from and the last to be tested on, as CelebA itself divides them."""
    if importlib.util.find_spec("PIL") is None:
        raise RuntimeMissingError("photographs need Pillow: pip install 'ampere-energy[plot]'")
    rows = labels_in(folder, attribute)
    if len(rows) < trained + tested:
        raise UsageError(
            f"{folder} tells of {len(rows)} photographs, but {trained + tested} are needed: get all of CelebA"
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
