"""A job that ends before its joules do, whatever its steps cost."""

import json
import math
import re
import warnings
from dataclasses import replace
from random import Random

import pytest
import torch

from ampere import Budget, Estimate, Meter, TrainingSetup
from ampere.budget.budget import _metered
from ampere.budget.ranks import Ranks, _made
from ampere.budget.readings import CardMeter
from ampere.budget.spending import READINGS_APART, Counter, Forecast
from ampere.core import units
from ampere.core.errors import AcceleratorError, UsageError
from ampere.meters import CpuTimeMeter

pytestmark = pytest.mark.filterwarnings("ignore:the budget stops the job")
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
        budget.summary() == "50 steps: 50.0 J spent + 50.0 J left = 100.0 J budget (simulated battery, simulated); "
        "room for about 50 more steps"
    )


def test_it_says_before_the_start_that_the_job_does_not_fit():
    with pytest.warns(
        UserWarning,
        match=r"200 iterations need about 200 J, but 0.0 J spent .* room for about 100 more steps",
    ):
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


def messages(caught):
    return [str(warning.message) for warning in caught]


def test_a_forecast_that_comes_to_exceed_the_budget_is_warned_of_once_and_so_is_the_end():
    battery = SimulatedBattery()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        budget = Budget(300, estimate=ONE_JOULE, iterations=200, meter=battery)
        spent = trained(budget, battery, lambda step: 1.0 if step < 20 else 2.0)
    forecast, end = messages(caught)
    assert re.match(r"200 iterations need about 3\d\d J, but .* 300.0 J budget .* about 1\d\d more steps", forecast)
    assert end.startswith(f"the budget stops the job after {len(spent)} of 200 steps: ")


@pytest.mark.parametrize("joules", [100, 150])
def test_a_job_that_does_all_its_iterations_is_not_warned(joules):
    battery = SimulatedBattery()
    budget = Budget(joules, iterations=100, meter=battery)
    with warnings.catch_warnings(record=True) as caught, budget:
        warnings.simplefilter("always")
        for step in range(100):
            battery.drained += 0.99 if step else 1.98  # the first one costs more, and says nothing of the others
            budget.step()
    assert messages(caught) == []


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
    assert budget.summary().startswith(f"{units.counted(budget.steps_done, 'step')}: ")


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
        ({"joules": 5, "iterations": 0}, "1 or more"),
        ({"joules": 5, "meter": None}, "give estimate"),
    ],
)
def test_what_makes_no_sense_is_refused(given, says):
    with pytest.raises(UsageError, match=says):
        Budget(**given)


@pytest.mark.parametrize(
    "spoilt",
    [
        {"format": 1},
        {"meter": "RAPL"},
        {"joules": -1.0},
        {"joules": math.nan},
        {"forecast": None},
        {"steps": "many"},
    ],
)
def test_a_foreign_or_damaged_state_is_refused(spoilt):
    budget = Budget(5, meter=SimulatedBattery())
    with pytest.raises(UsageError, match="cannot continue from this state"):
        budget.load_state_dict({**budget.state_dict(), **spoilt})
    with pytest.raises(UsageError, match="is missing"):
        budget.load_state_dict({"format": 2, "meter": "simulated battery"})


def test_steps_outside_the_block_are_refused():
    with pytest.raises(UsageError, match="with ampere"):
        Budget(5).step()


@pytest.mark.parametrize("estimate", [None, ONE_JOULE], ids=["unknown", "estimated"])
@pytest.mark.parametrize("warm_up", [(30.0,), (12.0, 8.0, 5.0, 3.0, 2.0), (2.0, 15.0, 1.0, 9.0, 4.0)])
def test_steps_of_the_warm_up_do_not_stop_a_job(estimate, warm_up):
    """On a busy machine the first steps cost many times as much as those that follow."""
    battery = SimulatedBattery()
    budget = Budget(50, estimate=estimate, meter=battery)
    spent = trained(budget, battery, lambda step: warm_up[step] if step < len(warm_up) else 1.0)
    assert 50 - 2 < sum(spent) <= 50


def test_a_budget_of_a_few_steps_is_kept_too():
    battery = SimulatedBattery()
    assert trained(Budget(4.5, meter=battery), battery, lambda step: 2.0 if step == 0 else 1.0) == [2.0, 1.0, 1.0]


