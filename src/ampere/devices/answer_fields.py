"""Checks of a worker's answers: nothing that a worker says is used before every field has its type and range.

line -> parse_answer -> result or error -> check_fields: types and ranges -> answers.impossible: clock and cores
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ampere.core.errors import DeviceError
from ampere.core.protocol import MOST_LINE_BYTES, QUICKEST_BEAT, SLOWEST_BEAT
from ampere.core.setup import AUTO, CPU, find_on

CHECK_IT = "check the worker with `ampere conformance`"


class BrokenProtocol(DeviceError):
    """A worker that does not keep to the protocol: wrong ids, endless lines, floods."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the worker broke the protocol: {what}; {CHECK_IT}")


class Unusable(DeviceError):
    """An answer of which nothing is used: a field is missing, has the wrong type or is out of its range."""

    def __init__(self, do: str, what: str) -> None:
        super().__init__(f"the worker's answer to {do} is unusable: {what}; {CHECK_IT}")
        self.what = what


# Lines.


def parse_answer(line: bytes) -> dict[str, Any] | None:
    """The answer in a line; None in a line of text, as a shell prints at login. BrokenProtocol for any other object."""
    if len(line) > MOST_LINE_BYTES:
        raise BrokenProtocol(f"it sent a line of more than {MOST_LINE_BYTES} bytes")
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        raise BrokenProtocol(f"it sent what is not JSON, {_short(line)}") from None
    error, right_id = answer.get("error"), "id" in answer and type(answer["id"]) in (int, type(None))
    if not right_id or ("result" in answer) == ("error" in answer):
        raise BrokenProtocol(f"an answer has an id and either a result or an error, not {_short(answer)}")
    if not isinstance(answer.get("result", {}), dict):
        raise BrokenProtocol(f"a result is an object, not {_short(answer['result'])}")
    if "error" in answer and not (isinstance(error, dict) and all(isinstance(error.get(n), str) for n in ERROR)):
        raise BrokenProtocol(f"an error has a type and a message, not {_short(error)}")
    return answer


ERROR = ("type", "message")
_CONTROL = frozenset(map(chr, (*range(32), *range(127, 160))))  # a terminal obeys these


def _is_text(value: Any, most: int = 200) -> bool:
    return isinstance(value, str) and len(value) <= most and not _CONTROL.intersection(value)


def _short(value: Any) -> str:
    try:
        return f"{value!r:.60}"
    except (ValueError, RecursionError):  # a whole number of many thousand digits, or lists many levels deep
        return f"a {type(value).__name__}"


# Fields: what each must be.


class Field(NamedTuple):
    """What a value must be, in words and as a test of it."""

    expected: str
    fits: Callable[[Any], bool]


def number(low: float, high: float) -> Field:
    return Field(f"a number from {low:g} to {high:g}", lambda v: type(v) in (int, float) and low <= v <= high)


def whole(low: int, high: int) -> Field:
    return Field(f"a whole number from {low:g} to {high:g}", lambda v: type(v) is int and low <= v <= high)


def text(most: int = 200) -> Field:
    return Field(f"a text of at most {most} characters", lambda v: _is_text(v, most))


def list_of(field: Field, most: int) -> Field:
    def fits(value: Any) -> bool:
        return isinstance(value, list) and len(value) <= most and all(map(field.fits, value))

    return Field(f"a list of at most {most}, each {field.expected}", fits)


def by_name(field: Field, most: int = 100) -> Field:
    def fits(value: Any) -> bool:
        return (
            isinstance(value, dict) and len(value) <= most and all(_is_text(n) and field.fits(value[n]) for n in value)
        )

    return Field(f"an object of at most {most}, each {field.expected}", fits)


def either(*fields: Field) -> Field:
    return Field(" or ".join(f.expected for f in fields), lambda v: any(f.fits(v) for f in fields))


