"""A gauge's reading of one network: as it is, or relative to the yardstick where the clock has changed."""

from dataclasses import replace

import pytest
from tests.synthetic import block, chain

from ampere.core import Meter, TrainingSetup
from ampere.estimation.normalization import normalized
from ampere.profiling.experiment import Experiment
from ampere.profiling.meter_windows import slow, steady_power, timed_seconds
from ampere.profiling.running import usual_seconds
from ampere.profiling.strategies.strategy import CLOCK_MOVED, MeasurementContext

GAUGE = Meter("gauge", True, "board", window_seconds=60.0, update_seconds=1.0)
COUNTER = replace(GAUGE, update_seconds=0.0)
KNOWN, WATTS, YARDSTICK = 0.010, 4.0, 0.002


class Board:
    """A step costs WATTS x KNOWN joules, how slow it may be; at another clock, by `slowed`, half the power is drawn."""

    def __init__(self, slowed=1.0):
        self.slowed, self.requests = slowed, []

    def block(self, workload, setup, **how):
        self.requests.append(how)
        seconds, watts = KNOWN * self.slowed, WATTS * (0.5 if self.slowed > 1.2 else 1 / self.slowed)
        return block(seconds, YARDSTICK * self.slowed, joules=watts * seconds, meter=GAUGE)

    def yardstick_now(self):
        self.requests.append("yardstick")
        return 0.5 * 3.0 * YARDSTICK * self.slowed


def read(board, meter=GAUGE):
    network, kept = chain(3, 8), []
    context = MeasurementContext(
        None, {"tuned": board}, TrainingSetup(), meter, YARDSTICK, kept.append, "yardstick", 3.0 * YARDSTICK,
        yardstick_now=board.yardstick_now,
    )  # fmt: skip
    seen = context.read_power(Experiment(network, {}, "network"), KNOWN)
    assert kept == [seen]
    return normalized([seen], context.reference)[0]


@pytest.mark.parametrize("slowed", [1.0, 1 + 0.9 * CLOCK_MOVED])
def test_at_the_usual_clock_joules_are_taken_as_they_are(slowed):
    board = Board(slowed)
    found = read(board)
    assert found.joules == pytest.approx(WATTS * KNOWN)
    assert found.joules_rounds == (found.joules,)
    assert [how["power"] for how in board.requests] == [True]


def test_at_another_clock_it_is_found_in_the_yardsticks():
    board = Board(1.5)
    found = read(board)
    assert "yardstick" in board.requests
    assert found.joules == pytest.approx(WATTS * KNOWN)


def test_only_slow_gauges_are_read_like_that():
    assert steady_power(GAUGE)
    assert not steady_power(COUNTER)
    assert not steady_power(GAUGE, timing="wallclock")
    assert not steady_power(GAUGE, method="sequential")
    assert not slow(replace(GAUGE, window_seconds=1.0))


@pytest.mark.parametrize(("budget", "timed"), [(10.0, 4.0), (40.0, 16.0), (100.0, 44.0), (1000.0, 60.0)])
def test_a_budget_is_shared_between_time_and_power(budget, timed):
    """Eight readings of 7 s at a row a second, and 60 % of the budget at most; the rest is for time, and 60 s of it."""
    assert timed_seconds(GAUGE, True, budget) == pytest.approx(timed)


@pytest.mark.parametrize(("budget", "timed"), [(10.0, 15.0), (200.0, 20.0), (1000.0, 40.0)])
def test_a_counter_of_joules_leaves_time_a_tenth(budget, timed):
    assert timed_seconds(COUNTER, False, budget) == pytest.approx(timed)


def test_a_gauge_takes_minutes_where_a_counter_takes_a_quarter_of_an_hour():
    assert usual_seconds(GAUGE, steady=True) < 200 < usual_seconds(COUNTER)


def test_how_long_a_meter_is_watched_does_not_make_it_another():
    assert GAUGE.counts_as(COUNTER)
    assert not GAUGE.counts_as(replace(GAUGE, scope="another board"))
