"""Windows, ratios and flags, on clocks that the test moves."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ampere.core import TrainingSetup
from ampere.core.windows import median, plan_steps, plan_windows, quantile, relative_spread
from ampere.meters import choose_meter
from ampere.worker.block import Trial, summary
from ampere.worker.measuring import Target, Window, measure, measure_plain, ratios
from ampere.worker.requests import BlockRequest


def win(cpu, wall=None, iterations=1, joules=1.0, faults=0):
    return Window(iterations, cpu if wall is None else wall, cpu, joules, faults)


def request(iterations=3, threads=1):
    setup = TrainingSetup(threads=threads).to_json()
    return BlockRequest.from_json({"subject": {"factory": "a:b"}, "setup": setup, "iterations": iterations})


def shown(targets, yardsticks, losses=(1.0, 0.5), **more):
    return summary(request(**more), Trial(targets, yardsticks, losses, 7, ()))


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
    assert median(ratios(targets, yardsticks)) == pytest.approx(3)


def test_a_single_pair_has_no_spread():
    assert relative_spread([1.0]) is None
    assert relative_spread([1.0, 1.0]) == 0.0


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1))
def test_quantiles_lie_within(values, share):
    assert min(values) <= quantile(values, share) * (1 + 1e-12) + 1e-12
    assert quantile(values, share) <= max(values) * (1 + 1e-12)


def test_flags():
    clean = ([win(1.0)] * 3, [win(1.0)] * 4)
    assert shown(*clean)["flags"] == []
    assert shown(*clean, losses=(1.0, math.nan))["flags"] == ["nonfinite_loss"]
    assert shown(*clean, iterations=4)["flags"] == ["short"]
    assert shown([win(1.0, wall=2.0)] * 3, [win(1.0)] * 4)["flags"] == ["loaded"]
    assert shown([win(1.0, wall=2.0)] * 3, [win(1.0)] * 4, threads=2)["flags"] == []
    assert shown([win(1.0), win(2.0), win(4.0)], [win(1.0)] * 4)["flags"] == ["noisy"]


def test_figures_are_per_iteration():
    result = shown([win(4.0, iterations=2, joules=6.0, faults=10)] * 2, [win(1.0)] * 3, iterations=4)
    assert (result["ratio"], result["cpu_seconds"], result["joules"]) == (2.0, 2.0, 3.0)
    assert (result["iterations"], result["page_faults"], result["parameters"]) == (4, 5.0, 7)


def test_a_plain_loop_has_no_yardstick_and_no_ratio():
    order = []
    targets, yardsticks = measure_plain(5, lambda: order.append("T"), choose_meter(5.0))
    assert "".join(order) == "TTTTT"
    assert (len(targets), yardsticks) == (1, [])
    result = shown([win(4.0, wall=8.0, iterations=4, joules=6.0)], [], iterations=4)
    assert (result["ratio"], result["yardstick_seconds"], result["spread"]) == (None, None, None)
    assert (result["seconds"], result["cpu_seconds"], result["joules"]) == (2.0, 1.0, 1.5)
    assert result["flags"] == ["loaded"]
