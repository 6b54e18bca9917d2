"""What a runtime does: make training steps out of what is asked for."""

from typing import Any, Callable, Dict, NamedTuple, Optional, Protocol, Tuple

from ...network import TrainingSetup

Part = Tuple[str, Callable[[], Any]]


class Training(NamedTuple):
    """One model, ready to be trained on its own made-up data."""

    step: Callable[[], Any]  # zero the gradients, forward, loss, backward, update
    last_loss: Callable[[], float]
    parameters: int  # those that are updated
    parts: Optional[Tuple[Part, ...]] = None  # a step cut into forward, loss, backward and update, where it can be


class Runtime(Protocol):
    def prepare(self, threads: int) -> None:
        """Before each block: threads, denormals, seed."""

    def build(self, subject: Dict[str, Any], setup: TrainingSetup) -> Training:
        """A subject is {"layers": ...}, a described network, or {"factory": ...}, a user's own code."""

    def yardstick(self) -> Training:
        """The fixed reference step, of a few milliseconds."""

    def may_fork(self, threads: int) -> bool:
        """Whether a forked child could train with so many threads."""

    def preload(self, subject: Dict[str, Any]) -> None:
        """Before a fork: whatever each child would otherwise load again."""
