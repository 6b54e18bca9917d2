"""How much memory training a model takes, whether it fits, and the largest batch that does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from importlib.util import find_spec

from ampere.core import Network, TrainingSetup
from ampere.core.allocations import Allocation, FreshPages, fresh_pages, resident_peak
from ampere.core.errors import ModelError, UsageError
from ampere.core.setup import CPU
from ampere.core.units import parse_memory
from ampere.estimation.estimate import Estimate
from ampere.estimation.estimator import Estimator
from ampere.estimation.memory import MemoryEstimate, largest_batch, memory_of, peak_seen, runtime_bytes_in
from ampere.storage.profile import Observation, Profile

from .models import ResolvedModel

FOLLOWED = "torch"  # the runtime whose memory is followed


class StepMemory:
    """The memory of one model in one setup, at any batch."""

    def __init__(
        self,
        subject: ResolvedModel,
        setup: TrainingSetup,
        allocator: str = "system",
        profile: Profile | None = None,
        touches: Sequence[Observation] = (),
    ) -> None:
        """`touches` are those of the profile, and others that are not stored in it."""
        self._subject, self._setup = subject, setup
        self._tuned, self._runtime_bytes = allocator == "tuned", runtime_bytes_in(profile) if profile else None
        if setup.on != CPU:  # its allocator keeps what is freed, and counts tensors only
            self._tuned, self._runtime_bytes = True, 0.0
        self._seen = peak_seen(touches, subject.network, allocator) if touches else None

    @property
    def has_code(self) -> bool:
        """Whether the model's own code is followed, and not a network that is built from a file."""
        return self._subject.trainable

    @cached_property
    def usual(self) -> MemoryEstimate | None:
        """At the model's own batch; None where it cannot be followed, which `at` says why."""
        try:
            return self.at(None)
        except ModelError:
            return None

    @property
    def fresh_pages(self) -> FreshPages | None:
        """Pages that a step takes anew from the system; None where the model's own code cannot be followed."""
        if self._tuned or not self.has_code or not self._can_follow:
            return None
        try:
            return fresh_pages(self._own)
        except ModelError:
            return None

    @property
    def _can_follow(self) -> bool:
        return self._setup.runtime == FOLLOWED and not self._subject.is_flax and find_spec("torch") is not None

    def at(self, batch: int | None) -> MemoryEstimate:
        if not self._can_follow:
            raise ModelError(f"memory is followed with {FOLLOWED} only, which must be installed: leave out memory")
        found = self._own if batch is None else self._allocations(batch)
        seen_step = resident_peak(self._own, self._tuned) if self._seen else 0.0
        batch = batch or self._subject.network.batch
        return memory_of(found, batch, self._runtime_bytes, self._tuned, self._seen, seen_step)

    @property
    def _own(self) -> list[Allocation]:
        known, setup = self._subject.followed, (self._setup.optimizer, self._setup.dtype)
        if setup not in known:
            known[setup] = self._allocations(None)
        return known[setup]

    def estimate_with(self, estimator: Estimator, allocator: str) -> Estimate:
        """What its layers say, with the page faults of its own step where the profile has their price."""
        pages = self.fresh_pages if estimator.page_faults.seconds else None
        found = estimator.estimate(self._subject.network, allocator, fresh_pages=pages)
        return replace(found, follow_memory=lambda: self.usual)

    def largest_batch(self, limit_bytes: float) -> int:
        """The largest batch that stays below the limit with its whole interval."""
        if not self._subject.trainable:
            raise UsageError(f"{self._subject.name} is a network of one batch: name the model itself for another")
        return largest_batch(self.at, limit_bytes)

    def _allocations(self, batch: int | None) -> list[Allocation]:
        from ampere.tracing.memory import allocations_of, allocations_of_network

        setup = self._setup
        if self._subject.trainable:
            loaded = self._subject.loaded
            if loaded.step is not None:
                return self._allocations_of_step(batch)
            try:
                return allocations_of(loaded.model, loaded.inputs, setup.optimizer, setup.dtype, batch)
            except ModelError:
                if batch is not None:
                    raise
        return allocations_of_network(self._subject.network, setup.optimizer, setup.dtype)

    def _allocations_of_step(self, batch: int | None) -> list[Allocation]:
        from ampere.tracing.memory import allocations_of_step

        if batch is not None:
            raise ModelError(f"{self._subject.name} does a whole training step of one batch: leave out --largest-batch")
        return allocations_of_step(self._subject.loaded.step)


def bytes_in(memory: str | float) -> float:
    """Bytes of `"4GB"`, or of a number."""
    return parse_memory(memory) if isinstance(memory, str) else parse_memory(f"{memory}B")


def with_fresh_pages(subject: ResolvedModel) -> Network:
    """A model's network with the page faults of a step with SGD, which only its code shows."""
    pages = StepMemory(subject, TrainingSetup()).fresh_pages
    return subject.network if pages is None else replace(subject.network, fresh_pages=pages)
