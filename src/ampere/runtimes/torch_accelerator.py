"""An accelerator through PyTorch's device-neutral interface: CUDA, MPS, XPU, and backends that packages add.

Every backend has a module (`torch.cuda`, `torch.mps`, ...) whose functions differ a little. What one lacks is done
without: time between two waits instead of events, nothing said of memory.
"""

import contextlib
import gc
import os
import re
import time
from functools import cache
from typing import Any, Callable, Dict, List, Optional

import torch

from ampere.core.errors import ACCELERATOR, WorkerError, as_worker_error, first_line
from ampere.core.setup import AUTO

from .plain_script import kept_labels
from .processor import Timer

INSTALL = "pip install torch, with the --index-url that pytorch.org/get-started shows"
BUSY_SIGNS = ("busy or unavailable", "exclusive", "in use")
UNITS_WHERE_UNKNOWN = 16
UNITS = ("multi_processor_count", "gpu_subslice_count", "max_compute_units")  # as cards of several makers say it
USUAL_KINDS = ("cuda", "mps", "xpu")
VISIBLE = {"cuda": "CUDA_VISIBLE_DEVICES", "xpu": "ZE_AFFINITY_MASK"}


def find_accelerator(on: str, in_use: bool = False) -> Optional["TorchAccelerator"]:
    """The accelerator of that name; None where `auto` finds none. WorkerError where it cannot be used.

    `in_use`: by this process, which is left as it is. Then a name without a number is that of its current card.
    """
    if on == AUTO:
        kind = _reported()
        return find_accelerator(kind, in_use) if kind else None
    kind, _, index = on.partition(":")
    module = _module_of(kind)
    if module is None or not _available(module):
        raise refused(f"{kind} cannot be used here{_reason(kind, module)}: {_instead(kind, module)}")
    count = int(module.device_count()) if hasattr(module, "device_count") else 1
    number = int(index or (module.current_device() if in_use and hasattr(module, "current_device") else 0))
    if number >= count:
        raise refused(f"{on} is not visible: {_seen(kind, count)}")
    found = TorchAccelerator(kind, number, module)
    if not in_use:
        found.touch()
    return found


@cache
def has_accelerator() -> bool:
    """Whether PyTorch sees one. CUDA is asked through NVML, so that this process may still be forked."""
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    return bool(_reported())


def refused(message: str) -> WorkerError:
    return WorkerError(ACCELERATOR, message)


class TorchAccelerator:
    """One card of a backend, and its queue."""

    def __init__(self, kind: str, index: int, module: Any) -> None:
        self.kind, self.index = kind, index
        self.name = kind if kind == "mps" else f"{kind}:{index}"
        self.device = torch.device(self.name)
        self._module = module
        self._timed_by_events = self._has_events()

    def touch(self) -> None:
        """Run something, so that a card that is in use or full is noticed before anything is measured."""
        try:
            if hasattr(self._module, "set_device"):
                self._module.set_device(self.index)  # before the first context, which would be on another card
            torch.ones(1, device=self.device).add_(1).cpu()
        except (RuntimeError, AssertionError) as problem:
            line = first_line(problem)
            if as_worker_error(problem).type == "out_of_memory":
                raise self.too_full(line) from None
            if any(sign in line.lower() for sign in BUSY_SIGNS):
                said = f"{self.name} is in use by another process ({line:.120}): wait for it, or name another"
                raise refused(said) from None
            raise refused(f"{self.name} does not work ({line:.200}): update its driver, or PyTorch") from None

    def too_full(self, line: str) -> WorkerError:
        free = self._free_bytes()
        left = "" if free is None else f", {free / 2**20:.0f} MiB are free"
        what = f"{self.name} has too little memory for the reference step{left} ({line:.120})"
        return refused(f"{what}: end the programs that use it")

    def synchronize(self) -> None:
        if self.kind == "mps":
            self._module.synchronize()  # which takes no device
        else:
            self._module.synchronize(self.device)

    def timer(self) -> Timer:
        """By events, which the device itself times; else by the clock, between two waits."""
        if not self._timed_by_events:
            began = time.perf_counter_ns()

            def waited() -> float:
                self.synchronize()
                return (time.perf_counter_ns() - began) * 1e-9

            return waited
        first, last = (self._module.Event(enable_timing=True) for _ in range(2))
        first.record()

        def between() -> float:
            last.record()
            self.synchronize()
            return float(first.elapsed_time(last)) * 1e-3  # milliseconds

        return between

    def release(self) -> None:
        """Collect what only cycles keep, then return what the allocator has cached."""
        kept_labels.cache_clear()  # on a card they take its memory
        gc.collect()
        with contextlib.suppress(RuntimeError):  # a backend without a cache
            if hasattr(self._module, "empty_cache"):
                self._module.empty_cache()

    def allocated_bytes(self) -> Optional[int]:
        """Bytes of tensors that are on it; None where it does not say."""
        for name in ("memory_allocated", "current_allocated_memory"):
            if hasattr(self._module, name):
                return int(getattr(self._module, name)())
        return None

    def watch_peak(self) -> Callable[[], Optional[int]]:
        """Begin to watch the allocator; returns the most bytes of tensors since then, None where it does not say."""
        begin, most = (
            getattr(self._module, name, None) for name in ("reset_peak_memory_stats", "max_memory_allocated")
        )
        if begin is None or most is None:
            return lambda: None
        begin()
        return lambda: int(most())

    @property
    def units(self) -> int:
        """Processors of the card that work at the same time: the reference step must be large enough for all."""
        properties = self._properties()
        found = (int(getattr(properties, name, 0) or 0) for name in UNITS)
        return next((count for count in found if count > 0), UNITS_WHERE_UNKNOWN)

    @property
    def uuid(self) -> str:
        """What tells it from other cards, however they are numbered; "" where it does not say."""
        found = str(getattr(self._properties(), "uuid", "") or "")
        return found if not found or self.kind != "cuda" or found.startswith("GPU-") else f"GPU-{found}"

    def describe(self) -> Dict[str, Any]:
        properties = self._properties()
        said: Dict[str, Any] = {
            "on": self.name,
            "name": str(getattr(properties, "name", "") or self.kind),
            "memory_bytes": _whole(getattr(properties, "total_memory", None)) or self._recommended_bytes(),
            "units": self.units,
            "visible": os.environ.get(VISIBLE.get(self.kind, "")) or None,
            "events": self._timed_by_events,
        }
        return {field: value for field, value in said.items() if value is not None}

    def _properties(self) -> Any:
        try:
            return self._module.get_device_properties(self.index)
        except (AttributeError, RuntimeError, TypeError):
            return None

    def _recommended_bytes(self) -> Optional[int]:
        """Of Apple's chips, which share their memory."""
        found = getattr(self._module, "recommended_max_memory", None)
        return _whole(found()) if found else None

    def _free_bytes(self) -> Optional[int]:
        try:
            return int(self._module.mem_get_info(self.index)[0])
        except (AttributeError, RuntimeError, TypeError):
            return None

    def _has_events(self) -> bool:
        """Whether events of this backend tell time: some have the class, and not the clock."""
        try:
            first, last = (self._module.Event(enable_timing=True) for _ in range(2))
            return callable(first.record) and callable(last.elapsed_time)
        except (AttributeError, RuntimeError, TypeError, NotImplementedError):
            return False


