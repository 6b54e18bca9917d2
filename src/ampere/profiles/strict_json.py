"""JSON as Ampere reads and writes it: finite numbers, no repeated keys, bounded in size. Failures are ValueError.

Files may come from strangers, so nothing here trusts the text: how many values it holds is counted before
the parser builds them, because a megabyte of `[],[],` becomes thirty megabytes of lists.
"""

import json
import math
from typing import Any, NoReturn

MOST_VALUES = 1_500_000
LONGEST_INTEGER = 30
DEEPEST = 32


def dumps(value: Any) -> str:
    """One value, one text: keys sorted, no spaces, ASCII only. What could not be read again is not written."""
    try:
        text = json.dumps(value, allow_nan=False, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"it holds what JSON cannot say ({error})") from None
    loads(text)
    return text


def loads(text: str) -> Any:
    if sum(map(text.count, ",:[{")) > MOST_VALUES:
        raise ValueError(f"it holds more than {MOST_VALUES:,} values")
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_float=_finite, parse_int=_short, parse_constant=_no_constant
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    _refuse_depth(value)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("it says one key twice")
    return record


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:20]} is too large")
    return number


def _short(text: str) -> int:
    if len(text) > LONGEST_INTEGER:
        raise ValueError(f"it holds an integer of {len(text)} digits")
    return int(text)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _refuse_depth(value: Any) -> None:
    """Level by level, so that the depth of the value costs no stack."""
    level = [[value]]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inside(outer) if type(inner) in (dict, list)]
        if not level:
            return
    raise ValueError(f"it is nested deeper than {DEEPEST} levels")


def _inside(value: Any) -> Any:
    return value.values() if type(value) is dict else value
