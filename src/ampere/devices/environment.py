"""The environment in which a worker runs: its allocator and its threads; and what a host reads there."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ampere.core.errors import UsageError
from ampere.core.protocol import COMPILE_LIMIT_SECONDS
from ampere.core.setup import ALLOCATORS

# glibc gives memory back and takes it again on every iteration; these settings make it keep what it has.
TUNED = {
    "MALLOC_TRIM_THRESHOLD_": "4000000000",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TOP_PAD_": "268435456",
}


THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


METER = "AMPERE_METER"  # the name of the meter that was asked for


COMPILE_LIMIT = "AMPERE_COMPILE_LIMIT"  # seconds


LONGEST_LIMIT = 1e5  # more than a day


def compile_limit() -> float:
    """Seconds after which a variant that still compiles is given up."""
    asked = os.environ.get(COMPILE_LIMIT) or COMPILE_LIMIT_SECONDS
    try:
        seconds = float(asked)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= LONGEST_LIMIT:
        raise UsageError(
            f"{COMPILE_LIMIT}={asked} is no number of seconds up to {LONGEST_LIMIT:g}: give one, such as 300"
        )
    return seconds


def worker_environment(inherited: Mapping[str, str], allocator: str, threads: int) -> dict[str, str]:
    if allocator not in ALLOCATORS:
        raise UsageError(f"allocator {allocator!r} is none of {', '.join(ALLOCATORS)}")
    kept = {name: value for name, value in inherited.items() if name not in TUNED}
    tuned = TUNED if allocator == "tuned" else {}
    return {**kept, **tuned, **dict.fromkeys(THREADS, str(threads)), "PYTHONUNBUFFERED": "1"}
