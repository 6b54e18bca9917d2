"""Windows of training, interleaved with windows of the yardstick (the reference step).

    pairing "step"     y T y T y T y          every iteration between two yardstick steps
    with settling      ..y T ..y T ..y        the same, where a runtime says so
    pairing "window"   ...yyyyy TTTT ...yyyyy TTTT ...yyyyy    a plain training loop, as a user would write it
    a stage            y f[B]u y f[B]u y      only the stage is timed, the rest of the step runs all the same
    with a counter     yyyyyyyy TTTTTTTT yyyyyyyy TTTTTTTT ...   whole windows in turn, long enough for it
    pairing "plain"    TTTTTTTT               one loop by the clock, without a yardstick: the paper's way

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

from ampere.core.measurement import Window
from ampere.core.windows import YARDSTICKS_IN_WINDOW, Plan, Reading
from ampere.meters import CpuTimeMeter, Meter

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
    plan: Plan, target: Target, yardstick: Step, meter: Meter, deadline: float
) -> Tuple[List[Window], List[Window]]:
    """Target windows and the yardstick windows around them, one more of these; it stops past the deadline."""
    targets: List[Window] = []
    yardsticks = [_settled(yardstick, plan, meter)]
    for iterations in plan.targets:
        for step in target.before:
            step()
        targets.append(window(target.step, iterations, meter))
        for step in target.after:
            step()
        yardsticks.append(_settled(yardstick, plan, meter))
        if time.monotonic() > deadline:
            break
    return targets, yardsticks


def _settled(yardstick: Step, plan: Plan, meter: Meter) -> Window:
    for _ in range(plan.settling):
        yardstick()
    return window(yardstick, plan.yardsticks, meter)


def measure_plain(iterations: int, target: Step, meter: Meter) -> Tuple[List[Window], List[Window]]:
    """One window of the target, and no yardstick."""
    return [window(target, iterations, meter)], []


def window(step: Step, iterations: int, meter: Meter) -> Window:
    """One measured window of so many steps."""
    faults = page_faults()
    meter.start()
    began, cpu = time.perf_counter_ns(), time.process_time_ns()
    for _ in range(iterations):
        step()
    cpu, ended = time.process_time_ns() - cpu, time.perf_counter_ns()
    joules = meter.stop()
    return Window(
        iterations,
        (ended - began) * 1e-9,
        cpu * 1e-9,
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
    target: Step, yardstick: Step, step_seconds: float, reading: Reading, meter: Meter
) -> Tuple[List[Window], List[Window]]:
    """One window of the target, between yardsticks that are only timed, to see whether the clock is as usual."""
    clock = CpuTimeMeter()
    before = window(yardstick, YARDSTICKS_IN_WINDOW, clock)
    settle(target, reading)
    read = window(target, max(1, math.ceil(reading.seconds / max(step_seconds, 1e-6))), meter)
    return [read], unread([before, window(yardstick, YARDSTICKS_IN_WINDOW, clock)])


def settle(step: Callable[[], object], reading: Reading) -> None:
    """Repeat the step until a gauge shows nothing of the load before."""
    until = time.monotonic() + reading.settling_seconds
    while time.monotonic() < until:
        step()
