"""The environment in which a worker runs: its allocator and its threads."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import UsageError
from ..network.setup import ALLOCATORS

# glibc gives memory back and takes it again on every iteration; these settings make it keep what it has.
TUNED = {
    "MALLOC_TRIM_THRESHOLD_": "4000000000",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TOP_PAD_": "268435456",
}
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
METER = "AMPERE_METER"  # the name of the meter that was asked for


def worker_environment(inherited: Mapping[str, str], allocator: str, threads: int) -> dict[str, str]:
    if allocator not in ALLOCATORS:
        raise UsageError(f"allocator {allocator!r} is none of {', '.join(ALLOCATORS)}")
    kept = {name: value for name, value in inherited.items() if name not in TUNED}
    tuned = TUNED if allocator == "tuned" else {}
    return {**kept, **tuned, **dict.fromkeys(THREADS, str(threads)), "PYTHONUNBUFFERED": "1"}
