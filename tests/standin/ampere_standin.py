"""A stand-in for an accelerator: a PyTorch backend in Python whose operations run on the CPU, behind a queue.

    host     op op op op          wait ............|
    card     |op--|op--|op--|op--------------------|      each takes `lag` times its CPU time, after those before it

A tensor on it is a wrapper that claims the device `standin:0` and holds a CPU tensor. Values are there at once; what
is late is the card's clock: `synchronize`, events and the meter follow the queue. Memory is counted by storage, with a
limit. An operation that mixes tensors of the card and of the CPU is refused, as on any card.

PyTorch loads it by itself, as it loads backends of others: by an entry point of the group `torch.backends`.
AMPERE_STANDIN may hold JSON that changes the settings below. With `steady` the card's clock stands still while the
process waits for a core, so that device time is as undisturbed by others as CPU time is.
What is not exercised: streams, autocast, fused recurrent layers.
"""

import bisect
import itertools
import json
import os
import sys
import threading
import time
import types
import weakref
from typing import ClassVar

import torch

NAME = "standin"
UUID = "GPU-5eed0000-0000-0000-0000-000000000001"
USUAL = {
    "bytes": 2**30,
    "lag": 2.0,  # times the CPU's seconds
    "steady": False,
    "cards": 1,
    "nvml": None,  # or settings of tests/standin/pynvml.py
    "images": None,  # in the reference step; else as many as fill a card of one unit
    "driver": None,  # why there is no card
    "in_use": None,  # what a card of somebody else says
    "lacks": (),  # operations
}
SETTINGS = {**USUAL, **json.loads(os.environ.get("AMPERE_STANDIN", "{}"))}
KEPT_SECONDS = 30.0  # of what the card did, for its meter
aten = torch.ops.aten


class Card:
    """The clock and the memory of the card."""

    def __init__(self):
        self.waited = 0.0
        self.began = self.now()
        self.until = self.began  # when the queue will be empty
        self.spans = []  # of work, merged, oldest first
        self.allocated = self.reserved = self.peak = 0
        self.lock = threading.RLock()

    def now(self):
        return time.process_time() + self.waited if SETTINGS["steady"] else time.perf_counter()

    def queue(self, seconds):
        with self.lock:
            start = max(self.now(), self.until)
            self.until = start + seconds
            if self.spans and start - self.spans[-1][1] < 1e-9:
                self.spans[-1][1] = self.until
            else:
                self.spans.append([start, self.until])
                if self.spans[0][1] < start - KEPT_SECONDS:
                    del self.spans[0]

    @property
    def empty(self):
        return self.now() >= self.until

    def wait(self):
        while not self.empty:
            left = max(0.0, self.until - self.now())
            time.sleep(left)
            self.waited += left

    def busy(self, start, end):
        """Seconds of work between two moments."""
        with self.lock:
            first = bisect.bisect_right(self.spans, start, key=lambda span: span[1])
            within = itertools.takewhile(lambda span: span[0] < end, itertools.islice(self.spans, first, None))
            return sum(min(end, b) - max(start, a) for a, b in within)

    def allocate(self, count):
        if SETTINGS["in_use"]:
            raise RuntimeError(SETTINGS["in_use"])
        with self.lock:
            if self.allocated + count > SETTINGS["bytes"]:
                free = SETTINGS["bytes"] - self.allocated
                raise torch.OutOfMemoryError(f"{NAME} out of memory. Tried to allocate {count} bytes, {free} are free.")
            self.allocated += count
            self.reserved = max(self.reserved, self.allocated)
            self.peak = max(self.peak, self.allocated)

    def free(self, count):
        with self.lock:
            self.allocated -= count


CARD = Card()


class Storage:
    """The memory of one CPU storage, for as long as a tensor of the card uses it."""

    known: ClassVar = weakref.WeakValueDictionary()  # by address

    def __init__(self, count):
        CARD.allocate(count)
        self.count = count

    def __del__(self):
        if hasattr(self, "count"):
            CARD.free(self.count)

    @classmethod
    def of(cls, bare):
        storage = bare.untyped_storage()
        address, count = storage.data_ptr(), storage.nbytes()
        if not count:
            return None
        found = cls.known.get(address)
        if found is None:
            found = cls.known[address] = cls(count)
        return found


