"""Grey images of two classes, as plain arrays: drawn by Ampere, or photographs that the user has."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SIZE = 28  # pixels a side, as the 5-layer CNN takes them
TRAINED, TESTED = 12_000, 2_000

Pixels = NDArray[np.float32]  # (images, SIZE, SIZE)
Labels = NDArray[np.int64]  # 0 or 1


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
    """With the folder of CelebA, gender as in the paper; without one, whether a drawn face smiles."""
    if celeba:
        from pathlib import Path

        from .celeba import load

        return Task(*load(Path(celeba), trained, tested))
    from .faces import draw

    return Task(draw(trained, 2 * seed), draw(tested, 2 * seed + 1))


def name_of(celeba: str) -> str:
    return "celeba" if celeba else "faces"
