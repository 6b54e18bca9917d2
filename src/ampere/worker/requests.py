"""Requests, checked strictly: one that does not make sense is refused before anything is built."""

from typing import Any, Dict, NamedTuple, Sequence

from ampere.core import TrainingSetup
from ampere.core.errors import bad_request
from ampere.core.protocol import COMPILE_LIMIT_SECONDS
from ampere.meters import watts_of

PAIRINGS = ("step", "window", "plain")
ISOLATIONS = ("inline", "fork")
STEP = "step"
STAGES = (STEP, "forward", "backward", "update")


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
            counting=bool(record.get("count", True)),
            power=bool(record.get("power", False)),
        )


def seconds_of(record: Dict[str, Any], field: str, default: float) -> float:
    value = record.get(field, default)
    if not isinstance(value, (int, float)) or not 0 < value < 1e6:
        raise bad_request(f"{field} is {value!r}, but must be a positive number of seconds")
    return float(value)


def threads_of(record: Dict[str, Any]) -> int:
    return _count(record, "threads", 1)


def _workload(record: Dict[str, Any]) -> Dict[str, Any]:
    workload = record.get("workload")
    if not isinstance(workload, dict) or ("layers" in workload) == ("factory" in workload):
        raise bad_request("the workload needs either layers or a factory")
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
    if not isinstance(value, int) or not 0 < value <= 1000000:
        raise bad_request(f"{field} is {value!r}, but must be a whole number from 1")
    return value


def _one_of(record: Dict[str, Any], field: str, choices: Sequence[str]) -> str:
    value = record.get(field, choices[0])
    if value not in choices:
        raise bad_request("{} is {!r}, but must be one of {}".format(field, value, ", ".join(choices)))
    return str(value)
