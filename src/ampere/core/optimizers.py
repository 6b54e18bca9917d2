"""The table of optimizers: what each keeps for a parameter, and how each runtime makes it.

An optimizer is one entry here. A runtime that an entry does not name refuses it by name.
"""

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Dict, Mapping, Tuple

from .errors import WorkerError

# Rates are small where a step is only measured: a model must not diverge, whatever its loss.
SLOW, SLOWER = 1e-3, 1e-4


@dataclass(frozen=True)
class Optimizer:
    """One optimizer. `made_by` says of each runtime which class or function makes it, and with which arguments."""

    name: str
    state: int  # values kept for each parameter
    usual_rate: float  # a learning rate that people would start with
    made_by: Mapping[str, Tuple[str, Mapping[str, Any]]] = field(default_factory=dict)

    @property
    def values_moved(self) -> int:
        """Values read and written for each parameter: itself, its gradient, itself again, and the state twice."""
        return 3 + 2 * self.state

    def make(self, runtime: str, *what: Any, **other: Any) -> Any:
        """The optimizer of a runtime's library, for `what` it takes first; `other` arguments replace ours."""
        if runtime not in self.made_by:
            offered = ", ".join(optimizers_of(runtime))
            raise WorkerError("variant_failed", f"{runtime} has no {self.name}: choose one of {offered}")
        place, arguments = self.made_by[runtime]
        module, _, name = place.partition(":")
        return getattr(import_module(module), name)(*what, **{**arguments, **other})


_TABLE = (
    Optimizer(
        "sgd",
        0,
        0.1,
        {
            "torch": ("torch.optim:SGD", {"lr": SLOW}),
            "jax": ("optax:sgd", {"learning_rate": SLOW}),
            "mnn": ("ampere.runtimes.mnn_runtime:sgd", {"rate": SLOW, "momentum": 0.0}),
        },
    ),
    Optimizer(
        "momentum",
        1,
        0.02,
        {
            "torch": ("torch.optim:SGD", {"lr": SLOW, "momentum": 0.9}),
            "jax": ("optax:sgd", {"learning_rate": SLOW, "momentum": 0.9}),
            "mnn": ("ampere.runtimes.mnn_runtime:sgd", {"rate": SLOW, "momentum": 0.9}),
        },
    ),
    Optimizer(
        "adam",
        2,
        1e-3,
        {
            "torch": ("torch.optim:Adam", {"lr": SLOWER}),
            "jax": ("optax:adam", {"learning_rate": SLOWER}),
            "mnn": ("ampere.runtimes.mnn_runtime:adam", {"rate": SLOWER}),
        },
    ),
    Optimizer(
        "adamw",
        2,
        1e-3,
        {
            "torch": ("torch.optim:AdamW", {"lr": SLOWER}),
            "jax": ("optax:adamw", {"learning_rate": SLOWER, "weight_decay": 1e-2}),
        },
    ),
    Optimizer(
        "lion",
        1,
        1e-4,
        {
            "torch": ("ampere.runtimes.torch_lion:Lion", {"lr": SLOWER}),
            "jax": ("optax:lion", {"learning_rate": SLOWER, "weight_decay": 0.0}),
        },
    ),
    Optimizer(
        "rmsprop",
        1,
        1e-3,
        {
            "torch": ("torch.optim:RMSprop", {"lr": SLOWER}),
            "jax": ("optax:rmsprop", {"learning_rate": SLOWER, "decay": 0.99}),
        },
    ),
)
OPTIMIZERS: Dict[str, Optimizer] = {optimizer.name: optimizer for optimizer in _TABLE}


def find_optimizer(name: str) -> Optimizer:
    """The optimizer of that name, in upper or lower case."""
    found = OPTIMIZERS.get(name.lower())
    if found is None:
        raise ValueError(f"optimizer {name!r} is none of {', '.join(OPTIMIZERS)}")
    return found


def optimizers_of(runtime: str) -> Tuple[str, ...]:
    """The optimizers that a runtime can train with."""
    return tuple(name for name, optimizer in OPTIMIZERS.items() if runtime in optimizer.made_by)
