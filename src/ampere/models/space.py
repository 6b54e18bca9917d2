"""A space: networks that share a factory and differ in its arguments. Known without importing torch."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

Arguments = dict[str, Any]  # plain JSON: numbers, words, lists and objects of them


@dataclass(frozen=True)
class Space:
    name: str
    title: str
    factory: str  # module:function
    default: Mapping[str, Any]  # the original network
    sample: Callable[[Random], Arguments]

    def arguments(self, changed: Mapping[str, Any]) -> Arguments:
        """The original's arguments with some of them changed."""
        return {**self.default, **changed}


def widths_up_to(rng: Random, original: list[int]) -> list[int]:
    """Each width anywhere from 1 to the original's, as the paper samples."""
    return [rng.randint(1, width) for width in original]


def log_uniform(rng: Random, low: int, high: int) -> int:
    """An integer whose logarithm is uniform: as many below 10 as between 10 and 100."""
    return min(high, int(math.exp(rng.uniform(math.log(low), math.log(high + 1)))))


def draw_until(draw: Callable[[], Arguments], accept: Callable[[Arguments], bool]) -> Arguments:
    while True:
        arguments = draw()
        if accept(arguments):
            return arguments
