"""How long windows of a measurement are, and robust figures of them."""

import math
from typing import List, NamedTuple, Optional, Tuple

# How long the windows of a measurement are; host and worker plan with the same figures.

WINDOW_SECONDS = 0.04
LEAST_IN_WINDOW = 4
PAIRS_FOR_COUNTER = 3
YARDSTICKS_IN_WINDOW = 5
SETTLING = 3  # yardstick steps before those of a window
SETTLING_UPDATES = 2
SAMPLES = 5
LEAST_SECONDS = 1.5  # a fast gauge is watched for longer than its samples take: other programs come and go


class Plan(NamedTuple):
    targets: Tuple[int, ...]  # iterations of each window
    yardsticks: int  # steps of each yardstick window
    settling: int = 0  # yardstick steps before it that do not count


def plan_steps(iterations: int, settling: int = 0) -> Plan:
    return Plan((1,) * iterations, 1, settling)


def plan_windows(iterations: int, seconds_per_iteration: float) -> Plan:
    """Windows of about 40 ms and at least 4 iterations, as even as the total allows."""
    length = max(LEAST_IN_WINDOW, math.ceil(WINDOW_SECONDS / max(seconds_per_iteration, 1e-6)))
    count = max(1, iterations // length)
    return Plan(tuple((iterations + i) // count for i in range(count)), YARDSTICKS_IN_WINDOW, SETTLING)


def plan_for_counter(iterations: int, step_seconds: float, yardstick_seconds: float, counter_seconds: float) -> Plan:
    """The seconds that a counter needs, of the target and of the yardstick, in a few windows of each."""
    target = _steps_in(counter_seconds / PAIRS_FOR_COUNTER, step_seconds, math.ceil(iterations / PAIRS_FOR_COUNTER))
    beside = _steps_in(counter_seconds / PAIRS_FOR_COUNTER, yardstick_seconds, YARDSTICKS_IN_WINDOW)
    return Plan((target,) * PAIRS_FOR_COUNTER, beside)


def _steps_in(seconds: float, step_seconds: float, least: int) -> int:
    return max(least, math.ceil(seconds / max(step_seconds, 1e-6)))


class Reading(NamedTuple):
    settling_seconds: float
    seconds: float

    @property
    def whole(self) -> float:
        return self.settling_seconds + self.seconds


def reading_by(update_seconds: float) -> Reading:
    return Reading(SETTLING_UPDATES * update_seconds, max(LEAST_SECONDS, SAMPLES * update_seconds))


# Figures that a few wild values do not move.


def relative_spread(values: List[float]) -> Optional[float]:
    """Robust standard deviation over the median; of a single value it is None, not 0."""
    if len(values) < 2:
        return None
    middle = median(values)
    return 1.4826 * median([abs(v - middle) for v in values]) / middle if middle else None


def median(values: List[float]) -> float:
    return quantile(values, 0.5)


def quantile(values: List[float], share: float) -> float:
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
