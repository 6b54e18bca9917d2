"""A function of the user's as a space: `--vary channels=8..64 --vary kernel=3,5`.

A range is a width that is open; every combination of the listed values is a shape.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from ampere.errors import UsageError
from ampere.models.loading import LoadedModel, load_model
from ampere.models.space import Arguments
from ampere.network import Network
from ampere.profiles import strict_json

from .space import SearchSpace, Shape

MOST_SHAPES = 64
_RANGE = re.compile(r"([0-9]+)\.\.([0-9]+)")
_REMEDY = "write --vary width=8..64 for a range, --vary kernel=3,5 for a list"

Values = range | tuple[Any, ...]


def read_axis(text: str) -> tuple[str, Values]:
    """`width=8..64` or `kernel=3,5`."""
    name, _, values = (part.strip() for part in text.partition("="))
    if not name.isidentifier() or not values:
        raise UsageError(f"--vary {text} names no argument and its values: {_REMEDY}")
    if not (found := _RANGE.fullmatch(values)):
        return name, tuple(_value(part.strip()) for part in values.split(","))
    low, high = int(found[1]), int(found[2])
    if not 1 <= low < high:
        raise UsageError(f"--vary {text} is no range from 1 or more to a larger number: {_REMEDY}")
    return name, range(low, high + 1)


def _value(text: str) -> Any:
    try:
        return strict_json.loads(text)
    except ValueError:
        return text


def of_function(spec: str, axes: Mapping[str, Values], input: str | None = None) -> SearchSpace:
    """The original is what the function makes when it is called without any of them."""
    if not axes:
        raise UsageError(f"what of {spec} may change? {_REMEDY}, where both are arguments of the function")
    ranges = {name: values for name, values in axes.items() if isinstance(values, range)}
    lists = {name: values for name, values in axes.items() if not isinstance(values, range)}
    chosen = [dict(zip(lists, values, strict=True)) for values in product(*lists.values())]
    if len(chosen) > MOST_SHAPES:
        raise UsageError(f"the lists of --vary combine to {len(chosen)} shapes, more than {MOST_SHAPES}: shorten them")
    original = _network(load_model(spec, input))
    return SearchSpace(
        spec,
        {},
        (original.batch,),
        tuple(_shape(ranges, fixed) for fixed in chosen),
        None,
        lambda arguments: load_model(spec, input, **arguments),
        lambda arguments: _network(load_model(spec, input, **arguments)),
    )


def _shape(ranges: Mapping[str, range], fixed: Arguments) -> Shape:
    least, largest = (tuple(values[end] for values in ranges.values()) for end in (0, -1))

    def arguments(widths: Sequence[int]) -> Arguments:
        return {**fixed, **{name: int(width) for name, width in zip(ranges, widths, strict=True)}}

    return Shape(least, largest, arguments)


def _network(loaded: LoadedModel) -> Network:
    from ampere.tracing import trace

    return trace(loaded.model, loaded.inputs, name=loaded.name)
