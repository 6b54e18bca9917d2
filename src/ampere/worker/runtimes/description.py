"""What is known of a runtime before its library is loaded: what it needs, and what it can build.

A library of others joins with an entry point of the group `ampere.runtimes`: the runtime's name, and where its
Description is. Loading that must not load the library itself.
"""

from typing import Callable, FrozenSet, List, NamedTuple, Tuple

from ...network import KINDS, Layer, Network
from ...network.setup import DTYPES, OPTIMIZERS
from ..errors import WorkerError

EVERY_KIND = frozenset(KINDS) - {"opaque"}  # an opaque layer is known by its code only, not by its sizes
NAMED_AT_MOST = 8


def no_limits(layer: Layer) -> str:
    return ""


class Description(NamedTuple):
    module: str  # whose create() makes the runtime; with a dot before it, one beside this file
    packages: Tuple[str, ...]  # as pip knows them; the first one's version is the runtime's
    install: str  # what to type where they are missing
    kinds: FrozenSet[str] = EVERY_KIND
    dtypes: Tuple[str, ...] = tuple(DTYPES)
    optimizers: Tuple[str, ...] = OPTIMIZERS
    factories: bool = False  # trains PyTorch modules by their own code; else a network is built from its layers
    flax: bool = False  # trains flax modules by their own code, where their files are
    stages: bool = False  # times forward, backward and update of a step by themselves
    compiles: bool = False  # each shape anew, which takes its time
    one_by_one: bool = False  # channels beyond the last full vector, as Eigen's products do them
    limits: Callable[[Layer], str] = no_limits  # what it lacks of a kind that it has; "" where nothing
    torch_yardstick: bool = False  # its yardstick is PyTorch's own; another one is timed beside that
    yardstick_repeats: float = 0.015  # how far apart that comes out from process to process, relative

    def lacks(self, layer: Layer) -> str:
        """Why a layer cannot be built; "" where it can."""
        if layer.kind == "opaque":
            return "known by its own code only"
        return self.limits(layer) if layer.kind in self.kinds else f"no {layer.kind}"


def lacking(network: Network, description: Description) -> List[str]:
    """The layers of a network that the runtime cannot build, each with the reason."""
    reasons = {layer: description.lacks(layer) for layer in network.distinct}
    return [f"{layer.name or layer.kind} ({reason})" for layer, reason in reasons.items() if reason]


def refusal(runtime: str, lacks: List[str]) -> str:
    """All in one line."""
    more = [f"{len(lacks) - NAMED_AT_MOST} more"] if len(lacks) > NAMED_AT_MOST else []
    return "{} cannot build {}".format(runtime, ", ".join([*lacks[:NAMED_AT_MOST], *more]))


def refuse_lacking(network: Network, runtime: str, description: Description) -> None:
    lacks = lacking(network, description)
    if lacks:
        raise WorkerError("variant_failed", refusal(runtime, lacks))
