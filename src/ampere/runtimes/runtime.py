"""What a runtime does: make training steps out of what is asked for.

prepare(threads)        once a block: threads, denormals, seed
place(on)               where that is not the CPU: all that is built from then on is there -> Processor
build(workload, setup)   a model with its made-up data, compiled where that is due -> Training
yardstick()             the fixed reference step of this runtime -> Training
ready_to_fork(...)      whether a child process could train
trains_in_children      optional: whether a process that has trained can have no child that trains
"""

from typing import Any, Callable, Dict, NamedTuple, Optional, Protocol, Tuple

from ampere.core import TrainingSetup
from ampere.core.errors import ACCELERATOR, WorkerError
from ampere.core.setup import CPU as ON_CPU

from .processor import CPU, Processor

Part = Tuple[str, Callable[[], Any]]


class Training(NamedTuple):
    """One model, ready to be trained on its own made-up data."""

    step: Callable[[], Any]  # zero the gradients, forward, loss, backward, update; done on return, or queued there
    last_loss: Callable[[], float]
    parameters: int  # those that are updated
    parts: Optional[Tuple[Part, ...]] = None  # a step cut into forward, loss, backward and update, where it can be
    compile_seconds: float = 0.0  # spent in build: no part of any step
    weights: Callable[[], Tuple[Any, ...]] = tuple  # as they are now: each can be turned into an array
    settling: int = 0  # so many steps of the yardstick after one of this cost more than others: they do not count


class Runtime(Protocol):
    def prepare(self, threads: int) -> None:
        """Before each block: threads, denormals, seed."""

    def build(self, workload: Dict[str, Any], setup: TrainingSetup) -> Training:
        """A workload is {"layers": ...}, a described network, or {"factory": ...}, a user's own code.

        A WorkerError of type variant_failed where a layer cannot be built, which it names. What must be compiled is
        compiled here, so that no step is slower than the next.
        """

    def yardstick(self) -> Training:
        """The fixed reference step, of a few milliseconds, always float32: a changed one makes old ratios worthless."""

    def ready_to_fork(self, workload: Dict[str, Any], threads: int) -> bool:
        """Loads what each child would otherwise load again. False where a forked child could not train."""


def placed(runtime: Runtime, on: str) -> Processor:
    """The processor that the runtime builds on from now on. A runtime without `place` has the CPU only."""
    place: Optional[Callable[[str], Processor]] = getattr(runtime, "place", None)
    if place is not None:
        return place(on)
    if on == ON_CPU:
        return CPU
    name = getattr(runtime, "name", "this runtime")
    raise WorkerError(ACCELERATOR, f"{name} trains on the CPU only: leave out --on {on}, or use --runtime torch")