def test_a_warm_up_is_no_part_of_the_forecast():
    battery = SimulatedBattery()
    with warnings.catch_warnings(record=True) as caught, Budget(150, iterations=100, meter=battery) as budget:
        warnings.simplefilter("always")
        for step in range(50):
            battery.drained += 6.0 if step < 5 else 1.0
            budget.step()
    assert budget.joules_per_step == 1
    assert budget.forecast_joules == 30 + 95
    assert messages(caught) == []


def parts_of(message):
    """spent, left, reserve, budget, as they are printed."""
    parts = re.findall(r"([0-9.]+) m?J (spent|left|reserve|budget)", message)
    found = {word: float(value) for value, word in parts}
    return [found.get(word, 0.0) for word in ("spent", "left", "reserve", "budget")]


@pytest.mark.parametrize("joules", [0.0377, 1.0, 9.996, 77.7, 512.3])
@pytest.mark.parametrize("reserve", [0.0, 0.137])
def test_the_numbers_of_every_message_add_up(joules, reserve):
    battery, said = SimulatedBattery(), []
    budget = Budget(joules, reserve=reserve * joules, meter=battery, iterations=5000, on_stop=lambda b: said.append(b))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with budget:
            for _ in budget.steps(range(5000)):
                battery.drained += 0.0123456 * joules
                said.append(budget.summary())
    assert [m.split()[0] for m in messages(caught)] == ["5,000", "the"]
    for message in [*(m for m in said if isinstance(m, str)), *messages(caught), budget.summary()]:
        spent, left, kept, whole = parts_of(message)
        assert spent + left + kept == pytest.approx(whole, abs=1e-9), message
        assert ("reserve" in message) == bool(reserve)


def test_the_end_says_why():
    battery = SimulatedBattery()
    with pytest.warns(UserWarning, match=r"stops the job after 9 steps: 9.0") as caught:
        trained(Budget(10, reserve=0.5, meter=battery), battery, lambda step: 1.0)
    [end] = messages(caught)
    assert "9.00 J spent + 0.50 J left + 0.50 J reserve = 10.00 J budget" in end
    assert end.endswith("the next step may need 1.00 J")


def test_what_went_over_is_said():
    battery = SimulatedBattery()
    with Budget(10, reserve=2, meter=battery) as budget:
        battery.drained += 9
        budget.step()
        assert "9.00 J spent + 0.00 J left + 1.00 J reserve = 10.00 J budget (" in budget.summary()
        battery.drained += 2
        budget.step()
        assert "11.00 J spent + 0.00 J left + 0.00 J reserve = 10.00 J budget and 1.00 J over it" in budget.summary()


def test_modelled_joules_are_those_of_the_estimates_watts():
    meter = Meter("cpu-time", False, "7 W per busy core", origin="calibrated", factor=1.05)
    estimate = Estimate("net", 1.0, 0.02, 1e-3, (), (), (), meter, "system")
    assert Budget(100, estimate=estimate, meter=CpuTimeMeter(7.0)).meter == meter
    assert Budget(100, estimate=estimate, meter=CpuTimeMeter(3.0), watts_per_core=3.0).meter.origin == ""


@pytest.mark.parametrize(("cards", "readers"), [(("A", "B"), 2), (("A", "A"), 1)])
def test_ranks_count_each_card_once(cards, readers):
    from torch.distributed import HashStore

    store, meters = HashStore(), [CardMeter(SimulatedBattery(), lambda: None, card) for card in cards]
    ranks = []
    for meter in meters:
        _made.clear()  # as in a process of its own
        ranks.append(Ranks(store, len(cards), 100.0, _metered(meter)))
    assert sum(rank.reads for rank in ranks) == ranks[0].readers == readers


@pytest.mark.skipif(torch.cuda.is_available(), reason="it is for machines without CUDA")
def test_a_card_that_is_not_there_is_refused():
    with pytest.raises(AcceleratorError, match="cuda cannot be used here"):
        Budget(100, on="cuda")
    on_a_card = replace(ONE_JOULE, setup=TrainingSetup(on="cuda:0"))
    with pytest.raises(AcceleratorError, match="cuda cannot be used here"):
        Budget(100, estimate=on_a_card)
    assert Budget(100, estimate=on_a_card, meter=None).meter.name == "estimate"
