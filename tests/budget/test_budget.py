"""A job that ends before its joules do, whatever its steps cost."""

import json
import math
import re
import warnings
from random import Random

import pytest

from ampere import Budget, Estimate, Meter
from ampere.budget.spending import READINGS_APART, Counter, Forecast
from ampere.core.errors import DeviceError, UsageError

pytestmark = pytest.mark.filterwarnings("ignore:the budget ends the job here")
ONE_JOULE = Estimate("net", 1.0, 0.02, 1e-3, (), (), (), Meter("cpu-time", False), "system")


@pytest.fixture(autouse=True)
def every_step_is_read(monkeypatch):
    """Steps here take no time; real ones take longer than many readings."""
    monkeypatch.setattr("ampere.budget.spending.READINGS_APART", 0)


class SimulatedBattery:
    """Drained by the test: what a meter of a real device would read."""

    def __init__(self):
        self.drained = self._mark = 0.0

    def describe(self):
        return {"name": "simulated battery", "measured": False, "simulated": True}

    def start(self):
        self._mark = self.drained

    def stop(self):
        return self.drained - self._mark


def trained(budget, battery, cost):
    """Until the budget stops it; the joules of every step."""
    spent = []
    with budget:
        for step in budget.steps(range(100_000)):
            spent.append(cost(step))
            battery.drained += spent[-1]
    return spent


@pytest.mark.parametrize("estimate", [None, ONE_JOULE], ids=["unknown", "estimated"])
def test_it_stops_within_a_step_of_exhaustion_and_never_after_it(estimate):
    for seed in range(100):
        rng, battery = Random(seed), SimulatedBattery()
        budget = Budget(rng.uniform(50, 300), estimate=estimate, meter=battery)
        spent = trained(budget, battery, lambda step, rng=rng: rng.gauss(1.1, 0.02) * (2 if step == 0 else 1))
        assert budget.stopped
        assert sum(spent) <= budget.joules
        assert budget.joules - sum(spent) < 2 * 1.1
        assert budget.spent == pytest.approx(sum(spent))


def test_it_follows_a_device_that_gets_hot():
    battery = SimulatedBattery()
    budget = Budget(1000, estimate=ONE_JOULE, meter=battery)
    spent = trained(budget, battery, lambda step: 1 + 0.001 * step)
    assert 1000 - 2 * spent[-1] < sum(spent) <= 1000
    assert budget.joules_per_step == pytest.approx(spent[-1], rel=0.05)


def test_a_reserve_is_kept_for_what_comes_after():
    battery, saved = SimulatedBattery(), []
    budget = Budget(100, reserve=10, meter=battery, on_stop=lambda b: saved.append(b.spent))
    spent = trained(budget, battery, lambda step: 1.0)
    assert len(spent) == 90
    assert saved == [90]
    assert budget.left == 0


def test_a_job_that_fits_is_left_alone():
    battery = SimulatedBattery()
    with Budget(100, meter=battery, on_stop=lambda b: pytest.fail("stopped")) as budget:
        for _ in budget.steps(range(50)):
            battery.drained += 1
    assert (budget.stopped, budget.steps_done, budget.left) == (False, 50, 50)
    assert (
        budget.summary() == "50 steps spent 50.0 J of 100 J (simulated battery, simulated); 50.0 J left, about 50 steps"
    )


def test_it_says_before_the_start_that_the_job_does_not_fit():
    with pytest.warns(UserWarning, match=r"200 iterations need about 200 J, 100 J are allowed: about 100 more"):
        Budget(100, estimate=ONE_JOULE, iterations=200, meter=SimulatedBattery()).__enter__()


def test_the_forecast_is_corrected_as_it_goes():
    battery = SimulatedBattery()
    with Budget(1000, estimate=ONE_JOULE, iterations=200, meter=battery) as budget:
        assert budget.forecast_joules == pytest.approx(200)
        for _ in range(100):
            battery.drained += 2
            assert budget.step()
        assert budget.forecast_joules == pytest.approx(400, rel=0.02)
        assert budget.steps_left == 100


def told(caught):
    return [str(warning.message) for warning in caught]


def test_a_forecast_that_comes_to_exceed_the_budget_is_told_once_and_so_is_the_end():
    battery = SimulatedBattery()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        budget = Budget(300, estimate=ONE_JOULE, iterations=200, meter=battery)
        spent = trained(budget, battery, lambda step: 1.0 if step < 20 else 2.0)
    forecast, end = told(caught)
    assert re.match(r"200 iterations need about 3\d\d J, 300 J are allowed: about 1\d\d more will fit", forecast)
    assert end.startswith(f"the budget ends the job here: {len(spent)} steps spent")