def _is_accelerator(value: Any) -> bool:
    """Texts and numbers; `on` names a processor, and what is computed with is a number."""
    if not by_name(either(NULL, text(), FINITE, TRUTH), 20).fits(value):
        return False
    try:
        named = find_on(str(value.get("on") or "")) not in (AUTO, CPU)
    except ValueError:
        return False
    numbers = (value.get(name) for name in ("memory_bytes", "power_limit_watts"))
    return named and all(number is None or FINITE.fits(number) for number in numbers)


NULL = Field("null", lambda v: v is None)
ANY_TEXT = Field("a text", lambda v: isinstance(v, str))
MACHINE_ID = Field(
    "letters and digits", lambda v: isinstance(v, str) and re.fullmatch("[A-Za-z0-9]{1,64}", v) is not None
)
FINITE = Field("a finite number", lambda v: type(v) in (int, float) and -LARGEST <= v <= LARGEST)
ACCELERATOR = Field("an object of texts and numbers with a processor's name as on", _is_accelerator)
TRUTH = Field("true or false", lambda v: isinstance(v, bool))
LARGEST = 1.7e308
LARGE = 1e15
SECONDS = number(0, 1e7)
MOMENT = number(-LARGE, LARGE)  # by a clock with any beginning
NAMES = list_of(text(), 1000)
MOST_WINDOWS = 200_000

WINDOW = (
    ("iterations", whole(1, 10**9)),
    ("wall seconds", SECONDS),
    ("busy seconds", SECONDS),
    ("joules", either(NULL, number(0, 1e12))),
    ("page faults", whole(0, 10**15)),
    ("began", either(NULL, MOMENT)),
)
REQUIRED: dict[str, dict[str, Field]] = {
    "hello": {
        "protocol": whole(1, 10**6),
        "system": text(),
        "machine": text(),
        "cpu": text(),
        "cores": whole(1, 10**5),
        "runtimes": by_name(either(NULL, text())),
    },
    "meter": {"name": text(), "measured": TRUTH, "scope": text(1000)},
    "block": {
        "parameters": whole(0, 10**15),
        "loss": list_of(either(NULL, FINITE), 2),
        "elapsed_seconds": SECONDS,
        "conditions": by_name(FINITE),
        "flags": NAMES,
    },
    "yardstick": {"busy_seconds": SECONDS, "wall_seconds": SECONDS, "steps": whole(1, 10**9)},
    "load": {"began": MOMENT, "ends": list_of(MOMENT, 10_000)},
    "counter": {"name": text(), "problem": either(NULL, ANY_TEXT)},
    "check": {"problem": either(NULL, ANY_TEXT)},
}
OPTIONAL: dict[str, dict[str, Field]] = {
    "hello": {
        "worker": text(),
        "release": either(NULL, text()),
        "python": either(NULL, text()),
        "torch": either(NULL, text()),
        "governor": either(NULL, text()),
        "power_source": either(NULL, text()),
        "accelerator": either(NULL, ACCELERATOR),
        "machine_id": either(NULL, MACHINE_ID),
        "unusable_counters": list_of(ANY_TEXT, 100),
        "vector_width": whole(1, 4096),
        "threads": whole(1, 4096),
        "available_bytes": either(NULL, whole(0, 10**18)),
        "beat_seconds": either(NULL, number(QUICKEST_BEAT, SLOWEST_BEAT)),
        "factories": either(TRUTH, NAMES),
        "kinds": NAMES,
        "optimizers": NAMES,
        "dtypes": NAMES,
    },
    "meter": {
        "simulated": TRUTH,
        "replayed": TRUTH,
        "window_seconds": number(0, 3600),
        "update_seconds": number(0, 3600),
    },
    "block": {"compile_seconds": SECONDS},
    "yardstick": {
        "joules": either(NULL, number(0, 1e12)),
        "watts_idle": either(NULL, number(0, 1e6)),
        "early_seconds": either(NULL, SECONDS),
        "rest": either(NULL, list_of(MOMENT, 2)),
        "flags": NAMES,
    },
    "counter": {
        "scope": text(1000),
        "measured": TRUTH,
        "window_seconds": number(0, 3600),
        "update_seconds": number(0, 3600),
    },
}
WHERE_USABLE: dict[str, dict[str, Field]] = {  # required of what reports no problem
    "counter": {"scope": text(1000), "window_seconds": number(0, 3600)},
    "check": {
        "watts_idle": FINITE,
        "watts_load": FINITE,
        "noise_watts": FINITE,
        "update_seconds": either(NULL, SECONDS),
        "resolution": either(NULL, FINITE),
        "resolution_unit": text(),
    },
}


