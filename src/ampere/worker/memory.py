"""A variant that is too large should fail alone: not take the machine, nor the host's process, with it."""

import contextlib
from typing import Optional

KEEP_FREE = 0.1  # share of the memory now available that a variant may not take


def volunteer_for_the_oom_killer() -> None:
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")


def limit_memory() -> None:
    """Let an allocation beyond what is available fail, rather than succeed and be killed for it later."""
    used, available = _kibibytes("/proc/self/status", "VmData"), _kibibytes("/proc/meminfo", "MemAvailable")
    if used is None or available is None:
        return
    import resource

    limit = int(used + available * (1 - KEEP_FREE)) * 1024
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _kibibytes(path: str, field: str) -> Optional[int]:
    try:
        with open(path) as lines:
            return next((int(line.split()[1]) for line in lines if line.startswith(field + ":")), None)
    except (OSError, ValueError):
        return None
