"""Every runtime by its name: ours, and those that other packages bring."""

from importlib import metadata
from typing import Any, Dict, Iterable, Optional, Tuple

from ...network import Layer
from ..errors import WorkerError, bad_request
from . import mnn_limits
from .description import Description

GROUP = "ampere.runtimes"


def jax_limits(layer: Layer) -> str:
    """What flax has no module for."""
    if layer.kind == "conv_transposed" and layer.config["groups"] != 1:
        return "no transposed convolution in groups"
    return ""


OURS: Dict[str, Description] = {
    "torch": Description(
        ".torch_runtime",
        ("torch",),
        "PyTorch is not installed where the worker runs; pip install 'ampere-energy[torch]'",
        factories=True,
        stages=True,
        torch_yardstick=True,
    ),
    "torch-compile": Description(
        ".torch_compile_runtime",
        ("torch",),
        "PyTorch is not installed where the worker runs; pip install 'ampere-energy[torch]'",
        factories=True,
        compiles=True,
        torch_yardstick=True,
    ),
    "jax": Description(
        ".jax_runtime",
        ("jax", "flax", "optax"),
        "JAX is not installed where the worker runs; pip install 'ampere-energy[jax]'",
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
        kinds=mnn_limits.KINDS,
        dtypes=mnn_limits.DTYPES,
        optimizers=mnn_limits.OPTIMIZERS,
        limits=mnn_limits.mnn_limits,
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
    every: Any = metadata.entry_points()
    # Before Python 3.10 they come as a dictionary.
    group: Iterable[Any] = every.select(group=GROUP) if hasattr(every, "select") else every.get(GROUP, ())
    return {entry.name: entry for entry in group}
