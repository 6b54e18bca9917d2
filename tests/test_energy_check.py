"""A change that makes training more expensive than noise explains is found, and no other."""

import json

import numpy as np
import pytest
from tests.synthetic import block, chain, random_chains, true_seconds

import ampere
from ampere.core import Meter, TrainingSetup
from ampere.core.errors import MoreExpensive, ProfileError, UsageError
from ampere.storage import Observation, Profile

METER = Meter("cpu-time", False, "5 W per busy core")
MODEL = chain(3, 20, 30, 40)


def profile_of(seed: int, speed: float = 1.0) -> Profile:
    """A device that needs `speed` times as long for everything."""
    seen = []
    for network in random_chains(seed, 40):
        noise = float(np.exp(0.01 * np.random.default_rng(len(seen) + seed).standard_normal()))
        seconds = speed * true_seconds(network) * noise
        seen.append(Observation(network, block(seconds, speed * 0.002, joules=5 * seconds, meter=METER), "network"))
    return Profile({"id": f"device {seed}", "cpu": "a CPU"}, TrainingSetup(), METER, speed * 0.002, tuple(seen))


@pytest.fixture(scope="module")
def profile():
    return profile_of(1)


@pytest.fixture
def baseline(tmp_path, profile, monkeypatch):
    monkeypatch.setenv("AMPERE_HOME", str(tmp_path / "home"))
    path = tmp_path / "energy.json"
    assert ampere.check(MODEL, path, profile=profile, write=True).passed
    return path


def test_the_same_model_costs_what_it_did_on_any_machine(baseline):
    for seed, speed in ((1, 1.0), (2, 1.0), (3, 4.0)):
        found = ampere.check(MODEL, baseline, profile=profile_of(seed, speed))
        assert found.ratio == pytest.approx(1.0)
        assert found.passed
        found.raise_if_failed()


def test_a_change_that_costs_more_fails_also_on_another_machine(baseline):
    wider = chain(3, 20, 60, 40)
    assert true_seconds(wider) > 1.3 * true_seconds(MODEL)
    found = ampere.check(wider, baseline, profile=profile_of(3, 4.0))
    assert not found.passed
    assert found.interval[0] > 1
    assert "FAILED" in found.to_markdown()
    with pytest.raises(MoreExpensive, match=r"more than its baseline .* 5\.0 % more is allowed"):
        found.raise_if_failed()


def test_a_change_inside_what_is_allowed_passes_and_so_does_a_cheaper_one(baseline, profile):
    assert ampere.check(chain(3, 20, 60, 40), baseline, profile=profile, max_increase=10.0).passed
    cheaper = ampere.check(chain(3, 10, 15, 40), baseline, profile=profile, max_increase=0.0)
    assert cheaper.passed
    assert cheaper.ratio < 1
    assert " less than its baseline" in cheaper.sentence


def test_joules_of_an_estimate_are_a_baseline_too_on_the_same_device(tmp_path, profile, monkeypatch):
    monkeypatch.setenv("AMPERE_HOME", str(tmp_path / "home"))
    path = tmp_path / "estimate.json"
    path.write_text(json.dumps(ampere.estimate(MODEL, profile=profile).to_json()))
    assert ampere.check(MODEL, path, profile=profile).passed
    assert not ampere.check(chain(3, 60, 90, 120), path, profile=profile).passed
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "device": "another CPU"}))
    with pytest.raises(UsageError, match="another CPU"):
        ampere.check(MODEL, path, profile=profile)


def test_a_baseline_that_is_missing_damaged_or_of_another_setup_is_one_line(tmp_path, baseline, profile):
    with pytest.raises(UsageError, match="--write"):
        ampere.check(MODEL, tmp_path / "gone.json", profile=profile)
    (tmp_path / "other.json").write_text('{"a": 1}')
    with pytest.raises(ProfileError, match="no baseline"):
        ampere.check(MODEL, tmp_path / "other.json", profile=profile)
    baseline.write_text(baseline.read_text().replace('"sgd"', '"adam"'))
    with pytest.raises(ProfileError, match=str(baseline)):
        ampere.check(MODEL, baseline, profile=profile)


def test_the_summary_is_a_table(baseline, profile):
    lines = ampere.check(MODEL, baseline, profile=profile).to_markdown().splitlines()
    assert lines[0] == "### Energy of training: passed"
    assert len({line.count("|") for line in lines if line.startswith("|")}) == 1
