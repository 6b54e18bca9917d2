"""The environment of a worker process (allocator, threads), and what the user's own environment asks for."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ampere.core.errors import UsageError
from ampere.core.protocol import COMPILE_LIMIT_SECONDS, OWN_THREADS_VARIABLE, THREAD_VARIABLES, TOKEN_VARIABLE
from ampere.core.setup import ALLOCATORS

# glibc gives memory back and takes it again on every iteration; these settings make it keep what it has.
TUNED = {
    "MALLOC_TRIM_THRESHOLD_": "4000000000",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TOP_PAD_": "268435456",
}

METER = "AMPERE_METER"  # the default of `--meter`
COMPILE_LIMIT = "AMPERE_COMPILE_LIMIT"  # the default of `--compile-limit`, in seconds
LONGEST_LIMIT = 1e5  # more than a day


def meter_name(given: str | None) -> str:
    """The name of the meter to use; "" where the worker chooses one."""
    return given if given is not None else os.environ.get(METER, "")


def compile_limit(given: float | None) -> float:
    """Seconds after which a variant that still compiles is given up."""
    value, named = (given, "a compile limit of ") if given is not None else (os.environ.get(COMPILE_LIMIT), "")
    if not value:
        return COMPILE_LIMIT_SECONDS
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= LONGEST_LIMIT:
        named = named or f"{COMPILE_LIMIT}="
        raise UsageError(f"{named}{value} is no number of seconds up to {LONGEST_LIMIT:g}: give one, such as 300")
    return seconds


def worker_environment(inherited: Mapping[str, str], allocator: str, threads: int) -> dict[str, str]:
    if allocator not in ALLOCATORS:
        raise UsageError(f"allocator {allocator!r} is none of {', '.join(ALLOCATORS)}")
    kept = {name: value for name, value in inherited.items() if name not in (*TUNED, TOKEN_VARIABLE)}
    tuned = TUNED if allocator == "tuned" else {}
    return {**kept, **tuned, **_threads(inherited, threads), "PYTHONUNBUFFERED": "1"}


def _threads(inherited: Mapping[str, str], threads: int) -> dict[str, str]:
    own = next((inherited[name] for name in THREAD_VARIABLES if inherited.get(name)), "")
    return {**dict.fromkeys((*THREAD_VARIABLES, "OPENBLAS_NUM_THREADS"), str(threads)), OWN_THREADS_VARIABLE: own}
