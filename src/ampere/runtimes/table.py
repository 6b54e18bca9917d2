"""Every runtime by name: what it needs, what it can build, and what it cannot, known before its library is loaded."""

import sys
from functools import lru_cache
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Tuple, TypeVar

from ampere.core import KINDS, Layer, Network
from ampere.core.errors import WorkerError, bad_request
from ampere.core.kinds import built_by
from ampere.core.optimizers import optimizers_of
from ampere.core.setup import DTYPES, OF_NVIDIA, PLAIN_DTYPES

GROUP = "ampere.runtimes"  # of entry points, with which packages of others join
EVERY_KIND = frozenset(name for name, kind in KINDS.items() if kind.described)
NAMED_AT_MOST = 8
EVERYWHERE = tuple(name for name in DTYPES if name not in OF_NVIDIA)


def no_limits(layer: Layer) -> str:
    return ""


class Description(NamedTuple):
    """What is known of a runtime before its library is loaded: what it needs, and what it can build.

    A library of others joins with an entry point of the group `ampere.runtimes`: the runtime's name, and where its
    Description is. Loading that must not load the library itself.
    """

    module: str  # whose create() makes the runtime; with a dot before it, one beside this file
    packages: Tuple[str, ...]  # as pip knows them; the first one's version is the runtime's
    install: str  # what to type where they are missing
    kinds: FrozenSet[str] = frozenset()  # that it can build
    dtypes: Tuple[str, ...] = ("float32",)
    optimizers: Tuple[str, ...] = ("sgd",)
    factories: bool = False  # trains PyTorch modules by their own code; else a network is built from its layers
    flax: bool = False  # trains flax modules by their own code, where their files are
    stages: bool = False  # times forward, backward and update of a step by themselves
    compiles: bool = False  # each shape anew, which takes its time
    one_by_one: bool = False  # channels beyond the last full vector, as Eigen's products do them
    limits: Callable[[Layer], str] = no_limits  # what it lacks of a kind that it has; "" where nothing
    accelerators: bool = False  # trains on them too, not on the CPU only
    accelerator_dtypes: Tuple[str, ...] = ()  # that only some of them have
    torch_yardstick: bool = False  # its yardstick is PyTorch's own; another one is timed beside that
    yardstick_repeats: float = 0.015  # how far apart that comes out from process to process, relative

    def lacks(self, layer: Layer) -> str:
        """Why a layer cannot be built; "" where it can."""
        if layer.kind in KINDS and not KINDS[layer.kind].described:
            return "known by its own code only"
        return self.limits(layer) if layer.kind in self.kinds else f"no {layer.kind}"


Builder = TypeVar("Builder")


def checked_builders(runtime: str, builders: Dict[str, Builder]) -> Dict[str, Builder]:
    """A runtime's builders, which must be of exactly the kinds that name it in `ampere.core.kinds`."""
    wrong = sorted(built_by(runtime) ^ set(builders))
    if wrong:
        raise LookupError(f"either the kind or {runtime} has no builder of {', '.join(wrong)}, and the other claims it")
    return builders


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


def mnn_limits(layer: Layer) -> str:
    """What MNN lacks of the kinds that it builds; "" where nothing. docs/reference/mnn.md explains each gap."""
    c = layer.config
    if layer.kind == "norm_batch" and not c.get("bias", True):
        return "no batch norm without bias"
    if not layer.kind.startswith("conv"):
        return ""
    if len(c["kernel"]) > 2:
        return "no convolution of 3 dimensions"
    if layer.kind == "conv_transposed":
        return "no output padding, no groups" if any(c["output_padding"]) or c["groups"] != 1 else ""
    depthwise = layer.kind == "conv_grouped" and c["groups"] == 0 and layer.channels_in == layer.channels_out
    return "" if depthwise or c["groups"] == 1 else "no groups but depthwise"


def jax_limits(layer: Layer) -> str:
    """What flax has no module for."""
    if layer.kind == "conv_transposed" and layer.config["groups"] != 1:
        return "no transposed convolution in groups"
    return "no sparse gradients" if layer.config.get("sparse") else ""


