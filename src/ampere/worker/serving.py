"""A line in, a line out: whatever happens in between, every request gets one answer."""

import json
from typing import Any, Callable, Dict

from .block import block, yardstick_alone
from .channel import Channel
from .errors import WorkerError, as_worker_error, bad_request
from .greeting import greeting
from .meters import counters, load

Request = Dict[str, Any]
Actions = Dict[str, Callable[[Request], Dict[str, Any]]]


def serve(channel: Channel) -> None:
    actions: Actions = {
        "hello": lambda request: greeting(request, channel.heart.every),
        "ping": lambda request: {},
        "block": lambda request: block(request, lambda error: channel.send(_refusal(request.get("id"), error))),
        "yardstick": yardstick_alone,
        "counters": counters,
        "load": load,
    }
    line = channel.receive()
    while line is not None:
        channel.send(answer(line, actions))
        line = channel.receive()


def answer(line: bytes, actions: Actions) -> Dict[str, Any]:
    name = None
    try:
        request = _parse(line)
        name = request.get("id")
        return {"id": name, "result": _action(request, actions)(request)}
    except (Exception, SystemExit) as problem:
        return _refusal(name, as_worker_error(problem))


def _refusal(name: Any, error: WorkerError) -> Dict[str, Any]:
    return {"id": name, "error": error.to_json()}


def _parse(line: bytes) -> Request:
    try:
        request = json.loads(line.decode())
    except (ValueError, RecursionError):
        raise bad_request("the request is not a line of JSON") from None
    if not isinstance(request, dict):
        raise bad_request("the request is not a JSON object")
    return request


def _action(request: Request, actions: Actions) -> Callable[[Request], Dict[str, Any]]:
    action = actions.get(str(request.get("do")))
    if action is None:
        raise bad_request("{!r} is none of {}".format(request.get("do"), ", ".join(actions)))
    return action
