"""Errors as problem details (RFC 9457): what happened in `detail`, what to do in `remedy`."""

from __future__ import annotations

import json
from http import HTTPStatus

from ampere.core.errors import AmpereError, BusyError, ModelError, ProfileError, UsageError

from .catalogue import NotFound

STATUS: dict[type, int] = {
    NotFound: 404,
    UsageError: 422,
    ModelError: 422,
    ProfileError: 422,
    BusyError: 429,
}
UNEXPECTED = "the server could not answer this: run it with AMPERE_DEBUG=1 for the traceback"


def problem_of(error: AmpereError) -> tuple[int, bytes]:
    """The status and body of an error; its message is `what happened: what to do`."""
    status = next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 422)
    detail, _, remedy = str(error).rpartition(": ")
    title = type(error).__name__
    return status, problem_body(status, title, detail or remedy, remedy if detail else "", error.exit_code)


def problem_body(status: int, title: str, detail: str, remedy: str = "", exit_code: int | None = None) -> bytes:
    record = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    more = {"remedy": remedy or None, "exit_code": exit_code}
    return json.dumps({**record, **{k: v for k, v in more.items() if v is not None}}).encode()


def unexpected() -> tuple[int, bytes]:
    return 500, problem_body(500, HTTPStatus(500).phrase, UNEXPECTED)
