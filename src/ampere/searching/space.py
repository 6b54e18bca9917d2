"""What can be searched: shapes whose widths are open, or networks that are drawn one by one.

shape    all that is fixed: depth, kernels, batch         widths    what is open, each from a least to a largest
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from ampere.errors import UsageError
from ampere.models.space import Arguments
from ampere.network import Network

if TYPE_CHECKING:
    from ampere.models.loading import LoadedModel

Widths = Sequence[int]


@dataclass(frozen=True)
class Shape:
    """Networks that differ in their widths only."""

    least: tuple[int, ...]
    largest: tuple[int, ...]
    arguments: Callable[[Widths], Arguments]  # of the factory, without the batch

    @property
    def size(self) -> int:
        """How many networks it has."""
        found = 1
        for low, high in zip(self.least, self.largest, strict=True):
            found *= high - low + 1
        return found

    def with_(self, fixed: Mapping[str, Any]) -> Shape:
        return Shape(self.least, self.largest, lambda widths: {**fixed, **self.arguments(widths)})


@dataclass(frozen=True)
class SearchSpace:
    """Either shapes or a way to draw single networks; each network is the arguments of one factory."""

    name: str
    original: Arguments  # what shares of its cost refer to
    batches: tuple[int, ...]
    shapes: tuple[Shape, ...]  # for every batch
    draw: Callable[[Random], Arguments] | None
    build: Callable[[Arguments], LoadedModel]
    network: Callable[[Arguments], Network]


def checked_batches(batches: Sequence[int], original: int) -> tuple[int, ...]:
    wrong = [b for b in batches if not isinstance(b, int) or b < 1]
    if wrong:
        raise UsageError(f"a batch of {wrong[0]!r} trains nothing: give 1 or more")
    return tuple(dict.fromkeys(batches)) or (original,)