def check_fields(request: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    """Raise Unusable unless every field of a result has its type and is in its range. Unknown fields are ignored."""
    do = str(request["do"])
    problem = _problem_in(result, do) if do in REQUIRED else None
    if do == "hello":
        problem = problem or _problem_in(result.get("meter"), "meter")
    elif do == "block":
        problem = problem or _problem_in_windows(result, "target", "yardstick")
        if problem is None and len(result["loss"]) != 2:
            problem = f"loss is {_short(result['loss'])}, not of the first and the last step"
    elif do == "yardstick":
        problem = problem or (_problem_in_windows(result, "windows") if result.get("windows") is not None else None)
        if problem is None and result.get("windows") and len(result.get("rest") or ()) != 2:
            problem = "windows without the rest before them"
    elif do == "load":
        ends = [] if problem else [result["began"], *result["ends"]]
        if problem is None and (len(ends) != 1 + len(request["pattern"]) or ends != sorted(ends)):
            problem = f"{len(ends) - 1} parts of a load, or not in order, instead of {len(request['pattern'])}"
    elif do == "counters":
        problem = _problem_in_counters(result.get("counters"))
    if problem:
        raise Unusable(do, problem)


def _problem_in(record: Any, what: str) -> str | None:
    if not isinstance(record, dict):
        return f"{what} is {_short(record)}, not an object"
    for name, field in REQUIRED[what].items():
        if name not in record:
            return f"{name} is missing"
        if not field.fits(record[name]):
            return f"{name} is {_short(record[name])}, not {field.expected}"
    for name, field in OPTIONAL.get(what, {}).items():
        if name in record and not field.fits(record[name]):
            return f"{name} is {_short(record[name])}, not {field.expected}"
    return None


def _problem_in_windows(result: Mapping[str, Any], *names: str) -> str | None:
    for name in names:
        rows = result.get(name)
        if not isinstance(rows, list) or len(rows) > MOST_WINDOWS:
            return f"{name} is {_short(rows)}, not a list of at most {MOST_WINDOWS} windows"
        for row in rows:
            if not isinstance(row, list) or len(row) not in (5, 6):
                return f"a window of {name} is {_short(row)}, not a list of five or six"
            for (what, field), value in zip(WINDOW, row, strict=False):
                if not field.fits(value):
                    return f"{what} of a window of {name} is {_short(value)}, not {field.expected}"
    return None


def _problem_in_counters(counters: Any) -> str | None:
    if not isinstance(counters, list) or len(counters) > 100:
        return f"counters is {_short(counters)}, not a list of at most 100"
    for counter in counters:
        problem = _problem_in_usable(counter, "counter")
        if problem is None and counter.get("check") is not None:
            problem = _problem_in_usable(counter["check"], "check")
        if problem:
            return problem
    return None


def _problem_in_usable(record: Any, what: str) -> str | None:
    problem = _problem_in(record, what)
    if problem or record["problem"]:
        return problem
    wrong = [name for name, field in WHERE_USABLE[what].items() if name not in record or not field.fits(record[name])]
    return f"{wrong[0]} of {record.get('name', what)} is {_short(record.get(wrong[0]))}" if wrong else None
