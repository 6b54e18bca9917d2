"""Inputs as people write them: `10x1x28x28`, `8x32:int64<1000`, several separated by commas.

Batches of several shapes are separated by `|`, each with how often it occurs: `3*8x32 | 1*8x64`.
"""

import re

from ampere.core.errors import UsageError
from ampere.core.network import InputSpec

_PATTERN = re.compile(r"(?P<shape>\d+(?:x\d+)*)(?::(?P<dtype>[a-z]+\d*))?(?:<(?P<high>\d+))?")
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
_REMEDY = "write shapes as 10x1x28x28 or 8x32:int64<1000, several separated by commas"


def parse_shapes(text: str) -> list[tuple[float, str]]:
    """Each shape of batch with its share of the iterations; one shape has all of them."""
    found = []
    for part in text.split("|"):
        weight, star, shape = part.rpartition("*")
        found.append((_weight(weight.strip(), part) if star else 1.0, shape.strip()))
    total = sum(weight for weight, _ in found)
    return [(weight / total, shape) for weight, shape in found]


def _weight(text: str, part: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = 0.0
    if not 0 < weight < 1e12:
        raise UsageError(f"{part.strip()!r} has no weight above 0: write 3*8x32 | 1*8x64, three to one")
    return weight


def parse_input(text: str) -> list[InputSpec]:
    return [_parse(part.strip()) for part in text.split(",")]


def _parse(text: str) -> InputSpec:
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise UsageError(f"input {text!r} is no shape: {_REMEDY}")
    shape = tuple(int(n) for n in match["shape"].split("x"))
    high = int(match["high"]) if match["high"] else None
    dtype = match["dtype"] or ("float32" if high is None else "int64")
    _refuse(text, shape, dtype, high)
    return InputSpec(shape, dtype, high)


def _refuse(text: str, shape: tuple[int, ...], dtype: str, high: int | None) -> None:
    if dtype not in DTYPES:
        raise UsageError(f"input {text!r} has the unknown type {dtype}: use one of {', '.join(DTYPES)}")
    if 0 in shape:
        raise UsageError(f"input {text!r} has a dimension of 0: every dimension, the batch first, must be 1 or more")
    if high is not None and (high < 1 or "int" not in dtype):
        raise UsageError(f"input {text!r} has a limit that fits no {dtype}: a limit is 1 or more and for whole numbers")
