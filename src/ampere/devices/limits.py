"""What no device can do: a block whose figures are outside physical limits is not kept, whoever answers it."""

from __future__ import annotations

import math
from dataclasses import fields

from .block import Block

MOST_WATTS = 20e3  # of a machine with eight large accelerators
SLACK_SECONDS = 0.1  # two clocks
MEDIANS = 2.0  # figures are medians of windows: of half of them at least as much is true
DISAGREEING = 5.0  # a ratio is the median of pairs, and not that of two medians


def impossible(block: Block, cores: int, waited_seconds: float) -> str | None:
    """Why this cannot have happened on so many cores while the host waited so long; None where it can."""
    wrong = [name for name, value in _figures(block).items() if not math.isfinite(value) or value < 0]
    if wrong:
        return f"{wrong[0]} is {_figures(block)[wrong[0]]:g}"
    if not block.seconds > 0 or block.iterations < 1:
        return f"{block.iterations} iterations of {block.seconds:g} s each"
    if block.cpu_seconds > MEDIANS * cores * block.seconds + SLACK_SECONDS / block.iterations:
        return f"{block.cpu_seconds:g} CPU seconds in {block.seconds:g} s on {cores} cores"
    # Without joules the host reads the meter itself, or only time was asked for.
    if block.joules is not None and not 0 < block.joules <= MOST_WATTS * block.seconds and block.cpu_seconds:
        return f"{block.joules:g} J in {block.seconds:g} s"
    if block.elapsed > 1.1 * waited_seconds + SLACK_SECONDS:
        return f"{block.elapsed:g} s of work while the host waited {waited_seconds:g} s"
    if block.iterations * block.seconds > MEDIANS * (waited_seconds + SLACK_SECONDS):
        return f"{block.iterations} iterations of {block.seconds:g} s while the host waited {waited_seconds:g} s"
    return _disagreement(block)


def _disagreement(block: Block) -> str | None:
    if block.ratio is None or not block.yardstick_seconds or not block.cpu_seconds:
        return None
    off = block.ratio * block.yardstick_seconds / block.cpu_seconds
    if 1 / DISAGREEING <= off <= DISAGREEING:
        return None
    return f"a ratio of {block.ratio:g} where the seconds say {block.cpu_seconds / block.yardstick_seconds:g}"


def _figures(block: Block) -> dict[str, float]:
    named = {field.name: getattr(block, field.name) for field in fields(block)}
    return {name: value for name, value in named.items() if isinstance(value, (int, float))}
