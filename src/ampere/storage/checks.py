"""Checks of a network or measurement before it is stored or used. Failures are ValueError."""

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ampere.core import KINDS, Layer, Measurement, Meter, Network, work
from ampere.core.errors import ProfileError
from ampere.core.kinds import USUAL_WIDTH
from ampere.core.layer import TRAILING_CLASSES
from ampere.core.measurement import Window
from ampere.core.setup import ALLOCATORS, TIMINGS

MOST_LAYERS = 100_000
LARGEST_SIZE = 10**15
MOST_DIMENSIONS = 16
DEEPEST_RECURRENT = 1_000
LONGEST_TEXT = 10_000
SMALLEST = 1e-300  # every larger number has a finite logarithm and inverse
MOST_WINDOWS = 100_000
LONGEST_SECONDS = 1e9
MOST_JOULES = 1e12

# A kind's arithmetic multiplies these, and a text or list times a number could fill the memory.
SHAPES = {"size", "size_in", "kernel", "stride", "padding", "dilation", "output_padding", "lead"}
OPAQUE_NUMBERS = {"batch", "launches", "flops", "values", "parameters", "parameter_tensors"}

_MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


@contextmanager
def checked(what: str) -> Iterator[None]:
    """Turn every error that a malformed record causes in this block into a ProfileError about `what`."""
    try:
        yield
    except ProfileError as error:
        raise ProfileError(f"{what}: {error}") from error
    except _MALFORMED as error:
        raise ProfileError(f"{what} is malformed ({_why(error)}): create it again, or use another") from error


def _why(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"it lacks {error!s:.100}"
    return f"{error!s:.200}" if isinstance(error, ValueError) else "a part of it has the wrong type or shape"


def check_network(network: Network) -> None:
    check_extent(network)
    for layer in network.distinct:
        check_layer(layer)


def check_extent(network: Network) -> None:
    if not network.layers:
        raise ValueError("it has no layers")
    if len(network.layers) > MOST_LAYERS:
        raise ValueError(f"it has more than {MOST_LAYERS:,} layers")
    if not 1 <= network.batch <= LARGEST_SIZE:
        raise ValueError(f"its batch size is {network.batch}")


def check_layer(layer: Layer) -> None:
    """Raise unless a layer is of a known kind, has plain values, and does finite work in finite coordinates."""
    if layer.kind not in KINDS:
        raise ValueError(f"there is no layer kind {layer.kind[:40]!r}; a newer Ampere may have it")
    for key, value in layer.config.items():
        if not _plain(layer.kind, key, value):
            raise ValueError(f"a layer of kind {layer.kind} has an invalid {key[:40]}")
    if not all(map(_size, _sizes(layer))) or any(tail.op not in TRAILING_CLASSES for tail in layer.trailing):
        raise ValueError(f"a layer of kind {layer.kind} has invalid channels or trailing operations")
    try:
        good = _within(work(layer), 0) and _within(KINDS[layer.kind].coordinates(layer, USUAL_WIDTH), 1e-12)
    except _MALFORMED as error:
        raise ValueError(f"the work of a layer of kind {layer.kind} cannot be computed: {error!r:.100}") from None
    if not good:
        raise ValueError(f"a layer of kind {layer.kind} would do negative or infinite work")


def check_measurement(measurement: Measurement) -> None:
    m = measurement
    if not m.target or not len(m.target) <= MOST_WINDOWS >= len(m.yardstick):
        raise ValueError(f"a measurement has 1 to {MOST_WINDOWS} windows")
    if m.yardstick and len(m.yardstick) != len(m.target) + 1:
        raise ValueError("the windows of the yardstick must be one more than those of the target")
    for window in (*m.target, *m.yardstick):
        check_window(window)
    if not _within((m.busy_seconds, m.wall_seconds, 1.0 if m.joules is None else m.joules), SMALLEST):
        raise ValueError("seconds and joules of an iteration must be positive")
    if not all(math.isfinite(value) for value in m.conditions.values()):
        raise ValueError("a condition is not finite")
    if not _within((m.elapsed_seconds, m.compile_seconds, m.parameters, *m.pattern), 0):
        raise ValueError("seconds and parameters of a block must be finite and not negative")
    if m.allocator not in ALLOCATORS:
        raise ValueError(f"allocator {m.allocator!r:.60} is none of {', '.join(ALLOCATORS)}")
    check_meter(m.meter)


def check_window(window: Window) -> None:
    if not (isinstance(window.iterations, int) and 1 <= window.iterations <= LARGEST_SIZE):
        raise ValueError("a window must have 1 iteration or more")
    if not SMALLEST <= window.wall_seconds <= LONGEST_SECONDS or not 0 <= window.busy_seconds <= LONGEST_SECONDS:
        raise ValueError("seconds of a window must be positive and finite")
    if not 0 <= (window.joules or 0.0) <= MOST_JOULES or not _within((window.page_faults, window.began or 0.0), 0):
        raise ValueError("joules of a window must be finite and not negative")


def check_meter(meter: Meter) -> None:
    texts, truths = (meter.name, meter.scope), (meter.measured, meter.simulated, meter.replayed)
    described = all(isinstance(t, str) for t in texts) and all(isinstance(t, bool) for t in truths)
    if not (described and _size(meter.window_seconds)):
        raise ValueError("the description of its meter is malformed")


def check_positive(what: str, number: float) -> None:
    if not _within((number,), SMALLEST):
        raise ValueError(f"{what} must be positive and finite")


def check_how(method: str, timing: str) -> None:
    """Check how a profile was made. A method of a newer Ampere is accepted here, and refused where it is used."""
    if not isinstance(method, str) or not re.fullmatch(r"[a-z][a-z_]{0,39}", method):
        raise ValueError(f"there is no method {method!r:.60}")
    if timing not in TIMINGS:
        raise ValueError(f"timing {timing!r:.60} is none of {', '.join(TIMINGS)}")


def _sizes(layer: Layer) -> list[float]:
    return [
        layer.channels_in,
        layer.channels_out,
        *(n for tail in layer.trailing for n in (tail.values_in, tail.values_out)),
    ]


def _within(numbers: Iterable[Any], least: float) -> bool:
    return all(math.isfinite(n) and n >= least for n in numbers)


def _plain(kind: str, key: str, value: Any) -> bool:
    if key in SHAPES:
        return isinstance(value, tuple) and len(value) <= MOST_DIMENSIONS and all(map(_size, value))
    if kind == "opaque" and key not in OPAQUE_NUMBERS:
        return all(map(_simple, value)) if isinstance(value, tuple) else _simple(value)
    return _size(value) and not (key == "layers" and value > DEEPEST_RECURRENT)


def _size(value: Any) -> bool:
    return isinstance(value, (int, float)) and 0 <= value <= LARGEST_SIZE


def _simple(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_TEXT
    return value is None or (isinstance(value, (int, float)) and abs(value) <= LARGEST_SIZE)
