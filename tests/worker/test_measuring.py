"""Windows, ratios and flags, on clocks that the test moves."""

import math
import statistics
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ampere.core import Measurement, Meter, TrainingSetup
from ampere.core.measurement import Window, ratios, robust_spread
from ampere.core.windows import plan_steps, plan_windows
from ampere.meters import choose_meter
from ampere.worker.block import _flags as flags_of
from ampere.worker.measuring import Target, measure, measure_plain
from ampere.worker.requests import BlockRequest


def win(cpu, wall=None, iterations=1, joules=1.0, faults=0):
    return Window(iterations, cpu if wall is None else wall, cpu, joules, faults)


def request(iterations=3, threads=1):
    setup = TrainingSetup(threads=threads).to_json()
    return BlockRequest.from_json({"workload": {"factory": "a:b"}, "setup": setup, "iterations": iterations})


def flags(targets, yardsticks, losses=(1.0, 0.5), **more):
    return flags_of(request(**more), targets, yardsticks, losses)


def measured(targets, yardsticks):
    return Measurement(tuple(targets), tuple(yardsticks), Meter("any", False))


@given(st.integers(1, 5000), st.floats(0, 10))
def test_windows_hold_all_iterations(iterations, seconds):
    plan = plan_windows(iterations, seconds)
    assert sum(plan.targets) == iterations
    assert max(plan.targets) - min(plan.targets) <= 1
    assert min(plan.targets) >= min(4, iterations)


def test_every_target_stands_between_two_yardsticks():
    assert order_of(plan_steps(3)) == "yTyTyTy"
    assert order_of(plan_windows(8, 0.01)) == "TTTT".join(["yyy" + "yyyyy"] * 3)


def test_a_yardstick_may_have_to_settle_after_every_step():
    assert order_of(plan_steps(2, 2)) == "T".join(["yy" + "y"] * 3)


def order_of(plan):
    order = []
    measure(plan, Target(lambda: order.append("T")), lambda: order.append("y"), choose_meter(5.0), math.inf)
    return "".join(order)


def test_the_deadline_keeps_what_was_measured():
    plan = plan_steps(50)
    targets, yardsticks = measure(plan, Target(lambda: None), lambda: None, choose_meter(5.0), 0.0)
    assert (len(targets), len(yardsticks)) == (1, 2)


@given(st.lists(st.floats(0.5, 2.0), min_size=3, max_size=9))
def test_a_clock_that_changes_slowly_cancels(speeds):
    yardsticks = [win(s) for s in speeds]
    targets = [win(3 * (a + b) / 2) for a, b in pairwise(speeds)]
    assert statistics.median(ratios(targets, yardsticks)) == pytest.approx(3)


def test_a_single_pair_has_no_spread():
    assert robust_spread([1.0]) is None
    assert robust_spread([1.0, 1.0]) == 0.0


def test_flags():
    clean = ([win(1.0)] * 3, [win(1.0)] * 4)
    assert flags(*clean) == []
    assert flags(*clean, losses=(1.0, math.nan)) == ["nonfinite_loss"]
    assert flags(*clean, iterations=4) == ["short"]
    assert flags([win(1.0, wall=2.0)] * 3, [win(1.0)] * 4) == ["loaded"]
    assert flags([win(1.0, wall=2.0)] * 3, [win(1.0)] * 4, threads=2) == []
    assert flags([win(1.0), win(2.0), win(4.0)], [win(1.0)] * 4) == ["noisy"]


def test_several_threads_are_judged_by_wall_time():
    """Their busy time varies, because waiting threads spin."""
    yardsticks = [win(1.0)] * 4
    assert flags([win(1.0, wall=1.0), win(2.0, wall=1.0), win(4.0, wall=1.0)], yardsticks, threads=2) == []
    assert flags([win(1.0, wall=1.0), win(1.0, wall=2.0), win(1.0, wall=4.0)], yardsticks, threads=2) == ["noisy"]


def test_figures_are_per_iteration():
    found = measured([win(4.0, iterations=2, joules=6.0, faults=10)] * 2, [win(1.0)] * 3)
    assert (found.ratio(), found.busy_seconds, found.joules) == (2.0, 2.0, 3.0)
    assert (found.iterations, found.page_faults) == (4, 5.0)


def test_a_plain_loop_has_no_yardstick_and_no_ratio():
    order = []
    targets, yardsticks = measure_plain(5, lambda: order.append("T"), choose_meter(5.0))
    assert "".join(order) == "TTTTT"
    assert (len(targets), yardsticks) == (1, [])
    plain = [win(4.0, wall=8.0, iterations=4, joules=6.0)]
    found = measured(plain, [])
    assert found.ratio() is None
    assert (found.wall_seconds, found.busy_seconds, found.joules) == (2.0, 1.0, 1.5)
    assert flags(plain, [], iterations=4) == ["loaded"]


def test_joules_that_nobody_read_are_none_not_zero():
    assert measured([win(1.0, joules=None)] * 2, [win(1.0)] * 3).joules is None
    assert measured([win(1.0, joules=None), win(1.0)], [win(1.0)] * 3).joules is None


@given(
    st.lists(st.tuples(st.integers(1, 99), st.floats(1e-6, 1e3), st.one_of(st.none(), st.floats(0, 1e3))), min_size=1)
)
def test_a_measurement_comes_back_from_json_as_it_was(rows):
    windows = [Window(n, s, s, j) for n, s, j in rows]
    found = measured(windows, [*windows, windows[0]])
    assert Measurement.from_json(found.to_json()) == found
