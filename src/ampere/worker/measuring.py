"""Windows of training, interleaved with windows of the yardstick (the reference step).

    pairing "step"     y T y T y T y          every iteration between two yardstick steps
    with settling      ..y T ..y T ..y        the same, where a runtime says so
    pairing "window"   ...yyyyy TTTT ...yyyyy TTTT ...yyyyy    a plain training loop, as a user would write it
    a stage            y f[B]u y f[B]u y      only the stage is timed, the rest of the step runs all the same
    with a counter     yyyyyyyy TTTTTTTT yyyyyyyy TTTTTTTT ...   whole windows in turn, long enough for it
    pairing "plain"    TTTTTTTT               one loop by the clock, without a yardstick: the paper's way

On an accelerator a window begins and ends with a wait for its queue, and the meter is read after the wait.

A window's ratio is its time per iteration over that of its two neighbours, CPU time of one thread and wall time of
several: what the machine does to both (clock, throttling, neighbours) cancels. The dots are yardstick steps that do not
count: after a larger network the first ones find their memory out of the caches, and cost up to a half more.

The power of a steady load is what a gauge shows once it has settled, without the ends of a window:

    y | T T T T T T T T T T T T T T T | y
        settling      samples, read         y: a few yardstick steps, only timed

A sample shows the power of the update before it, and may be one update old when it is read. From two updates after
the load began, every sample belongs to this load. The energy of a window is off by up to a sample at both ends.
"""

import math
import time
from typing import Any, Callable, List, NamedTuple, Tuple

from ampere.core.measurement import WALL, Window
from ampere.core.windows import (
    RAMP_SECONDS_AT_MOST,
    RAMP_WINDOW_SECONDS,
    STILL_FASTER,
    YARDSTICKS_IN_WINDOW,
    Plan,
    Reading,
)
from ampere.meters import CpuTimeMeter, Meter
from ampere.runtimes import CPU, Processor

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


Step = Callable[[], Any]


class Target(NamedTuple):
    """What is timed, and what runs before and after it without being timed."""

    step: Step
    before: Tuple[Step, ...] = ()
    after: Tuple[Step, ...] = ()


def measure(
    plan: Plan, target: Target, yardstick: Step, meter: Meter, deadline: float, processor: Processor = CPU
) -> Tuple[List[Window], List[Window]]:
    """Target windows and the yardstick windows around them, one more of these; it stops past the deadline."""
    targets: List[Window] = []
    yardsticks = [_settled(yardstick, plan, meter, processor)]
    for iterations in plan.targets:
        for step in target.before:
            step()
        targets.append(window(target.step, iterations, meter, processor))
        for step in target.after:
            step()
        yardsticks.append(_settled(yardstick, plan, meter, processor))
        if time.monotonic() > deadline:
            break
    return targets, yardsticks


def _settled(yardstick: Step, plan: Plan, meter: Meter, processor: Processor) -> Window:
    for _ in range(plan.settling):
        yardstick()
    return window(yardstick, plan.yardsticks, meter, processor)


def measure_plain(
    iterations: int, target: Step, meter: Meter, processor: Processor = CPU
) -> Tuple[List[Window], List[Window]]:
    """One window of the target, and no yardstick."""
    return [window(target, iterations, meter, processor)], []


def window(step: Step, iterations: int, meter: Meter, processor: Processor = CPU) -> Window:
    """One measured window of so many steps."""
    faults = page_faults()
    processor.synchronize()  # what was queued before is no part of it
    meter.start()
    began, timer = time.perf_counter_ns(), processor.timer()
    for _ in range(iterations):
        step()
    busy_seconds, ended = timer(), time.perf_counter_ns()  # the timer waits until the last step is done
    joules = meter.stop()
    return Window(
        iterations,
        (ended - began) * 1e-9,
        busy_seconds,
        None if math.isnan(joules) else joules,  # NaN where the host reads the meter
        page_faults() - faults,
        began * 1e-9,
    )


def unread(windows: List[Window]) -> List[Window]:
    """The same windows without joules: only timed."""
    return [window._replace(joules=None, began=None) for window in windows]


def page_faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt if resource else 0


def measure_steady(
    target: Step,
    yardstick: Step,
    step_seconds: float,
    reading: Reading,
    meter: Meter,
    processor: Processor = CPU,
) -> Tuple[List[Window], List[Window]]:
    """One window of the target, between yardsticks that are only timed, to see whether the clock is as usual."""
    clock = CpuTimeMeter()
    before = window(yardstick, YARDSTICKS_IN_WINDOW, clock, processor)
    settle(target, reading, processor)
    read = window(target, max(1, math.ceil(reading.seconds / max(step_seconds, 1e-6))), meter, processor)
    return [read], unread([before, window(yardstick, YARDSTICKS_IN_WINDOW, clock, processor)])


def settle(step: Callable[[], object], reading: Reading, processor: Processor = CPU) -> None:
    """Repeat the step until a gauge shows nothing of the load before."""
    until = time.monotonic() + reading.settling_seconds
    while time.monotonic() < until:
        step()
        processor.synchronize()  # else the queue would grow for as long


def raise_clocks(step: Callable[[], object], processor: Processor) -> None:
    """Repeat the step until it gets no faster: a card that was idle takes up to seconds to raise its clocks."""
    clock, steps, quickest = CpuTimeMeter(), 1, math.inf
    ends = time.monotonic() + RAMP_SECONDS_AT_MOST
    while time.monotonic() < ends:
        seconds = window(step, steps, clock, processor).per_iteration(WALL)
        if seconds * steps >= RAMP_WINDOW_SECONDS and seconds > STILL_FASTER * quickest:
            return
        quickest = min(quickest, seconds)
        steps = max(1, math.ceil(RAMP_WINDOW_SECONDS / max(seconds, 1e-6)))
