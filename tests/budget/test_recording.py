"""Estimates learn from recorded runs: on a device that drifts, they improve with use."""

import json
from pathlib import Path
from random import Random
from shutil import copy

import numpy as np
import pytest
from tests.recordings import record
from tests.synthetic import chain, random_chains

from ampere import Budget, Estimate, Estimator, Profile
from ampere.budget.recording import Reading, running_notes, summed_up
from ampere.core import Meter, Network, TrainingSetup
from ampere.core.errors import ProfileError, UsageError
from ampere.devices.simulated import SimulatedWorker
from ampere.estimation.drift import Condition, followed
from ampere.estimation.normalization import runs_of
from ampere.storage.places import journal_path
from ampere.storage.recording import observations_from, profile_from

NAME = "xavier"
ONE_JOULE = Estimate("net", 1.0, 0.02, 1e-3, (), (), (), Meter("cpu-time", False), "system")


@pytest.fixture(autouse=True)
def every_step_is_read(monkeypatch):
    monkeypatch.setattr("ampere.budget.spending.READINGS_APART", 0)


class DriftingMeter:
    """The counter of a simulated device that has become more expensive by a factor."""

    def __init__(self) -> None:
        self.drained = self._mark = 0.0
        self.about = Meter(**SimulatedWorker(NAME).hello()["meter"])

    def describe(self):
        return self.about.to_json()

    def start(self) -> None:
        self._mark = self.drained

    def stop(self) -> float:
        return self.drained - self._mark


def trained(network: Network, path, cost_factor: float, seed: int, keep: bool = True) -> float:
    """A run of 60 steps on the device as it is now; joules of a step."""
    rng, meter = Random(seed), DriftingMeter()
    true = SimulatedWorker(NAME).truth(network, TrainingSetup()).total.joules * cost_factor
    options = {"record": True, "network": network, "profile": path} if keep else {}
    with Budget(1e9, meter=meter, **options) as budget:
        for _ in range(60):
            meter.drained += true * rng.gauss(1, 0.02)
            budget.step()
    return true


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "p.json"
    record(path, random_chains(1, 60))
    return path


@pytest.fixture
def path(recorded, tmp_path):
    return Path(copy(recorded, tmp_path))


def test_a_run_is_appended_to_the_journal_and_is_part_of_the_profile(path):
    before = Profile.load(path)
    joules = trained(chain(3, 20, 30), path, 1.0, seed=0)
    after = Profile.load(path)
    assert after.observations == before.observations
    [run] = after.runs
    assert (run.purpose, run.network) == ("run", chain(3, 20, 30))
    [cost] = runs_of(after)
    assert cost.joules == pytest.approx(joules, rel=0.02)
    [*_, last] = observations_from(journal_path(path))
    assert last == run
    assert profile_from(journal_path(path)).runs == (run,)
    assert len(list(observations_from(journal_path(path)))) == len(before.observations) + 1


def test_without_consent_nothing_is_kept(path):
    trained(chain(3, 20, 30), path, 1.0, seed=0, keep=False)
    assert Profile.load(path).runs == ()
    assert not journal_path(path).exists()


def test_on_a_drifting_device_estimates_improve_with_use(path):
    """Each network is estimated before its run. Over 16 runs the device becomes a quarter more expensive."""
    fresh, kept, errors = Estimator(Profile.load(path)), [], []
    for number, network in enumerate(random_chains(7, 16)):
        cost_factor = 1 + 0.25 * number / 15
        said = Estimator(Profile.load(path)).estimate(network), fresh.estimate(network)
        true = trained(network, path, cost_factor, seed=number)
        kept.append(abs(said[0].joules / true - 1))
        errors.append(abs(said[1].joules / true - 1))
    assert np.mean(errors[-8:]) > 0.12
    assert np.mean(kept[-8:]) < 0.06
    assert np.mean(kept[-8:]) < 0.5 * np.mean(errors[-8:])


def test_on_a_steady_device_runs_do_no_harm(path):
    """And the network that was run is known better than before."""
    fresh, networks = Estimator(Profile.load(path)), random_chains(7, 12)
    true = [trained(network, path, 1.0, seed=number) for number, network in enumerate(networks)]
    learnt = Estimator(Profile.load(path))
    before, after = (
        np.mean([abs(e.estimate(n).joules / t - 1) for n, t in zip(networks, true, strict=True)])
        for e in (fresh, learnt)
    )
    assert after < before
    assert learnt.condition.factor == pytest.approx(1, abs=0.05)