@pytest.mark.parametrize("joules", [100, 150])
def test_a_job_that_does_all_its_iterations_is_told_nothing(joules):
    battery = SimulatedBattery()
    budget = Budget(joules, iterations=100, meter=battery)
    with warnings.catch_warnings(record=True) as caught, budget:
        warnings.simplefilter("always")
        for step in range(100):
            battery.drained += 0.99 if step else 1.98  # the first one is dear, and says nothing of the others
            budget.step()
    assert told(caught) == []


def test_without_a_meter_steps_cost_their_estimate():
    with Budget(10, estimate=ONE_JOULE, meter=None) as budget:
        assert sum(1 for _ in budget.steps(range(100))) == 9  # and not 10: an estimate may be a little low
    assert budget.meter.name == "estimate"
    assert "modelled" in budget.summary()


def test_a_job_goes_on_from_a_checkpoint():
    battery = SimulatedBattery()
    with Budget(100, meter=battery) as first:
        for _ in range(60):
            battery.drained += 1
            first.step()
        state = json.loads(json.dumps(first.state_dict()))
    second = Budget(100, meter=battery)
    second.load_state_dict(state)
    assert (second.spent, second.steps_done, second.steps_left) == (60, 60, 40)
    assert len(trained(second, battery, lambda step: 1.0)) == 40
    third = Budget(100, meter=battery)
    third.load_state_dict(second.state_dict())
    assert trained(third, battery, lambda step: 1.0) == []


def test_this_machines_meter_counts_what_the_process_does():
    with Budget(battery="1Wh") as budget:
        while budget.spent == 0:
            sum(range(100_000))
            budget.step()
    assert budget.meter.name
    assert budget.summary().startswith(f"{budget.steps_done:,} steps spent")


def test_reading_waits_where_it_is_slow(monkeypatch):
    now, reads = [0.0], []

    class Slow(SimulatedBattery):
        def stop(self):
            now[0] += 0.01
            reads.append(now[0])
            return 1.0

    monkeypatch.setattr("ampere.budget.spending.time.perf_counter", lambda: now[0])
    monkeypatch.setattr("ampere.budget.spending.READINGS_APART", READINGS_APART)
    counter = Counter(Slow(), Forecast())
    counter.start()
    for _ in range(1000):
        now[0] += 0.01
        counter.step()
    assert 4 <= len(reads) <= 1 + 1000 / READINGS_APART
    assert 0.01 * len(reads) < 0.01 * now[0]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "either joules=500 or battery"),
        ({"joules": 1.0, "battery": "1Wh"}, "give one of them"),
        ({"joules": 0}, "positive number"),
        ({"joules": -5}, "positive number"),
        ({"joules": math.nan}, "positive number"),
        ({"battery": "big"}, "15Wh"),
        ({"joules": 5, "reserve": 5}, "leaves nothing"),
        ({"joules": 5, "iterations": 0}, "no job"),
        ({"joules": 5, "meter": None}, "give estimate"),
    ],
)
def test_what_makes_no_sense_is_refused(given, says):
    with pytest.raises(UsageError, match=says):
        Budget(**given)


@pytest.mark.parametrize(
    "spoilt",
    [
        {"format": 2},
        {"meter": "RAPL"},
        {"joules": -1.0},
        {"joules": math.nan},
        {"forecast": None},
        {"steps": "many"},
    ],
)
def test_a_foreign_or_damaged_state_is_refused(spoilt):
    budget = Budget(5, meter=SimulatedBattery())
    with pytest.raises(UsageError, match="cannot go on from this state"):
        budget.load_state_dict({**budget.state_dict(), **spoilt})
    with pytest.raises(UsageError, match="is missing"):
        budget.load_state_dict({"format": 1, "meter": "simulated battery"})


def test_a_meter_that_reads_nonsense_is_not_believed():
    battery = SimulatedBattery()
    battery.stop = lambda: math.nan
    with pytest.raises(DeviceError, match="cannot guard a budget"), Budget(5, meter=battery) as budget:
        budget.step()


def test_steps_outside_the_block_are_refused():
    with pytest.raises(UsageError, match="with ampere"):
        Budget(5).step()
