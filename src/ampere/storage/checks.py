"""Checks of a network, measurement or profile before it is stored or used. Failures are ValueError."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ampere.core import KINDS, Layer, Measurement, Meter, Network, work
from ampere.core.errors import ProfileError
from ampere.core.kinds import USUAL_WIDTH
from ampere.core.layer import TRAILING_CLASSES
from ampere.core.measurement import Window
from ampere.core.setup import ALLOCATORS, TIMINGS

# What a file may hold, so that loading it and estimating with it takes 2 s and 500 MB at most.
MOST_LAYERS = 100_000  # of a network
MOST_DIFFERENT = 2_000  # layers of a network
MOST_KNOWN = 8_000  # different layers of a profile
MOST_NAMES = 50_000  # layers of a profile with different names
MOST_WINDOWS = 100_000  # of a measurement
MOST_TEXTS = 1_000
LONGEST_TEXT = 10_000
MOST_DIMENSIONS = 16
DEEPEST_RECURRENT = 1_000

# What numbers may be: wider than any device, and narrow enough that sums of their squares are finite.
LARGEST_SIZE = 10**15
MOST_WORK = 1e24
SECONDS = (1e-12, 1e9)  # of an iteration or a window
JOULES = (1e-15, 1e12)
WATTS = (0.0, 1e7)  # of an idle device
YARDSTICK_SECONDS = (1e-9, 1e6)
YARDSTICK_JOULES = (1e-12, 1e9)
PROFILING_SECONDS = (0.0, 1e9)
MOST_THREADS = 100_000

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
    check_count(len(network.layers), MOST_LAYERS, "layers")
    check_count(len(network.distinct), MOST_DIFFERENT, "different layers")
    check_texts("notes of a network", network.notes)
    if not 1 <= network.batch <= LARGEST_SIZE:
        raise ValueError(f"its batch size is {network.batch:.6g}")


def check_count(count: int, most: int, what: str) -> None:
    if count > most:
        raise ValueError(f"it has more than {most:,} {what}")


def check_texts(what: str, texts: Sequence[str]) -> None:
    if len(texts) > MOST_TEXTS or any(len(text) > LONGEST_TEXT for text in texts):
        raise ValueError(f"the {what} are more than {MOST_TEXTS:,}, or longer than {LONGEST_TEXT:,} characters")


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
        amounts, coordinates = work(layer), KINDS[layer.kind].coordinates(layer, USUAL_WIDTH)
        good = all(0 <= n <= MOST_WORK for n in amounts) and all(1e-12 <= n <= MOST_WORK for n in coordinates)
        if layer.kind == "operation":  # its operands are texts
            good = good and all(_size(n) for operand in KINDS[layer.kind].operands(layer) for n in operand.shape)
    except _MALFORMED as error:
        raise ValueError(f"the work of a layer of kind {layer.kind} cannot be computed: {error!r:.100}") from None
    if not good:
        raise ValueError(f"a layer of kind {layer.kind} would do negative or absurd amounts of work")


def check_measurement(measurement: Measurement) -> None:
    m = measurement
    if not m.target or not len(m.target) <= MOST_WINDOWS >= len(m.yardstick):
        raise ValueError(f"a measurement has 1 to {MOST_WINDOWS:,} windows")
    if m.yardstick and len(m.yardstick) != len(m.target) + 1:
        raise ValueError("the windows of the yardstick must be one more than those of the target")
    for window in (*m.target, *m.yardstick):
        check_window(window)
    check_range("seconds of an iteration", m.busy_seconds, SECONDS)
    check_range("seconds of an iteration", m.wall_seconds, SECONDS)
    check_range("joules of an iteration", m.joules, JOULES)
    check_range("seconds of a block", m.elapsed_seconds, PROFILING_SECONDS)
    check_range("seconds of compiling", m.compile_seconds, PROFILING_SECONDS)
    check_range("parameters of a block", m.parameters, (0, LARGEST_SIZE))
    for name, value in m.conditions.items():
        divisor = name.startswith("yardstick_")  # joules or seconds that others are divided by
        check_range(f"condition {name[:40]}", value, YARDSTICK_JOULES if divisor else (-LARGEST_SIZE, LARGEST_SIZE))
    for loss in m.loss:
        check_range("loss", loss, (-1e300, 1e300))
    if len(m.pattern) > MOST_TEXTS or not all(abs(t) <= LARGEST_SIZE for t in m.pattern):
        raise ValueError("the load pattern of a block must be finite")
    check_texts("flags of a measurement", m.flags)
    if m.allocator not in ALLOCATORS:
        raise ValueError(f"allocator {m.allocator!r:.60} is none of {', '.join(ALLOCATORS)}")
    check_meter(m.meter)


def check_window(window: Window) -> None:
    iterations, wall, busy, joules, faults, began = window
    if not (isinstance(iterations, int) and 1 <= iterations <= LARGEST_SIZE):
        raise ValueError(f"a window must have 1 to {LARGEST_SIZE:.0e} iterations")
    if not 1e-9 <= wall <= 1e9 or not 0 <= busy <= 1e9:
        raise ValueError("seconds of a window must be positive and finite")
    if not 0 <= (joules or 0.0) <= 1e12 or not 0 <= faults <= LARGEST_SIZE or not abs(began or 0.0) <= LARGEST_SIZE:
        raise ValueError("joules of a window must be finite and not negative")


def check_meter(meter: Meter) -> None:
    texts = (meter.name, meter.scope, meter.origin)
    truths = (meter.measured, meter.simulated, meter.replayed)
    described = all(isinstance(t, str) for t in texts) and all(isinstance(t, bool) for t in truths)
    if not (described and all(map(_size, (meter.window_seconds, meter.update_seconds, meter.factor)))):
        raise ValueError("the description of its meter is malformed")
    check_range("the factor of a meter", meter.factor, (1.0, 1000.0))
    check_texts("name, scope and origin of a meter", texts)


def check_range(what: str, number: float | None, limits: tuple[float, float]) -> None:
    """Raise unless a number is in a range. None is a number that was not read."""
    if number is not None and not limits[0] <= number <= limits[1]:
        raise ValueError(f"{what} must be finite and between {limits[0]:g} and {limits[1]:g}, not {number:.6g}")


def check_header(made: Any) -> None:
    """Check what a profile and the header of its journal have in common: where and how measurements were made."""
    check_device_record(made.device)
    check_meter(made.meter)
    check_how(made.method, made.timing)
    if not re.fullmatch(r"[\w.+-]{1,60}", made.setup.runtime) or made.setup.threads > MOST_THREADS:
        raise ValueError(f"its setup names the runtime {made.setup.runtime!r:.60} with {made.setup.threads} threads")
    check_range("the yardstick's seconds", made.yardstick_seconds, YARDSTICK_SECONDS)
    check_range("the yardstick's joules", made.yardstick_joules, YARDSTICK_JOULES)
    check_range("the common yardstick's seconds", made.common_yardstick_seconds, YARDSTICK_SECONDS)
    check_range("the common yardstick's joules", made.common_yardstick_joules, YARDSTICK_JOULES)
    check_range("idle watts", made.watts_idle, WATTS)


def check_device_record(device: Mapping[str, Any]) -> None:
    """Check what commands read of a device; other entries are only shown."""
    if not isinstance(device.get("id"), str) or not device["id"]:
        raise ValueError("its device has no id")
    if not isinstance(device.get("cpu", ""), str) or not _size(device.get("cores", 1)):
        raise ValueError("the processor of its device is malformed")
    if not isinstance(device.get("accelerator", ""), str):
        raise ValueError("the accelerator of its device is malformed")
    allocators = device.get("allocators", [*ALLOCATORS])
    if not isinstance(allocators, (list, tuple)) or not allocators or not {*allocators} <= {*ALLOCATORS}:
        raise ValueError(f"the allocators of its device are none of {', '.join(ALLOCATORS)}")
    runtimes = device.get("runtimes", {})
    if not isinstance(runtimes, dict) or not all(isinstance(v, (str, type(None))) for v in runtimes.values()):
        raise ValueError("the runtimes of its device are malformed")


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
        *(n for tail in layer.trailing for n in (tail.values_in, tail.values_out, tail.weight)),
    ]


def _plain(kind: str, key: str, value: Any) -> bool:
    if key in SHAPES:
        return isinstance(value, tuple) and len(value) <= MOST_DIMENSIONS and all(map(_size, value))
    if kind in ("opaque", "operation") and key not in OPAQUE_NUMBERS:
        return all(map(_simple, value)) if isinstance(value, tuple) else _simple(value)
    return _size(value) and not (key == "layers" and value > DEEPEST_RECURRENT)


def _size(value: Any) -> bool:
    return isinstance(value, (int, float)) and 0 <= value <= LARGEST_SIZE


def _simple(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_TEXT
    return value is None or (isinstance(value, (int, float)) and abs(value) <= LARGEST_SIZE)