OURS: Dict[str, Description] = {
    "torch": Description(
        ".torch_runtime",
        ("torch",),
        "PyTorch is not installed where the worker runs; pip install 'ampere-energy[torch]'",
        kinds=built_by("torch"),
        dtypes=EVERYWHERE,
        accelerators=True,
        accelerator_dtypes=OF_NVIDIA,
        optimizers=optimizers_of("torch"),
        factories=True,
        stages=True,
        torch_yardstick=True,
    ),
    "torch-compile": Description(
        ".torch_compile_runtime",
        ("torch",),
        "PyTorch is not installed where the worker runs; pip install 'ampere-energy[torch]'",
        kinds=built_by("torch"),
        dtypes=EVERYWHERE,
        accelerators=True,
        accelerator_dtypes=OF_NVIDIA,
        optimizers=optimizers_of("torch"),
        factories=True,
        compiles=True,
        torch_yardstick=True,
    ),
    "jax": Description(
        ".jax_runtime",
        ("jax", "flax", "optax"),
        "JAX is not installed where the worker runs; pip install 'ampere-energy[jax]'",
        kinds=built_by("jax"),
        dtypes=PLAIN_DTYPES,
        accelerators=True,
        optimizers=optimizers_of("jax"),
        flax=True,
        compiles=True,
        one_by_one=True,
        limits=jax_limits,
        yardstick_repeats=0.05,  # a step of it takes 2.05 ms in one process and 2.28 ms in the next
    ),
    "mnn": Description(
        ".mnn_runtime",
        ("MNN",),
        "MNN is not installed where the worker runs; pip install 'ampere-energy[mnn]'",
        kinds=built_by("mnn"),
        optimizers=optimizers_of("mnn"),
        limits=mnn_limits,
    ),
}


def names() -> Tuple[str, ...]:
    return (*OURS, *(name for name in _entries() if name not in OURS))


def description_of(name: str) -> Description:
    if name in OURS:
        return OURS[name]
    entry = _entries().get(name)
    if entry is None:
        raise bad_request("there is no runtime {!r}: the runtimes are {}".format(name, ", ".join(names())))
    return _of_others(entry)


def installed() -> Dict[str, str]:
    """The version of each runtime that could train here, without importing it: that takes seconds."""
    versions = {name: version_of(name) for name in names()}
    return {name: version for name, version in versions.items() if version is not None}


def version_of(name: str) -> Optional[str]:
    """None where one of its packages is missing, or its description is broken."""
    from importlib import metadata

    try:
        versions = [metadata.version(package) for package in description_of(name).packages]
    except (metadata.PackageNotFoundError, WorkerError):
        return None
    return versions[0] if versions else "unknown"


def _of_others(entry: Any) -> Description:
    """A package that is broken spoils its own runtime, and no other."""
    try:
        found = entry.load()
    except Exception as problem:
        raise _broken(entry, f"{type(problem).__name__}: {problem}") from None
    if not isinstance(found, Description):
        raise _broken(entry, f"a Description was expected, and found a {type(found).__name__}")
    return found


def _broken(entry: Any, problem: str) -> WorkerError:
    line = " ".join(problem.split())
    said = f"the runtime {entry.name} of {entry.value} cannot be used ({line}): update or uninstall its package"
    return WorkerError("runtime_missing", said)


def _entries() -> Dict[str, Any]:
    return _entries_on(tuple(sys.path))


@lru_cache(maxsize=1)
def _entries_on(path: Tuple[str, ...]) -> Dict[str, Any]:
    """Entry points of all packages on this path: their files are read once, and a runtime is described often."""
    from importlib import metadata  # which takes longer to import than all that `--help` needs

    every: Any = metadata.entry_points()
    # Before Python 3.10 they come as a dictionary.
    group: Iterable[Any] = every.select(group=GROUP) if hasattr(every, "select") else every.get(GROUP, ())
    return {entry.name: entry for entry in group}
