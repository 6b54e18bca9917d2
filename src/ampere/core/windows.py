"""How long the windows of a measurement are. Host and worker plan with the same numbers."""

import math
from typing import NamedTuple, Tuple

WINDOW_SECONDS = 0.04
LEAST_IN_WINDOW = 4
PAIRS_FOR_COUNTER = 3
YARDSTICKS_IN_WINDOW = 5
SETTLING = 3  # yardstick steps before those of a window
SETTLING_UPDATES = 2
SAMPLES = 5
RAMP_WINDOW_SECONDS, RAMP_SECONDS_AT_MOST = 0.1, 3.0  # while the clocks of a card rise that was idle
STILL_FASTER = 0.97  # of the quickest window before
LEAST_SECONDS = 1.5  # a fast gauge is watched for longer than its samples take: other programs come and go


class Plan(NamedTuple):
    """The windows of one block."""

    targets: Tuple[int, ...]  # iterations of each window
    yardsticks: int  # steps of each yardstick window
    settling: int = 0  # yardstick steps before it that do not count


def plan_steps(iterations: int, settling: int = 0) -> Plan:
    """A window for every iteration."""
    return Plan((1,) * iterations, 1, settling)


def plan_windows(iterations: int, seconds_per_iteration: float) -> Plan:
    """Windows of about 40 ms and at least 4 iterations, as even as the total allows."""
    length = max(LEAST_IN_WINDOW, math.ceil(WINDOW_SECONDS / max(seconds_per_iteration, 1e-6)))
    count = max(1, iterations // length)
    return Plan(tuple((iterations + i) // count for i in range(count)), YARDSTICKS_IN_WINDOW, SETTLING)


def plan_for_counter(iterations: int, step_seconds: float, yardstick_seconds: float, counter_seconds: float) -> Plan:
    """A few windows of target and yardstick, together as long as a counter needs for each."""
    target = _steps_in(counter_seconds / PAIRS_FOR_COUNTER, step_seconds, math.ceil(iterations / PAIRS_FOR_COUNTER))
    yardstick = _steps_in(counter_seconds / PAIRS_FOR_COUNTER, yardstick_seconds, YARDSTICKS_IN_WINDOW)
    return Plan((target,) * PAIRS_FOR_COUNTER, yardstick)


def _steps_in(seconds: float, step_seconds: float, least: int) -> int:
    return max(least, math.ceil(seconds / max(step_seconds, 1e-6)))


class Reading(NamedTuple):
    """How long a gauge is read once the load is steady."""

    settling_seconds: float
    seconds: float

    @property
    def whole(self) -> float:
        return self.settling_seconds + self.seconds


def reading_by(update_seconds: float) -> Reading:
    """The reading that a gauge needs which updates so often."""
    return Reading(SETTLING_UPDATES * update_seconds, max(LEAST_SECONDS, SAMPLES * update_seconds))