def test_the_condition_follows_slowly_where_estimates_are_uncertain(path):
    trained(chain(3, 20, 30), path, 1.2, seed=0)
    [run] = runs_of(Profile.load(path))
    joules = run.joules / 1.2
    [certain] = followed([run], lambda r: (joules, 0.0))
    [uncertain] = followed([run], lambda r: (joules, 0.2 * joules))
    assert 1.1 < certain.factor < 1.2
    assert 1 < uncertain.factor < 1.02 < certain.factor
    assert uncertain.stddev > certain.stddev
    assert followed([], lambda r: (1, 1)) == []
    assert Condition() == (1.0, 0.0)


def test_a_condition_that_was_asked_for_is_the_one_that_counts(path):
    trained(chain(3, 20, 30), path, 1.2, seed=0)
    estimator = Estimator(Profile.load(path))
    one, two = (estimator.estimate(chain(3, 20, 30), "tuned", c).joules for c in (1.0, 2.0))
    assert two == pytest.approx(2 * one)
    assert estimator.estimate(chain(3, 20, 30), "tuned").condition == estimator.condition.factor > 1.05


def short_run(path, steps, spoil=False):
    meter = DriftingMeter()
    with Budget(1e9, meter=meter, record=True, network=chain(3, 4), profile=path) as budget:
        for _ in range(steps):
            meter.drained += 1
            budget.step()
        if spoil:
            path.write_text("spoilt")


def test_a_run_notes_how_far_it_is_until_it_ends(path):
    meter = DriftingMeter()
    with Budget(500, iterations=60, meter=meter, record=True, network=chain(3, 4), profile=path) as budget:
        for _ in range(40):
            meter.drained += 1
            budget.step()
        [note] = running_notes(path).glob("*.json")
        found = json.loads(note.read_text())
    assert (found["iterations"], found["joules_budget"]) == (60, 500)
    assert 0 < found["joules_spent"] == found["steps"] <= 40
    assert list(running_notes(path).iterdir()) == []


def test_a_run_too_short_is_not_kept(path):
    with pytest.warns(UserWarning, match="too short"):
        short_run(path, steps=5)
    assert Profile.load(path).runs == ()


def test_a_training_does_not_fail_because_it_cannot_be_recorded(path):
    with pytest.warns(UserWarning, match="not recorded"):
        short_run(path, steps=40, spoil=True)


def test_each_block_is_a_run_of_its_own_and_one_that_fails_is_none(path):
    meter = DriftingMeter()
    budget = Budget(1e9, meter=meter, record=True, network=chain(3, 4), profile=path)

    def run(joules):
        with budget:
            for _ in range(60):
                meter.drained += joules
                budget.step()
            if joules > 5:
                raise ZeroDivisionError

    run(1.0)
    with pytest.raises(ZeroDivisionError):
        run(9.0)
    run(2.0)
    first, second = runs_of(Profile.load(path))
    assert first.joules == pytest.approx(1)
    assert second.joules == pytest.approx(2)
    assert second.iterations <= 60


def test_rounds_have_about_as_many_steps_each():
    rounds = summed_up([Reading(1.0, 0.1, 1)] * 100)
    assert len(rounds) == 7
    assert {r.steps for r in rounds} == {13}
    assert summed_up([Reading(1.0, 0.1, 1)] * 5) == []


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"network": None}, UsageError, "give network"),
        ({"meter": None, "estimate": ONE_JOULE}, UsageError, "leave out meter"),
        ({"profile": "gone.json"}, ProfileError, "does not exist"),
        ({"meter": "best"}, ProfileError, "counts joules by"),
    ],
)
def test_what_cannot_be_recorded_is_said_before_the_training(path, options, error, says):
    given = {"record": True, "network": chain(3, 4), "profile": path, "meter": DriftingMeter(), **options}
    with pytest.raises(error, match=says):
        Budget(5, **given)


def test_a_profile_of_another_device_takes_no_runs(path, tmp_path):
    body = json.loads(json.dumps(Profile.load(path).to_json()))
    body["meter"]["simulated"] = False
    Profile.from_json(body).save(tmp_path / "foreign.json")
    with pytest.raises(ProfileError, match="another device"):
        Budget(5, meter=DriftingMeter(), record=True, network=chain(3, 4), profile=tmp_path / "foreign.json")
