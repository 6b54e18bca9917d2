from dataclasses import replace

import numpy as np
import pytest
from tests.synthetic import block, chain, random_chains, true_seconds

from ampere.core import Layer, Meter, Network, TrainingSetup
from ampere.core.errors import UsageError
from ampere.core.units import parse_energy
from ampere.devices.calibrating import from_readings
from ampere.devices.core_watts import save_calibration
from ampere.estimation.estimator import Estimator, estimator_for
from ampere.estimation.gaussian_process import kernel, near_sums
from ampere.storage import Observation, Profile

METER = Meter("cpu-time", False, "5 W per busy core")
YARDSTICK, WATTS = 0.002, 5.0


def observed(network: Network, seed: int) -> Observation:
    seconds = true_seconds(network) * float(np.exp(0.01 * np.random.default_rng(seed).standard_normal()))
    return Observation(network, block(seconds, YARDSTICK, joules=WATTS * seconds, meter=METER), "network")


@pytest.fixture(scope="module")
def profile() -> Profile:
    seen = tuple(observed(network, i) for i, network in enumerate(random_chains(1, 40)))
    return Profile({"id": "known"}, TrainingSetup(), METER, YARDSTICK, seen)


@pytest.fixture(scope="module")
def estimator(profile: Profile) -> Estimator:
    return Estimator(profile)


def test_joules_are_seconds_times_the_watts_of_the_meter(estimator: Estimator) -> None:
    network = chain(3, 20, 30, 40)
    estimate = estimator.estimate(network, "tuned")
    assert estimate.joules == pytest.approx(WATTS * true_seconds(network), rel=0.06)
    assert estimate.seconds == pytest.approx(true_seconds(network), rel=0.06)
    assert not estimate.meter.measured


def test_the_layers_sum_to_the_total(estimator: Estimator) -> None:
    estimate = estimator.estimate(chain(3, 20, 20, 20))
    assert sum(share.joules for share in estimate.layers) == pytest.approx(estimate.joules)
    assert len(estimate.layers) == 4 + 1  # and the fixed cost of a step


def test_layers_that_were_computed_together_cost_the_same(profile: Profile, estimator: Estimator) -> None:
    networks, together = random_chains(7, 5), Estimator(profile)
    together.prepare(networks)
    for network in networks:
        one, other = estimator.estimate(network), together.estimate(network)
        assert (one.joules, one.stddev) == pytest.approx((other.joules, other.stddev))


def test_every_pair_of_layers_counts_once() -> None:
    rng = np.random.default_rng(0)
    positions, weights = rng.normal(size=(300, 4)), rng.normal(size=300)
    assert near_sums(positions, weights, 0.1) == pytest.approx(kernel(positions, positions, 0.1) @ weights, abs=1e-9)


def test_a_condition_scales_everything(estimator: Estimator) -> None:
    network = chain(3, 20, 30, 40)
    plain, slow = estimator.estimate(network), estimator.estimate(network, condition=1.5)
    assert slow.joules == pytest.approx(1.5 * plain.joules)
    assert slow.stddev == pytest.approx(1.5 * plain.stddev)


def test_what_was_never_measured_is_named(estimator: Estimator) -> None:
    config = {"batch": 8, "length": 16, "layers": 1, "directions": 1, "bias": True}
    network = Network((*chain(3, 8).layers, Layer("lstm", config, 32, 64, name="memory")), 10)
    estimate = estimator.estimate(network)
    assert estimate.unprofiled == ("memory",)
    assert estimate.stddev > 0.1 * estimate.joules


def test_what_lies_far_outside_is_named(estimator: Estimator) -> None:
    assert estimator.estimate(chain(16, 32, 32, 32)).extrapolated == ()
    assert len(estimator.estimate(chain(16, 32, 32, 2048)).extrapolated) == 2


def test_an_estimate_from_a_stored_profile_is_the_same(profile: Profile, estimator: Estimator, tmp_path) -> None:
    profile.save(tmp_path / "p.json")
    again = Estimator(Profile.load(tmp_path / "p.json")).estimate(chain(3, 20, 30, 40))
    assert again.joules == pytest.approx(estimator.estimate(chain(3, 20, 30, 40)).joules)


def test_batteries() -> None:
    assert parse_energy("15Wh") == 54000
    assert parse_energy("54 kJ") == 54000
    assert parse_energy("2MJ") == 2e6
    assert parse_energy("50mJ") == 0.05
    for nonsense in ("15", "Wh", "-3Wh", "nanWh", "infJ", "0J"):
        with pytest.raises(UsageError):
            parse_energy(nonsense)


def test_joules_net_of_idle_are_reported_where_rest_was_read(profile: Profile) -> None:
    network = chain(3, 20, 30, 40)
    assert Estimator(profile).estimate(network).net_joules is None
    estimate = Estimator(replace(profile, watts_idle=2.0)).estimate(network)
    assert estimate.net_joules == pytest.approx(estimate.joules - 2.0 * estimate.seconds)
    assert estimate.to_json()["joules_net_of_idle_per_iteration"] == estimate.net_joules


def test_watts_of_a_calibration_replace_the_default_and_bring_their_own_uncertainty(profile, tmp_path, monkeypatch):
    monkeypatch.setenv("AMPERE_HOME", str(tmp_path))
    network = chain(3, 20, 30, 40)
    usual = estimator_for(profile).estimate(network)
    assert usual.meter.factor == 2
    assert usual.watts_interval == pytest.approx((usual.joules / 2, 2 * usual.joules))
    save_calibration(profile.device, from_readings("10W", "30W", 2))
    calibrated = estimator_for(profile).estimate(network)
    assert calibrated.joules == pytest.approx(2 * usual.joules)  # 10 W a core instead of 5
    assert calibrated.stddev == pytest.approx(2 * usual.stddev)
    assert calibrated.meter.factor == pytest.approx(20 / 19)
    assert "calibrated" in calibrated.to_json()["meter"]["origin"]
    named = estimator_for(profile, 7.0).estimate(network)
    assert named.joules == pytest.approx(1.4 * usual.joules)
    assert named.watts_interval is None


def test_recorded_runs_do_not_look_like_drift_at_other_watts(profile: Profile) -> None:
    network = chain(3, 20, 30, 40)
    seconds = true_seconds(network)
    plain = replace(block(seconds, YARDSTICK, joules=WATTS * seconds, meter=METER), yardstick=())
    run = Observation(network, plain, "run")
    known = replace(profile, runs=(run,))
    assert Estimator(known, 10.0).condition.factor == pytest.approx(Estimator(known).condition.factor)
