"""Windows of training, interleaved with windows of the yardstick (the reference step)."""

import math
import time
from typing import Any, Callable, List, NamedTuple, Tuple

from ampere.core.windows import YARDSTICKS_IN_WINDOW, Plan, Reading
from ampere.meters import CpuTimeMeter, Meter

# Windows of training, interleaved with windows of the yardstick.
#
#     pairing "step"     y T y T y T y          every iteration between two yardstick steps
#     with settling      ..y T ..y T ..y        the same, where a runtime says so
#     pairing "window"   ...yyyyy TTTT ...yyyyy TTTT ...yyyyy    a plain training loop, as a user would write it
#     a stage            y f[B]u y f[B]u y      only the stage is timed, the rest of the step runs all the same
#     with a counter     yyyyyyyy TTTTTTTT yyyyyyyy TTTTTTTT ...   whole windows in turn, long enough for it
#     pairing "plain"    TTTTTTTT               one loop by the clock, without a yardstick: the paper's protocol
#
# A window's ratio is its CPU time per iteration over that of its two neighbours: what the machine
# does to both (clock, throttling, neighbours) cancels. The dots are yardstick steps that do not count: after a
# larger network the first ones find their memory out of the caches, and cost up to a half more.

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


Step = Callable[[], Any]


class Window(NamedTuple):
    iterations: int
    seconds: float
    cpu_seconds: float
    joules: float  # NaN where the host reads the meter
    page_faults: int
    began: float = 0.0  # by this machine's performance counter

    @property
    def cpu_per_iteration(self) -> float:
        return self.cpu_seconds / self.iterations


class Target(NamedTuple):
    """What is timed, and what runs before and after it without being timed."""

    step: Step
    before: Tuple[Step, ...] = ()
    after: Tuple[Step, ...] = ()


def measure(
    plan: Plan, target: Target, yardstick: Step, meter: Meter, deadline: float
) -> Tuple[List[Window], List[Window]]:
    """Target windows and the yardstick windows around them: always one more of these. Past the deadline it stops."""
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
    """One window, and no yardstick."""
    return [window(target, iterations, meter)], []


def window(step: Step, iterations: int, meter: Meter) -> Window:
    faults = page_faults()
    meter.start()
    began, cpu = time.perf_counter_ns(), time.process_time_ns()
    for _ in range(iterations):
        step()
    cpu, ended = time.process_time_ns() - cpu, time.perf_counter_ns()
    joules = meter.stop()
    return Window(iterations, (ended - began) * 1e-9, cpu * 1e-9, joules, page_faults() - faults, began * 1e-9)


def ratios(targets: List[Window], yardsticks: List[Window]) -> List[float]:
    costs = [max(y.cpu_per_iteration, 1e-9) for y in yardsticks]
    return [2 * t.cpu_per_iteration / (a + b) for t, a, b in zip(targets, costs, costs[1:])]


def page_faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt if resource else 0


# The power of a steady load: what a gauge shows once it has settled, without the ends of a window.
#
# y | T T T T T T T T T T T T T T T | y
#     settling      samples, read         y: a few yardstick steps, only timed
#
# A sample shows the power of the update before it, and may be an update old when it is read: from two updates after
# the load began, all that is read is of this load. The energy of a window is off by up to a sample at both ends.


def measure_steady(
    target: Step, yardstick: Step, step_seconds: float, reading: Reading, meter: Meter
) -> Tuple[List[Window], List[Window]]:
    """One window of the target, between yardsticks that are only timed: these tell whether the clock is as usual."""
    clock = CpuTimeMeter()
    before = window(yardstick, YARDSTICKS_IN_WINDOW, clock)
    settle(target, reading)
    read = window(target, max(1, math.ceil(reading.seconds / max(step_seconds, 1e-6))), meter)
    return [read], [before, window(yardstick, YARDSTICKS_IN_WINDOW, clock)]


def settle(step: Callable[[], object], reading: Reading) -> None:
    until = time.monotonic() + reading.settling_seconds
    while time.monotonic() < until:
        step()