def as_accelerator_error(problem: BaseException, on: str) -> WorkerError:
    """An exception of a step there, as a type and one line."""
    lacking = re.search("'(aten::[^']+)'", str(problem))
    if isinstance(problem, NotImplementedError) and lacking:
        kind = on.partition(":")[0]
        remedy = "set PYTORCH_ENABLE_MPS_FALLBACK=1, with which it runs on the CPU, or " if kind == "mps" else ""
        return WorkerError("variant_failed", f"{kind} has no {lacking[1]:.80}: {remedy}leave out --on {kind}")
    return as_worker_error(problem)


def _reported() -> str:
    """The kind of accelerator that PyTorch reports and that is available; "" where there is none."""
    accelerator = getattr(torch, "accelerator", None)  # since PyTorch 2.6
    if accelerator is not None:
        found = accelerator.current_accelerator() if accelerator.is_available() else None
        return str(found.type) if found is not None else ""
    return next((kind for kind in USUAL_KINDS if (module := _module_of(kind)) is not None and _available(module)), "")


def _module_of(kind: str) -> Any:
    """`torch.cuda` and its like. MPS says in another module whether it is there."""
    module = getattr(torch, kind, None)
    return module if hasattr(module, "synchronize") else None


def _available(module: Any) -> bool:
    if module is getattr(torch, "mps", None):
        return bool(torch.backends.mps.is_available())
    return bool(module.is_available()) if hasattr(module, "is_available") else False


def _reason(kind: str, module: Any) -> str:
    """Why a backend is not available, as far as it says."""
    if module is None:
        return f" (this PyTorch {torch.__version__} knows no {kind})"
    try:
        if hasattr(module, "init"):
            module.init()
    except (RuntimeError, AssertionError) as problem:  # such as a driver that is too old
        return f" ({str(problem).strip().splitlines()[0][:160]})"
    return ""


def _instead(kind: str, module: Any) -> str:
    there = _reported()
    other = there and there != kind
    found = f"PyTorch reports {there}, so use --on {there}" if other else "PyTorch reports the CPU only"
    if module is None:
        return f"{found}; other names are {', '.join(USUAL_KINDS)}, where PyTorch is built for them"
    return f"{found}; or install a build of PyTorch for {kind} ({INSTALL})"


def _seen(kind: str, count: int) -> str:
    seen: List[str] = [f"{kind}:{number}" for number in range(min(count, 8))]
    hidden = os.environ.get(VISIBLE.get(kind, ""))
    limits = f", as {VISIBLE[kind]}={hidden} says" if hidden else ""
    return f"PyTorch sees {', '.join(seen) or f'no {kind}'}{limits}"


def _whole(number: Any) -> Optional[int]:
    return int(number) if number else None