class StandinTensor(torch.Tensor):
    """A tensor on the card."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, bare):
        made = torch.Tensor._make_wrapper_subclass(
            cls, bare.size(), strides=bare.stride(), dtype=bare.dtype, device=torch.device(NAME, 0)
        )
        made.memory = Storage.of(bare)  # before the values: they may not fit
        made.bare = bare
        return made

    def __init__(self, bare):
        pass

    def __repr__(self):
        return f"StandinTensor({tuple(self.shape)}, {self.dtype})"

    @classmethod
    def __torch_dispatch__(cls, operation, kinds, given=(), named=None):
        return run(operation, given, named or {})


MIXES = (aten.copy_.default, aten._to_copy.default, aten.index.Tensor, aten.index_put_.default)


def each(change, value):
    """`change` of a value, or of all in a list: operations know no other containers."""
    return type(value)([each(change, one) for one in value]) if type(value) in (list, tuple) else change(value)


def run(operation, given, named):
    if operation._schema.name in SETTINGS["lacks"]:
        lacking = operation._schema.name
        raise NotImplementedError(f"The operator '{lacking}' is not currently implemented for the {NAME} device.")
    ours, others = {}, set()

    def bare(value):
        if isinstance(value, StandinTensor):
            ours[id(value.bare)] = value
            return value.bare
        if isinstance(value, torch.Tensor):
            others.add(id(value))
            if value.dim() and operation not in MIXES:
                raise RuntimeError(
                    f"Expected all tensors to be on the same device, but found at least two devices, {NAME}:0 and "
                    f"{value.device}! (in {operation})"
                )
        if isinstance(value, torch.device) and value.type == NAME:
            return torch.device("cpu")
        return value

    device = named.get("device")
    to_host = operation is aten._to_copy.default and device is not None and device.type == "cpu"
    into_host = operation is aten.copy_.default and not isinstance(given[0], StandinTensor)
    given, named = each(bare, given), {name: each(bare, value) for name, value in named.items()}
    if operation is aten._fused_sdp_choice.default:
        return 0  # products and a softmax: the CPU's fused kernel has another name
    if to_host or into_host or operation is aten._local_scalar_dense.default:
        CARD.wait()
    began = time.thread_time()
    made = operation(*given, **named)
    CARD.queue(SETTINGS["lag"] * (time.thread_time() - began))

    def worn(value):
        if not isinstance(value, torch.Tensor) or to_host or id(value) in others:
            return value
        return ours.get(id(value)) if id(value) in ours else StandinTensor(value)

    return each(worn, made)


def _empty(size, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    form = torch.contiguous_format if memory_format is None else memory_format
    return StandinTensor(torch.empty(size, dtype=dtype, memory_format=form))


def _empty_strided(size, stride, dtype=None, layout=None, device=None, pin_memory=None):
    return StandinTensor(torch.empty_strided(size, stride, dtype=dtype))


def _arange(*ends, dtype=None, layout=None, device=None, pin_memory=None):
    """A wrapper's size is fixed when it is made, and the usual way makes an empty one and grows it."""
    return StandinTensor(torch.arange(*ends, dtype=dtype))


class Event:
    """The moment at which the queue gets to it."""

    def __init__(self, enable_timing=False):
        self._at = None

    def record(self, stream=None):
        self._at = max(CARD.now(), CARD.until)

    def elapsed_time(self, other):
        if not CARD.empty:
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        return (other._at - self._at) * 1e3

    def synchronize(self):
        CARD.wait()


def _module():
    module = types.ModuleType(f"torch.{NAME}")
    module.Event = Event
    module.is_available = lambda: not SETTINGS["driver"]
    module.init = _init
    module.is_initialized = lambda: True
    module.device_count = lambda: SETTINGS["cards"]
    module.current_device = lambda: 0
    module.set_device = lambda device: None
    module.synchronize = lambda device=None: CARD.wait()
    module.empty_cache = _empty_cache
    module.memory_allocated = lambda device=None: CARD.allocated
    module.max_memory_allocated = lambda device=None: CARD.peak
    module.reset_peak_memory_stats = lambda device=None: setattr(CARD, "peak", CARD.allocated)
    module.memory_reserved = lambda device=None: CARD.reserved
    module.mem_get_info = lambda device=None: (SETTINGS["bytes"] - CARD.allocated, SETTINGS["bytes"])
    module.manual_seed = module.manual_seed_all = lambda seed: None
    module._is_in_bad_fork = lambda: False
    module.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16]
    module.get_device_properties = _properties
    return module


def _init():
    if SETTINGS["driver"]:
        raise RuntimeError(SETTINGS["driver"])


def _properties(device=None):
    if SETTINGS["images"]:  # asked for before the reference step is built
        sys.modules["ampere.runtimes.torch_runtime"].IMAGES_PER_UNIT = SETTINGS["images"]
    return types.SimpleNamespace(
        name="Stand-in card", total_memory=SETTINGS["bytes"], multi_processor_count=1, uuid=UUID
    )


def _empty_cache():
    CARD.reserved = CARD.allocated


_registered = []  # registrations live as long as this


def load():
    """The entry point."""
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

    if _registered:
        return
    _setup_privateuseone_for_python_backend(NAME, backend_module=_module())
    library = torch.library.Library("aten", "IMPL")
    kernels = {
        "empty.memory_format": _empty,
        "empty_strided": _empty_strided,
        "arange": _arange,
        "arange.start": _arange,
        "arange.start_step": _arange,
    }
    for name, kernel in kernels.items():
        library.impl(name, kernel, "PrivateUse1")
    _registered.append(library)
