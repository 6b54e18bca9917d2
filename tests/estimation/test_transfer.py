"""Transfer: few measurements and another device's surrogate know more than either, and intervals are honest."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.synthetic import conv, measured, observed, random_chains, true_seconds

from ampere.core import Meter, Network, TrainingSetup
from ampere.core.errors import ProfileError
from ampere.estimation.additive import Data
from ampere.estimation.estimator import Estimator
from ampere.estimation.features import PRIOR_PRICES, network_features
from ampere.estimation.hyperparameters import Hyperparameters
from ampere.estimation.learning import learn
from ampere.estimation.transfer import Transferred, _Said, average, tangent
from ampere.storage.profile import Profile

UNSEEN = random_chains(99, 30)


def target(networks, seed: int = 0) -> Data:
    """A device that is seven times slower, and more so for large networks."""
    there = measured(networks, seed=seed)
    return replace(there, costs=7.0 * there.costs * (there.costs / 1e-2) ** 0.1)


def truth() -> np.ndarray:
    costs = np.array([true_seconds(n) for n in UNSEEN])
    return 7.0 * costs * (costs / 1e-2) ** 0.1


def error(logs: np.ndarray) -> float:
    return float(np.mean(np.abs(np.exp(logs) / truth() - 1)))


@pytest.fixture(scope="module")
def source():
    return learn(measured(random_chains(1, 40)))


@pytest.fixture(scope="module")
def misleading():
    data = measured(random_chains(1, 40))
    return learn(replace(data, costs=data.costs[::-1]))


def test_five_measurements_and_a_similar_device_are_better_than_alone(source):
    few = target(random_chains(7, 5))
    own = learn(few)
    logs, deviations = Transferred([source], few, own).logs(UNSEEN, np.zeros(len(UNSEEN)))
    alone = own.joint(UNSEEN, np.zeros(len(UNSEEN)))[0]
    assert error(logs) < 0.12
    assert error(logs) < error(np.log(alone)) / 1.5 or error(logs) < 0.05
    assert np.mean(np.abs(np.log(truth()) - logs) <= 1.645 * deviations) >= 0.85


def test_without_measurements_the_interval_says_that_the_level_is_unknown(source):
    _, deviations = Transferred([source], target([])).logs(UNSEEN, np.zeros(len(UNSEEN)))
    assert np.all(deviations > 1)


def test_the_device_that_is_alike_gets_the_weight(source, misleading):
    likeness = Transferred([misleading, source], target(random_chains(7, 5))).likeness
    assert likeness[1] > 3 * likeness[0]


def test_a_misleading_source_costs_little_and_intervals_still_cover(misleading):
    few = target(random_chains(7, 12))
    own = learn(few)
    logs, deviations = Transferred([misleading], few, own).logs(UNSEEN, np.zeros(len(UNSEEN)))
    alone = own.joint(UNSEEN, np.zeros(len(UNSEEN)))[0]
    assert error(logs) < 1.05 * error(np.log(alone))
    assert np.mean(np.abs(np.log(truth()) - logs) <= 1.645 * deviations) >= 0.8


def test_parts_may_change_tenfold():
    """A device that computes ten times as fast and starts operations no faster: its logarithm is far from linear."""
    parts, faster = np.array([[x, 1 - x, 0.0] for x in np.linspace(0.02, 0.98, 12)]), np.array([0.0, np.log(0.1), 0.0])
    logs, none = np.linspace(-4, 0, 12), np.zeros(12)
    heard = _Said(logs, none, ((),) * 12, (none,) * 12, parts, none)
    truth = logs + np.log(parts @ np.exp(faster))
    assert np.ptp(logs + parts @ faster - truth) > 0.3
    at = tangent(heard, truth)
    found = heard.around(at)
    shift = truth - found.logs - found.parts @ at
    assert np.ptp(shift) < 0.1


def lone(seed: int, count: int, deviation: float) -> Data:
    """Convolutions alone, which cost what physics says times a factor that changes with their width."""
    rng = np.random.default_rng(seed)
    sizes = np.exp2(rng.uniform([0, 0, 2], [7, 7, 6], (count, 3))).astype(int)
    networks = tuple(Network((conv(a, b, size),), 10) for a, b, size in sizes.tolist())
    physics = np.array([network_features(n, 8).row @ PRIOR_PRICES for n in networks])
    costs = physics * np.exp(deviation * np.sin(np.log2(sizes[:, 0]) + np.log2(sizes[:, 1])))
    return Data(networks, costs, np.full(count, 1e-6), np.zeros(count))


@cache
def lone_source(deviation: float):
    return learn(lone(0, 120, deviation), Hyperparameters(residual=0.4, octaves=2.0), evaluations=0)


def test_lone_layers_that_deviate_from_physics_alike_are_learnt_from_each_other():
    few, unseen = lone(1, 6, 0.5), lone(2, 40, 0.5)
    few = replace(few, costs=5 * few.costs)
    own = learn(few)
    logs, _ = Transferred([lone_source(0.5)], few, own).logs(unseen.networks, unseen.system)
    alone = own.joint(unseen.networks, unseen.system)[0]
    errors = [np.mean(np.abs(np.log(5 * unseen.costs) - found)) for found in (logs, np.log(alone))]
    assert errors[0] < errors[1] / 1.5


def test_of_a_source_that_deviates_the_other_way_only_its_prices_are_taken():
    shares, usual = [], Hyperparameters(residual=0.4, octaves=2.0)
    for deviation in (-0.5, 0.5):
        few, unseen = lone(1, 8, deviation), lone(2, 40, deviation)
        own = learn(few, usual, evaluations=0)
        found = Transferred([lone_source(0.5)], few, own)
        shares.append(found._guides()[0][1])
        logs, alone = found.logs(unseen.networks, unseen.system)[0], own.joint(unseen.networks, unseen.system)[0]
        errors = [np.mean(np.abs(np.log(unseen.costs) - of)) for of in (logs, np.log(alone))]
        assert errors[0] < 1.1 * errors[1]
    assert shares[0] < 0.2
    assert shares[1] > 0.6


def test_a_source_tells_little_of_lone_layers_that_cost_what_physics_says_or_whose_costs_it_cannot_find_itself():
    few, known = lone(1, 3, 0.0), lone(0, 120, 0.5)
    confused = replace(known, costs=np.random.default_rng(0).permutation(known.costs))
    usual = Hyperparameters(residual=0.4, octaves=2.0)
    near_physics, deviating, shuffled = (
        Transferred([source], few, learn(few, usual, evaluations=0))._telling()
        for source in (lone_source(0.02), lone_source(0.5), learn(confused, usual, evaluations=0))
    )
    assert near_physics < 0.01
    assert deviating > 0.5
    assert shuffled < 0.2


def test_an_unlikely_surrogate_that_is_far_off_does_not_widen_the_interval():
    weights = np.array([0.97, 0.03])
    _, same = average(weights, np.zeros((2, 1)), np.full((2, 1), 0.1))
    total, wide = average(weights, np.array([[0.0], [3.0]]), np.array([[0.1], [2.0]]))
    assert same == pytest.approx(0.1, rel=1e-3)
    assert total == pytest.approx(0.09)
    assert 0.1 < wide < 0.2  # by its variance it would be 0.6
    inside = np.concatenate([np.random.default_rng(0).normal(m, d, 100 * n) for m, d, n in ((0, 0.1, 970), (3, 2, 30))])
    assert np.mean(np.abs(inside - total) < 1.6449 * wide) == pytest.approx(0.9, abs=0.01)


def test_layers_and_step_sum_to_the_total(source):
    answer = Transferred([source], target(random_chains(7, 5))).answer(UNSEEN[0])
    counts = [UNSEEN[0].layers.count(layer) for layer in answer.layers]
    assert float(np.dot(counts, answer.layer_seconds)) + answer.step_seconds == pytest.approx(answer.seconds)


# Profiles that start from others.


def profile_of(data: Data, name: str, **more) -> Profile:
    observations = tuple(observed(n, c) for n, c in zip(data.networks, data.costs, strict=True))
    return Profile({"id": name}, TrainingSetup(), Meter("synthetic", False), 1e-3, observations, **more)


def test_a_profile_starts_from_others_and_is_stored_with_them(tmp_path):
    known = profile_of(measured(random_chains(1, 40)), "known")
    new = profile_of(target(random_chains(7, 5)), "new", sources=(known,))
    new.save(tmp_path / "new.json")
    read = Profile.load(tmp_path / "new.json")
    assert read == new
    model = Estimator(read).model
    assert isinstance(model, Transferred)
    alone = Estimator(replace(read, sources=())).estimate(UNSEEN[0])
    found = Estimator(read).estimate(UNSEEN[0])
    assert abs(found.seconds / truth()[0] - 1) < max(0.3, abs(alone.seconds / truth()[0] - 1))
    assert sum(share.joules for share in found.layers) == pytest.approx(found.joules)


def test_a_profile_with_enough_of_its_own_needs_no_others():
    known = profile_of(measured(random_chains(1, 10)), "known")
    new = profile_of(target(random_chains(7, 60)), "new", sources=(known,))
    assert not isinstance(Estimator(new).model, Transferred)


def test_sources_of_sources_are_refused():
    known = profile_of(measured(random_chains(1, 4)), "known")
    between = profile_of(measured(random_chains(1, 4)), "between", sources=(known,))
    with pytest.raises(ProfileError, match="starts from others"):
        profile_of(measured(random_chains(1, 4)), "new", sources=(between,))
