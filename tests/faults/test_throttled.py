"""A clock that falls by 30 % in the middle of a block: flagged, and the figure hardly moves. Simulated steps."""

from random import Random
from statistics import median

import pytest

from ampere.core.measurement import Window, ratios
from ampere.worker.block import slowed_down

pytestmark = pytest.mark.fault(8)

STEP, YARDSTICK, JITTER = 0.004, 0.003, 0.03
FALL = 1 / 0.7


def block(rng, falls_at=None, pairs=10):
    """Windows as `measure` makes them, of steps that take a little more or less each time."""
    seconds = []
    for number in range(2 * pairs + 1):
        slower = FALL if falls_at is not None and number >= falls_at * (2 * pairs + 1) else 1.0
        usual = YARDSTICK if number % 2 == 0 else STEP
        seconds.append(usual * slower * rng.lognormvariate(0.0, JITTER))
    windows = [Window(1, s, s, 5 * s, 0) for s in seconds]
    return windows[1::2], windows[::2]


@pytest.mark.parametrize("pairs", [4, 6, 8, 12])
def test_at_least_95_in_100_are_flagged_and_at_most_2_in_100_for_nothing(pairs):
    rng = Random(pairs)
    fell = sum(slowed_down(block(rng, rng.uniform(0.3, 0.6), pairs)[1]) for _ in range(200))
    clean = sum(slowed_down(block(rng, None, pairs)[1]) for _ in range(200))
    assert fell >= 190
    assert clean <= 4


def test_the_figure_moves_by_at_most_3_percent():
    rng, moved = Random(1), []
    for _ in range(200):
        moved.append(median(ratios(*block(rng, rng.uniform(0.3, 0.6)))) / (STEP / YARDSTICK) - 1)
    assert abs(median(moved)) <= 0.01
    assert sum(abs(m) for m in moved) / len(moved) <= 0.03


def test_a_few_yardsticks_are_not_enough_to_flag():
    assert not slowed_down(block(Random(0), 0.5, 1)[1])
