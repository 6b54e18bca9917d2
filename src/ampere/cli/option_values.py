"""What people write after an option, as typed values. Each refusal says what would be right."""

from __future__ import annotations

import json
import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ampere.core.errors import UsageError
from ampere.core.setup import OPTIMIZERS, SHORT_DTYPES
from ampere.core.units import parse_energy, parse_memory, parse_power, parse_seconds

T = TypeVar("T")

DTYPE_ALIASES = {**SHORT_DTYPES, "f32": "float32"}


def option_type(parse: Callable[[str], T]) -> Callable[[str], T]:
    """A parser of the library as a `type` of argparse, which puts the option's name before the message."""

    def read(text: str) -> T:
        try:
            return parse(text)
        except UsageError as error:
            raise ArgumentTypeError(str(error)) from None

    return read


seconds = option_type(parse_seconds)


def seconds_or_zero(text: str) -> float:
    return 0.0 if text.strip() in ("0", "0s") else seconds(text)


watts = option_type(parse_power)
memory = option_type(parse_memory)


@option_type
def energy(text: str) -> str:
    """An amount of energy, checked and kept as it is written."""
    parse_energy(text)
    return text


def count(text: str) -> int:
    try:
        number = int(text.replace("_", "").replace(",", ""))
    except ValueError:
        number = 0
    if number < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return number


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a number") from None


def count_or_zero(text: str) -> int:
    return 0 if text.strip() == "0" else count(text)


def counts(text: str) -> list[int]:
    return [count(part) for part in text.split(",")]


def share(text: str) -> float:
    """`3%` or `0.03`."""
    written = text.strip()
    try:
        number = float(written.removesuffix("%")) / (100 if written.endswith("%") else 1)
    except ValueError:
        number = 0.0
    if not 0 < number < 1:
        raise ArgumentTypeError(f"{text!r} is not a share between 0 and 1: write it as 3% or 0.03")
    return number


def increase(text: str) -> float:
    """A share that may also be nothing."""
    return 0.0 if text.strip() in ("0", "0%") else share(text)


def confidence(text: str) -> float:
    probability = share(text)
    if probability < 0.5:
        raise ArgumentTypeError(f"{text!r} is less than an even chance: give one from 50% to 99.9%")
    return probability


def optimizer(text: str) -> str:
    return text.strip().lower()


def optimizers(text: str) -> list[str]:
    names = [optimizer(part) for part in text.split(",")]
    for name in names:
        if name not in OPTIMIZERS:
            raise ArgumentTypeError(f"there is no optimizer {name!r}: choose from {', '.join(OPTIMIZERS)}")
    return names


def dtype(text: str) -> str:
    name = text.strip().lower().removeprefix("torch.")
    return DTYPE_ALIASES.get(name, name)


def runtime(text: str) -> str:
    from ampere.runtimes.table import names

    if text not in names():
        raise ArgumentTypeError(f"there is no runtime {text!r}: the runtimes are {', '.join(names())}")
    return text


def runtimes(text: str) -> tuple[str, ...]:
    names = tuple(runtime(name.strip()) for name in text.split(","))
    if len(set(names)) < len(names):
        raise ArgumentTypeError(f"{text!r} names a runtime twice: name each once")
    return names


def factory_argument(text: str) -> tuple[str, Any]:
    """`width=32`: a name, and a value that is JSON where it can be read as JSON, else text."""
    name, equals, written = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise ArgumentTypeError(f"{text!r} is not NAME=VALUE: write it as in --arg width=32")
    try:
        return name.strip(), json.loads(written)
    except ValueError:
        return name.strip(), written


QUANTITIES = (
    "--battery",
    "--idle",
    "--seconds",
    "--touch",
    "--budget",
    "--watts-per-core",
    "--compile-limit",
    "--patience",
    "--power",
    "--memory",
    "--price",
    "--max-increase",
    "--grid",
)
_NEGATIVE = re.compile(r"-[0-9.]+[a-zA-Zµ/]+")
_NUMBER, _UNIT = re.compile(r"[0-9][0-9._]*"), re.compile(r"%|[a-zA-Zµ/]+(@[0-9.]+ *V?)?")


def joined_quantities(words: Sequence[str]) -> list[str]:
    """The words with `--battery 15 Wh` as `--battery 15Wh`: a unit belongs to the number before it."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] in QUANTITIES and _NEGATIVE.fullmatch(word):
            joined[-1] += f"={word}"  # else argparse takes it for an option
            continue
        quantity = len(joined) > 1 and joined[-2] in QUANTITIES and _NUMBER.fullmatch(joined[-1])
        if quantity and _UNIT.fullmatch(word):
            joined[-1] += word
        else:
            joined.append(word)
    return joined
