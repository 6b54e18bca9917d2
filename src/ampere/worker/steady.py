"""The power of a load that lasts: what a gauge tells once it has settled, without the ends of a window.

y | T T T T T T T T T T T T T T T | y
    settling      samples, read         y: a few yardstick steps, only timed

A sample tells the power of the update before it, and may be an update old when it is read: two updates after the load
began all that is read is of this load. The energy of a window is off by up to a sample at both ends; its power is not.
"""

import math
import time
from typing import Callable, List, Tuple

from .measuring import Step, Window, window
from .meters import CpuTimeMeter, Meter
from .planning import YARDSTICKS_IN_WINDOW, Reading


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
