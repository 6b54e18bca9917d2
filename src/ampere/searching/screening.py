"""From a space to candidates that are each estimated: what is drawn, and how many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import numpy as np

from ampere.models.spaces import Arguments

from .candidates import Group, Prices, Rows
from .spaces import SearchSpace, Shape

IN_BULK, BY_THEMSELVES = 1_000_000, 300  # candidates, where nobody says how many
Report = Callable[[float, float, str], None]


def screen(
    space: SearchSpace, prices: Sequence[Prices], candidates: int | None, seed: int, report: Report
) -> list[Group]:
    """Every shape gets as many; one that has fewer networks is searched whole."""
    rng, groups = np.random.default_rng(seed), list[Group]()
    jobs = [(price, shape) for price in prices for shape in space.shapes]
    each = max(1, (candidates or IN_BULK) // max(1, len(jobs)))
    few = max(1, (candidates or BY_THEMSELVES) // max(1, len(jobs)))
    for done, (price, shape) in enumerate(jobs):
        report(done, len(jobs), f"shape {done + 1} of {len(jobs)}")
        group = price.opened(shape, space, drawn_widths(rng, shape, each))
        groups += [group] if group else price.listed(_few(rng, shape, few), space, report)
    if space.draw:
        count, own = (candidates or BY_THEMSELVES) // len(prices), Random(seed)
        arguments = [space.draw(own) for _ in range(max(1, count))]
        groups += [group for price in prices for group in price.listed(arguments, space, report)]
    return groups


def _few(rng: np.random.Generator, shape: Shape, count: int) -> list[Arguments]:
    return [shape.arguments([int(w) for w in widths]) for widths in drawn_widths(rng, shape, count)]


def drawn_widths(rng: np.random.Generator, shape: Shape, count: int) -> Rows:
    if shape.size <= count:
        sizes = [high - low + 1 for low, high in zip(shape.least, shape.largest, strict=True)]
        places = np.indices(sizes).reshape(len(sizes), -1).T if sizes else np.zeros((1, 0), dtype=np.int64)
        return places + np.array(shape.least, dtype=np.int64)
    pairs = zip(shape.least, shape.largest, strict=True)
    return np.stack([rng.integers(low, high + 1, count) for low, high in pairs], axis=1)
