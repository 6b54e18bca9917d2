"""Requests, checked strictly: one that does not make sense is refused before anything is built."""

import json
from typing import Any, Callable, Collection, Dict, NamedTuple, Optional, Sequence

from ampere.core import TrainingSetup
from ampere.core.errors import WorkerError, bad_request
from ampere.core.protocol import COMPILE_LIMIT_SECONDS, MOST_LINE_BYTES, QUICKEST_BEAT, SLOWEST_BEAT
from ampere.core.setup import CPU, find_on
from ampere.meters import watts_of

PAIRINGS = ("step", "window", "plain")
ISOLATIONS = ("inline", "fork")
STEP = "step"
STAGES = (STEP, "forward", "backward", "update")
LONGEST_ID = 200  # characters

Request = Dict[str, Any]


def read_request(line: bytes) -> Request:
    """The request in a line, once its action is known and its fields make sense; WorkerError otherwise."""
    request = parse(line)
    id_in(request)
    return checked(request)


def checked(request: Request) -> Request:
    """The request, if its action is known and its fields make sense."""
    check_fields = CHECKED.get(str(request.get("do")))
    if check_fields is None:
        raise bad_request("{!r} is none of {}".format(request.get("do"), ", ".join(CHECKED)))
    check_fields(request)
    return request


def parse(line: bytes) -> Request:
    """The JSON object in a line."""
    if len(line) > MOST_LINE_BYTES:
        raise bad_request(f"a line may have at most {MOST_LINE_BYTES} bytes")
    try:
        request = json.loads(line.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise bad_request("the request is not a line of JSON") from None
    if not isinstance(request, dict):
        raise bad_request("the request is not a JSON object")
    return request


def id_in(request: Request) -> Any:
    """The id that the answer gets: a number, a short text or null."""
    name = request.get("id")
    if name is None or type(name) in (int, float) or (isinstance(name, str) and len(name) <= LONGEST_ID):
        return name
    raise bad_request(f"an id must be a number, a text of at most {LONGEST_ID} characters or null")


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


class BlockRequest(NamedTuple):
    """One block: what to train, how, and what to measure."""

    workload: Dict[str, Any]
    setup: TrainingSetup
    iterations: int
    warmup: int
    pairing: str
    isolation: str
    seconds_limit: float
    watts_per_core: float
    compile_limit: float = COMPILE_LIMIT_SECONDS
    stage: str = STEP  # what is timed: the whole step, or one stage of it
    counting: bool = True  # else a slow counter is not read, and only time is measured
    power: bool = False  # read a gauge for a few samples of the steady load

    @classmethod
    def from_json(cls, record: Dict[str, Any]) -> "BlockRequest":
        return cls(
            workload=_workload(record),
            setup=_setup(record),
            iterations=_count(record, "iterations", 10),
            warmup=_count(record, "warmup", 4),
            pairing=_one_of(record, "pairing", PAIRINGS),
            isolation=_one_of(record, "isolation", ISOLATIONS),
            seconds_limit=seconds_of(record, "seconds_limit", 60.0),
            watts_per_core=watts_of(record),
            compile_limit=seconds_of(record, "compile_limit", COMPILE_LIMIT_SECONDS),
            stage=_stage(record),
            counting=_choice(record, "count", True),
            power=_choice(record, "power", False),
        )


def seconds_of(record: Dict[str, Any], field: str, default: float) -> float:
    value = record.get(field, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e6:
        raise bad_request(f"{field} is {value!r}, but must be a positive number of seconds")
    return float(value)


def threads_of(record: Dict[str, Any]) -> int:
    return _count(record, "threads", 1)


def on_of(record: Dict[str, Any]) -> str:
    """Where a yardstick runs; `auto` only in a handshake, whose answer resolves it."""
    try:
        return TrainingSetup(on=str(record.get("on", CPU))).on
    except ValueError as problem:
        raise bad_request(str(problem)) from None


def _workload(record: Dict[str, Any]) -> Dict[str, Any]:
    workload = record.get("workload")
    if not isinstance(workload, dict) or ("layers" in workload) == ("factory" in workload):
        raise bad_request("the workload needs either layers or a factory")
    if _choice(workload, "step", False) and "layers" in workload:
        raise bad_request("a step is code: the workload needs a factory")
    return workload


def _stage(record: Dict[str, Any]) -> str:
    """The stage to time. Stages are short, so each is paired with a yardstick; only described layers have them."""
    stage = _one_of(record, "stage", STAGES)
    if stage != STEP and _one_of(record, "pairing", PAIRINGS) != "step":
        raise bad_request(f"the {stage} stage is timed step by step: leave out the pairing")
    if stage != STEP and "layers" not in _workload(record):
        raise bad_request(f"the {stage} stage can be timed for described layers only: the workload needs layers")
    return stage


def _setup(record: Dict[str, Any]) -> TrainingSetup:
    try:
        return TrainingSetup.from_json({**TrainingSetup().to_json(), **record.get("setup", {})})
    except (TypeError, ValueError) as problem:
        raise bad_request(f"setup: {problem}") from None


def _count(record: Dict[str, Any], field: str, default: int) -> int:
    value = record.get(field, default)
    if type(value) is not int or not 0 < value <= 1000000:
        raise bad_request(f"{field} is {value!r}, but must be a whole number from 1")
    return value


def _one_of(record: Dict[str, Any], field: str, choices: Sequence[str]) -> str:
    value = record.get(field, choices[0])
    if value not in choices:
        raise bad_request("{} is {!r}, but must be one of {}".format(field, value, ", ".join(choices)))
    return str(value)


def _choice(record: Dict[str, Any], field: str, default: bool) -> bool:
    value = record.get(field, default)
    if not isinstance(value, bool):
        raise bad_request(f"{field} is {value!r}, but must be true or false")
    return value


def beat_seconds_of(record: Dict[str, Any]) -> Optional[float]:
    """How often a busy worker sends a heartbeat; None for never."""
    seconds = record.get("beat_seconds")
    if seconds is None:
        return None
    number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not number or not QUICKEST_BEAT <= seconds <= SLOWEST_BEAT:
        raise bad_request(f"beat_seconds is {seconds!r}, but must be from {QUICKEST_BEAT:g} to {SLOWEST_BEAT:g}")
    return float(seconds)


def check_allowed(request: BlockRequest, allowed: Optional[Collection[str]]) -> None:
    """Raise where a block names code that this worker does not run for its host; None allows any."""
    place = str(request.workload.get("factory", "")).rpartition(":")[0]
    if allowed is not None and "factory" in request.workload and place not in allowed:
        raise WorkerError(
            "variant_failed",
            f"this worker does not run {place or 'factories'} for its host: describe layers, "
            f"or start it with --allow {place or 'MODULE'}",
        )


def _check_hello(record: Request) -> None:
    try:
        find_on(str(record.get("on", CPU)))
    except ValueError as problem:
        raise bad_request(str(problem)) from None
    beat_seconds_of(record)
    watts_of(record)


def _check_yardstick(record: Request) -> None:
    seconds_of(record, "seconds", 1.0)
    threads_of(record)
    on_of(record)
    watts_of(record)
    for field, default in (("count", True), ("power", False)):
        _choice(record, field, default)


CHECKED: Dict[str, Callable[[Request], Any]] = {
    "hello": _check_hello,
    "ping": lambda record: None,
    "block": BlockRequest.from_json,
    "yardstick": _check_yardstick,
    "counters": lambda record: _choice(record, "check", False),
    "load": lambda record: None,  # its pattern is checked where it runs
}
