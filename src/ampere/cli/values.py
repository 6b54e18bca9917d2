"""What people write after an option, read strictly: each refusal says what would be right."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError


def seconds(text: str) -> float:
    return _positive(text.strip().removesuffix("s"), text, "a positive number of seconds, such as 15")


def watts(text: str) -> float:
    return _positive(text.strip().removesuffix("W"), text, "a positive number of watts, such as 5")


def count(text: str) -> int:
    try:
        number = int(text.replace("_", "").replace(",", ""))
    except ValueError:
        number = 0
    if number < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return number


def count_or_zero(text: str) -> int:
    return 0 if text.strip() == "0" else count(text)


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


def share(text: str) -> float:
    """`3%` or `0.03`."""
    percent = text.strip().endswith("%")
    number = _positive(text.strip().removesuffix("%"), text, "a share such as 3% or 0.03") / (100 if percent else 1)
    if number >= 1:
        raise ArgumentTypeError(f"{text!r} is no share below the whole: write it as 3% or 0.03")
    return number


def _positive(digits: str, text: str, wanted: str) -> float:
    try:
        number = float(digits)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise ArgumentTypeError(f"{text!r} is not {wanted}")
    return number


def confidence(text: str) -> float:
    probability = share(text)
    if probability < 0.5:
        raise ArgumentTypeError(f"{text!r} is less than an even chance: give one from 50% to 99.9%")
    return probability
