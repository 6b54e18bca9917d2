"""Both ends of the worker's protocol as functions of bytes, for tests with arbitrary lines."""

from typing import Any

from ampere.core import Measurement, Meter
from ampere.devices import Yardstick
from ampere.devices.answer_fields import check_fields, parse_answer
from ampere.devices.answers import (
    as_error,
    capabilities_in,
    check_version,
    impossible,
    impossible_yardstick,
    read_answer,
)
from ampere.devices.device import fingerprint
from ampere.worker.requests import BlockRequest, read_request

ACTIONS = ("hello", "ping", "block", "yardstick", "counters", "load")


def host_reads(line: bytes, do: str) -> Any:
    """What a host makes of a line that answers a request: a record, None for no answer; else it raises AmpereError."""
    answer = parse_answer(line)
    if answer is None:
        return None
    result, kind, message = read_answer(answer)
    if result is None:
        raise as_error(kind, message)
    if do == "hello":
        check_version(result)
    check_fields({"do": do, "pattern": [1, 0]}, result)
    if do == "hello":
        return fingerprint(result), Meter.reported(result["meter"]), capabilities_in(result)
    if do == "block":
        found = Measurement.from_json({**result, "meter": Meter("any", False)})
        return None if impossible(found, 2, 1e3) else found
    if do == "yardstick":
        cost = Yardstick.from_json(result)
        return None if impossible_yardstick(cost, 2, 1e3) else cost
    return result


def worker_reads(line: bytes) -> Any:
    """What a worker makes of a line: a request that it would carry out; or a WorkerError is raised."""
    request = read_request(line)
    return BlockRequest.from_json(request) if request["do"] == "block" else request
