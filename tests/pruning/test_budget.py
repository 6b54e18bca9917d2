import pytest

from ampere.core.errors import UsageError
from ampere.pruning.budget import deviations, joules_allowed, part_of


@pytest.mark.parametrize(
    ("budget", "more", "joules"),
    [
        ("50%", {}, 1.0),
        (0.25, {}, 0.5),
        ("0.05J", {}, 0.05),
        ("5mJ", {}, 0.005),
        ("5 mJ", {}, 0.005),
        ("2kJ", {"iterations": 4000}, 0.5),
        ("1Wh", {"iterations": 3600}, 1.0),
        ("10%", {"iterations": 1000, "battery_joules": 5000.0}, 0.5),
        ("50%", {"iterations": 1000}, 1.0),
        ("100%", {"iterations": 1000, "battery_joules": 5000.0}, 5.0),
        (1.0, {"iterations": 1000, "battery_joules": 5000.0}, 5.0),
    ],
)
def test_what_an_iteration_may_cost(budget, more, joules):
    assert joules_allowed(budget, 2.0, **more) == pytest.approx(joules)


@pytest.mark.parametrize("budget", ["", "half", "-3J", "0J", "nan", "inf", "5 apples", "1.2.3J", "100%", "150%", 2.0])
def test_nonsense_is_refused(budget):
    with pytest.raises(UsageError, match="budget"):
        joules_allowed(budget, 2.0)


def test_a_millijoule_is_no_megajoule():
    assert joules_allowed("1MJ", 2.0) == pytest.approx(1e9 * joules_allowed("1mJ", 2.0))


def test_a_share_of_a_battery_needs_the_length_of_the_run():
    with pytest.raises(UsageError, match="--iterations"):
        joules_allowed("10%", 2.0, battery_joules=5000.0)


def test_a_battery_holds_no_more_than_itself():
    with pytest.raises(UsageError, match="more than it holds"):
        joules_allowed("150%", 2.0, iterations=1000, battery_joules=5000.0)


def test_joules_need_no_battery():
    with pytest.raises(UsageError, match="battery"):
        joules_allowed("10J", 2.0, battery_joules=5000.0)


def test_even_odds_are_the_estimate_itself():
    assert deviations(0.5) == 0
    assert deviations(0.9) == pytest.approx(1.2816, abs=1e-4)


@pytest.mark.parametrize("confidence", [0.0, 0.3, 1.0, 9.0, float("nan")])
def test_no_other_confidence(confidence):
    with pytest.raises(UsageError, match="confidence"):
        deviations(confidence)


def test_a_part_of_a_budget_is_written_as_the_budget_is():
    assert part_of("80%", 0.75) == part_of(0.8, 0.75) == "0.6"
    assert part_of("2.5 mJ", 0.5) == "1.25mJ"
