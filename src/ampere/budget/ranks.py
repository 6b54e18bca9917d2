"""Ranks of a distributed job that share one budget, through the key-value store that brought them together.

rank 0   step k: no room, so all end after k + 2 ----> update k + 1 --------------> update k + 2, ends
rank 1   step k -------------------------------------> update k + 1, reads it ----> update k + 2, ends

Ranks that train together wait for each other in every update. So what one of them writes before update k + 1 all can
read after it, and the store is there until they have. Nothing here waits for another rank: one that stops, dies, or
has no budget keeps nobody.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ampere.core.errors import first_line

MICROJOULES = 1e6
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")  # one for a machine, also in its containers
_made: Counter[float] = Counter()  # budgets of this process, by their joules: ranks make them in the same order


class Ranks:
    """A budget that the ranks of a job share. Nothing here raises: where the store is `lost`, each rank is alone."""

    def __init__(self, store: Any, size: int, budget: float, metered: str | None) -> None:
        """`metered`: what the meter counts, such as the whole machine, which one rank reads. None: each has its own."""
        _made[budget] += 1
        self._store, self._name = store, f"ampere/{budget:g}/{_made[budget]}"
        self.size, self.lost = size, ""  # why the store does not answer
        self._end: int | None = None
        self._seen, self._unsent = 0, 0.0
        self.reads = metered is None or self.first(metered)
        self._add("readers", int(self.reads))

    @property
    def readers(self) -> int:
        """How many ranks add joules."""
        return max(1, self._add("readers", 0) or 0)

    def add(self, joules: float) -> float:
        """Adds what this rank read; returns what all have added since this rank last asked."""
        self._unsent += joules * MICROJOULES
        whole = int(self._unsent)
        self._unsent -= whole
        total = self._add("joules", whole)
        if total is None:
            return joules
        seen, self._seen = self._seen, total
        return (total - seen) / MICROJOULES

    def first(self, what: str) -> bool:
        """Whether no rank has asked this before."""
        return self._add(f"asked/{what}", 1) in (1, None)

    def end(self) -> int | None:
        """The step after which all ranks end; None while none is agreed."""
        if self._end is None:  # else it stays, also when the rank that holds the store has ended
            self._end = self._ask(lambda store, key: int(store.get(key)) if store.check([key]) else None, "end")
        return self._end

    def agree_to_end(self, step: int) -> int | None:
        """The step after which all end: this one, unless another rank was first to name one."""
        self._end = self._ask(lambda store, key: int(store.compare_set(key, "", str(step))), "end")
        return self._end

    def _add(self, what: str, amount: int) -> int | None:
        return self._ask(lambda store, key: int(store.add(key, amount)), what)

    def _ask(self, question: Callable[[Any, str], int | None], what: str) -> int | None:
        if self.lost:
            return None
        try:
            return question(self._store, f"{self._name}/{what}")
        except Exception as problem:
            self.lost = first_line(problem)
            return None


def ranks_of_this_job(budget: float, metered: str | None) -> Ranks | None:
    """Those of torch.distributed, if the program has set it up; None in a job of one process."""
    distributed = job_of_ranks()
    if distributed is None:
        return None
    size = distributed.get_world_size()
    store = distributed.distributed_c10d._get_default_store()  # every backend has one, but MPI
    return Ranks(store, size, budget, metered)


def job_of_ranks() -> Any:
    """torch.distributed, if this process is one of several ranks; else None."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed if distributed.get_world_size() > 1 else None


def this_machine() -> str:
    with contextlib.suppress(OSError):
        return BOOT_ID.read_text().strip()
    import platform

    return platform.node()
