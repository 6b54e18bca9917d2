"""A budget never ends the job that it guards: meters that are shared, pause, fail, or read nonsense."""

import json
import math
import time
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recordings import record
from tests.synthetic import chain, random_chains
from tests.sysfs_tree import RANGE_UJ, add_battery, add_zone, put

from ampere import Budget, Estimate, Meter, Profile
from ampere.core.errors import MeterError
from ampere.devices.simulated import SimulatedWorker
from ampere.meters import battery, powercap

pytestmark = [pytest.mark.fault(27), pytest.mark.filterwarnings("ignore:the budget stops the job")]
ONE_JOULE = Estimate("net", 1.0, 0.02, 1e-3, (), (), (), Meter("cpu-time", False), "system")


@pytest.fixture(autouse=True)
def every_step_is_read(monkeypatch):
    monkeypatch.setattr("ampere.budget.spending.READINGS_APART", 0)


class Processor:
    """A counter as the kernel shows it, and a machine that spends joules."""

    def __init__(self, root, range_uj=RANGE_UJ):
        self.counter, self.spent_uj = add_zone(root, "intel-rapl:0", "package-0", 0, range_uj), 0

    def spend(self, joules):
        time.sleep(0.0012 * joules)  # a counter that rises by more than 1 kW was reset
        self.spent_uj += int(1e6 * joules)
        put(self.counter, self.spent_uj)


def test_two_budgets_on_one_meter_have_readings_of_their_own(tmp_path, monkeypatch, record_property):
    """Both follow this machine's best meter, which a process opens once."""
    processor = Processor(tmp_path)
    meter = powercap.find(str(tmp_path))
    monkeypatch.setattr("ampere.budget.budget.choose_meter", lambda watts: meter)
    with Budget(100) as outer:
        processor.spend(1)
        with Budget(50) as inner:
            for _ in range(8):
                processor.spend(1)
                inner.step()
        processor.spend(1)
        outer.step()
    assert (outer.spent, inner.spent) == (pytest.approx(10), pytest.approx(8))
    record_property(
        "figure", f"two budgets on one meter: 10 J and 8 J true, {outer.spent:.0f} J and {inner.spent:.0f} J counted"
    )


def counted(budget, spend, steps=10, during=lambda step: None):
    """A job of steps of a joule; its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with budget:
            for step in range(steps):
                during(step)
                spend(1)
                assert budget.step()
    return [str(warning.message) for warning in caught]


def test_a_pause_longer_than_a_counter_may_rest_is_estimated_and_said_once(tmp_path):
    """With a counter that may overflow twice in 0.2 s, as usual ones do in one to four minutes."""
    processor = Processor(tmp_path, range_uj=200_000_000)
    budget = Budget(1000, meter=powercap.find(str(tmp_path)))
    said = counted(budget, processor.spend, 20, lambda step: time.sleep(0.25) if step in (10, 15) else None)
    [warning] = said
    assert "powercap failed (package-0 was not read for" in warning
    assert "the job goes on, and steps that it misses are estimated" in warning
    assert (budget.spent, budget.estimated_steps) == (pytest.approx(20), 2)
    assert "(powercap, measured; 2 steps estimated, since it failed)" in budget.summary()
    state = json.loads(json.dumps(budget.state_dict()))
    assert (state["estimated_steps"], "overflowed twice" in state["meter_problem"]) == (2, True)
    again = Budget(1000, meter=powercap.find(str(tmp_path)))
    again.load_state_dict(state)
    assert (again.estimated_steps, again.meter_problem) == (2, budget.meter_problem)


def test_a_plug_in_the_middle_is_estimated_and_the_battery_is_read_again_afterwards(tmp_path):
    add_battery(tmp_path, power_now=50_000_000)
    mains = tmp_path / "class/power_supply/AC"
    put(mains / "type", "Mains")
    put(mains / "online", 0)
    budget = Budget(1000, meter=battery.find(str(tmp_path)))

    def plug(step):
        put(mains / "online", int(10 <= step < 15))

    began = time.monotonic()
    said = counted(budget, lambda joules: time.sleep(0.02), 20, plug)
    elapsed = time.monotonic() - began  # longer than it slept where others take the processor
    assert len(said) == 1
    assert "AC powers the device instead of the battery" in said[0]
    assert budget.estimated_steps in (5, 6)  # of steps 10 to 14, and of the one in which it was unplugged
    assert budget.spent == pytest.approx(elapsed * 50, rel=0.4)


class Broken:
    """Does what the test says, one after the other, and then the last for ever."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def describe(self):
        return {"name": "broken", "measured": True, "scope": "a test"}

    def start(self):
        return self.act()

    def stop(self):
        return self.act()

    def act(self):
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer


