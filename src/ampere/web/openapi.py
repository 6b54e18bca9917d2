"""The description of the HTTP interface (OpenAPI 3.1), as one record."""

from __future__ import annotations

from typing import Any

from ampere import __version__
from ampere.core.setup import ALLOCATORS

from .answers import MOST_CANDIDATES, MOST_COMPARED, MOST_ITERATIONS

Record = dict[str, Any]

NUMBER, TEXT, OBJECT = {"type": "number"}, {"type": "string"}, {"type": "object"}
NAME = {"type": "string", "minLength": 1, "maxLength": 200}
COUNT = {"type": "integer", "minimum": 1}
COUNTS = {"type": ["object", "null"], "additionalProperties": COUNT}

CHANGES: Record = {
    "network": {**NAME, "description": "its id, as /api/v1/networks lists it"},
    "widths": {**COUNTS, "description": "widths that change, by their names"},
    "repeats": {**COUNTS, "description": "how often blocks are repeated, by their names"},
    "batch": {**COUNT, "type": ["integer", "null"], "maximum": 65_536},
}
PROFILE: Record = {"profile": {**NAME, "description": "its id, as /api/v1/profiles lists it"}}
ALLOCATOR: Record = {"allocator": {"enum": [*ALLOCATORS, None]}}
RUN: Record = {
    "iterations": {**COUNT, "maximum": MOST_ITERATIONS, "description": "of the whole run"},
    "battery": {**TEXT, "description": "what it holds, such as 15Wh"},
    "idle": {**TEXT, "description": "what the device draws anyway, such as 3W"},
    "grid": {**TEXT, "description": "carbon of a kWh: a country's code such as DE, or grams such as 400g/kWh"},
    "price": {**TEXT, "description": "money for a kWh, such as 0.30EUR/kWh"},
}


def _object(properties: Record, *required: str) -> Record:
    return {"type": "object", "properties": properties, "required": list(required)}


WHAT_IF = _object({**CHANGES, **PROFILE, **ALLOCATOR, **RUN}, "network", "profile")
OF_PROFILE = _object({**PROFILE, "network": {**NAME, "type": ["string", "null"]}}, "profile")
CHANGED = _object(CHANGES, "network")
ONE_OF_SEVERAL = _object({**CHANGES, **PROFILE, **ALLOCATOR}, "network")
SEVERAL = _object(
    {**PROFILE, **ALLOCATOR, "networks": {"type": "array", "minItems": 1, "items": ONE_OF_SEVERAL}}, "networks"
)
BATCH = _object(
    {
        **CHANGES,
        **PROFILE,
        **ALLOCATOR,
        "rows": {"type": "array", "minItems": 1, "items": {"type": "array", "items": COUNT}},
    },
    "network",
    "profile",
    "rows",
)
COMPARE = _object(
    {
        "networks": {
            "type": "array",
            "minItems": 1,
            "maxItems": MOST_COMPARED,
            "items": {"anyOf": [NAME, _object({**CHANGES, "label": TEXT}, "network")]},
        },
        "profiles": {"type": "array", "minItems": 1, "maxItems": MOST_COMPARED, "items": NAME},
        **ALLOCATOR,
    },
    "networks",
    "profiles",
)
SEARCH = _object(
    {
        **CHANGES,
        **PROFILE,
        **ALLOCATOR,
        "candidates": {**COUNT, "maximum": MOST_CANDIDATES},
        "budget_joules": {**NUMBER, "exclusiveMinimum": 0},
        "least_capacity": {**NUMBER, "exclusiveMinimum": 0},
        "seed": {"type": "integer", "minimum": 0, "maximum": 2**32},
    },
    "network",
    "profile",
)
NETWORK = {
    **_object({"layers": {"type": "array", "minItems": 1, "items": OBJECT}, "batch": COUNT}, "layers", "batch"),
    "description": "the body of a file of `ampere trace --out`, or the whole file",
}

ESTIMATE = _object(
    {
        "joules_per_iteration": NUMBER,
        "joules_stddev": NUMBER,
        "joules_interval90": {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2},
        "seconds_per_iteration": NUMBER,
        "layers": {"type": "array", "items": OBJECT},
        "unprofiled": {"type": "array", "items": TEXT},
        "extrapolated": {"type": "array", "items": TEXT},
        "meter": OBJECT,
        "run": {"type": ["object", "null"]},
    },
    "joules_per_iteration",
    "joules_stddev",
    "seconds_per_iteration",
    "layers",
    "meter",
)
PROBLEM = _object({"type": TEXT, "title": TEXT, "status": COUNT, "detail": TEXT, "remedy": TEXT}, "title", "status")

# path: (method, what it does, request, answer)
CALLS: tuple[tuple[str, str, str, Record | None, Record], ...] = (
    ("/api/v1/devices", "get", "Devices of which profiles are stored", None, OBJECT),
    ("/api/v1/profiles", "get", "Stored profiles", None, OBJECT),
    ("/api/v1/networks", "get", "Networks that can be estimated, and what may change in each", None, OBJECT),
    ("/api/v1/networks", "post", "Adds a traced network", NETWORK, OBJECT),
    ("/api/v1/estimate", "post", "One network, or several", {"anyOf": [WHAT_IF, SEVERAL]}, OBJECT),
    ("/api/v1/what-if", "post", "A network with other widths, depth or batch", WHAT_IF, ESTIMATE),
    ("/api/v1/batch", "post", "Joules and seconds at many widths at once", BATCH, OBJECT),
    ("/api/v1/compare", "post", "Networks ranked on profiles, with the probability of the order", COMPARE, OBJECT),
    ("/api/v1/search", "post", "Random candidates of a network, and the front of the best", SEARCH, OBJECT),
    ("/api/v1/network-file", "post", "A changed network as a file for `ampere estimate`", CHANGED, OBJECT),
    ("/api/v1/memory", "post", "Peak memory of training a network", WHAT_IF, OBJECT),
    ("/api/v1/profile", "post", "What a profile was made from, and what it covers", OF_PROFILE, OBJECT),
    ("/api/v1/runs", "get", "Recorded training runs: estimated and spent", None, OBJECT),
)


def description() -> Record:
    paths: dict[str, Record] = {}
    for path, method, words, request, answer in CALLS:
        paths.setdefault(path, {})[method] = _call(words, request, answer)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Ampere",
            "version": __version__,
            "description": "Joules of training a neural network, from profiles that are stored. Nothing is measured.",
        },
        "paths": paths,
        "components": {"schemas": {"Problem": PROBLEM}},
    }


def _call(words: str, request: Record | None, answer: Record) -> Record:
    problem = {
        "description": "what is wrong, and what to do (RFC 9457)",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    found = {"description": words, "content": {"application/json": {"schema": answer}}}
    call: Record = {"summary": words, "responses": {"200": found, "4XX": problem}}
    if request is not None:
        call["requestBody"] = {"required": True, "content": {"application/json": {"schema": request}}}
    return call