NONSENSE = [math.nan, math.inf, -1.0, 1e300, -0.0, 0.0, 5e-324, 1, "5", b"5", None, [], {}, 1j, object(), 10**400, True]
FAILURES = [
    ZeroDivisionError(),
    OSError(5, "gone"),
    KeyError("port\nmore"),
    MeterError("away"),
    AssertionError(),
    Exception(),
]
answers = st.lists(
    st.one_of(st.sampled_from([*NONSENSE, *FAILURES]), st.floats(), st.floats(0, 10)), min_size=1, max_size=12
)


@given(answers, st.booleans(), st.booleans())
def test_whatever_a_meter_raises_or_returns_the_loop_goes_on_or_is_told_to_stop(acts, estimated, errors):
    with warnings.catch_warnings():
        warnings.simplefilter("error" if errors else "ignore")
        budget = Budget(40, meter=Broken(*acts), estimate=ONE_JOULE if estimated else None, iterations=30)
        with budget:
            said = [budget.step() for _ in range(30)]
            state = budget.state_dict()
    assert said == sorted(said, reverse=True)  # once it says stop, it goes on saying so
    assert budget.stopped == (not said[-1])
    assert budget.steps_done == 30
    assert math.isfinite(budget.spent)
    assert budget.spent >= 0
    assert all(map(math.isfinite, budget.metrics().values()))
    assert str(budget.steps_done) in budget.summary()
    json.dumps(state, allow_nan=False)


def test_a_program_is_ended_by_ctrl_c_all_the_same():
    with pytest.raises(KeyboardInterrupt), Budget(5, meter=Broken(KeyboardInterrupt())) as budget:
        budget.step()


def test_with_an_estimate_a_meter_that_never_reads_stops_the_job_all_the_same():
    with warnings.catch_warnings(record=True), Budget(10, estimate=ONE_JOULE, meter=Broken(OSError())) as budget:
        assert len(list(budget.steps(range(100)))) == 9
    assert budget.estimated_steps == 9


def test_without_one_it_is_counted_by_cpu_time():
    budget = Budget(0.3, meter=Broken(OSError()), watts_per_core=10)
    with warnings.catch_warnings(record=True), budget:
        for _ in budget.steps(range(100_000)):
            sum(range(10_000))
    assert budget.stopped
    assert 0.2 < budget.spent <= 0.4


def test_a_run_whose_meter_failed_is_recorded_with_what_was_read_and_a_flag(tmp_path):
    class Failing(Broken):
        drained = 0

        def describe(self):
            return SimulatedWorker("xavier").hello()["meter"]

        def act(self):
            self.drained += 1
            if 40 < self.drained < 60:
                raise OSError
            return 1.0

    record(tmp_path / "p.json", random_chains(1, 10))
    budget = Budget(1e9, meter=Failing(), record=True, network=chain(3, 4), profile=tmp_path / "p.json")
    assert len(counted(budget, lambda joules: None, 60)) == 1
    [run] = Profile.load(tmp_path / "p.json").runs
    assert run.measurement.flags == ("meter_failed",)
    assert sum(w.joules for w in run.measurement.target) == run.measurement.iterations
    assert run.measurement.iterations <= 60 - budget.estimated_steps < 60


def test_a_meter_that_is_asked_for_and_not_there_is_said_before_the_training(monkeypatch):
    monkeypatch.setenv("AMPERE_METER", "hwmon")
    with pytest.raises(MeterError, match="there is no hwmon on this device"):
        Budget(5)
