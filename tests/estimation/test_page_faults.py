"""Page faults: their price is learnt from pairs, taken out of what is fitted, and charged where they are expected."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.synthetic import block, chain, random_chains, true_seconds
from torch import nn

import ampere
from ampere.core import Meter, Network, TrainingSetup
from ampere.core.allocations import FreshPages, fresh_pages
from ampere.estimation.estimator import Estimator
from ampere.estimation.normalization import costs_of, normalized, reference_of
from ampere.estimation.page_faults import PRICE as USUAL_PRICE
from ampere.estimation.page_faults import PageFaults, page_faults_in
from ampere.storage import Observation, Profile
from ampere.tracing.memory import allocations_of

METER = Meter("cpu-time", False, "5 W per busy core")
YARDSTICK, WATTS, PRICE = 0.002, 5.0, 3e-6
OWN = chain(3, 20, 30, 40)


def observed(network: Network, seconds: float, allocator: str, faults: float = 0.0) -> Observation:
    found = block(seconds, YARDSTICK, joules=WATTS * seconds, meter=METER, allocator=allocator)
    target = tuple(w._replace(page_faults=round(faults * w.iterations)) for w in found.target)
    return Observation(network, replace(found, target=target), "network")


def profile(pairs: int = 40, price: float = PRICE, seed: int = 1) -> Profile:
    """Half of the networks fault, up to 3,000 times; each was trained with both allocators."""
    rng = np.random.default_rng(seed)
    seen = []
    for network in random_chains(seed, pairs):
        seconds = [true_seconds(network) * float(e) for e in np.exp(0.03 * rng.standard_normal(2))]
        faults = float(rng.integers(0, 2) * rng.integers(100, 3000))
        seen.append(observed(network, seconds[0], "tuned"))
        seen.append(observed(network, seconds[1] + price * faults, "system", faults))
    return Profile({"id": "known", "system": "Linux"}, TrainingSetup(), METER, YARDSTICK, tuple(seen))


def raw(made: Profile):
    return normalized(made.observations, reference_of(made))


@pytest.mark.parametrize("seed", range(1, 5))
def test_the_price_is_learnt_from_networks_trained_with_both_allocators(seed):
    assert page_faults_in(raw(profile(seed=seed))).seconds == pytest.approx(PRICE, rel=0.15)


def test_few_pairs_leave_the_price_near_the_usual_one():
    one = page_faults_in(raw(profile(1, price=40e-6, seed=2)))
    assert one.per_value == 0 or USUAL_PRICE <= one.seconds < 10e-6
    assert page_faults_in(raw(profile(60, price=40e-6, seed=2))).seconds > 20e-6


def test_no_page_faults_say_nothing():
    unaffected = profile(price=0.0)
    quiet = replace(unaffected, observations=tuple(o for o in unaffected.observations if not o.measurement.page_faults))
    assert page_faults_in(raw(quiet)) == PageFaults()
    assert costs_of(quiet) == raw(quiet)


def test_what_is_fitted_has_usual_page_faults():
    made = profile()
    known, tuned = page_faults_in(raw(made)), {c.network: c.ratio for c in costs_of(made) if c.allocator == "tuned"}

    def unlike(costs) -> float:
        """How far costs are from those with the tuned allocator and usual page faults, on the mean."""
        usual = [tuned[c.network] + known.seconds * sum(known.expected(c.network)) / YARDSTICK for c in costs]
        return float(np.mean([abs(c.ratio / u - 1) for c, u in zip(costs, usual, strict=True)]))

    before, after = ([c for c in costs if c.allocator == "system"] for costs in (raw(made), costs_of(made)))
    assert unlike(after) < 0.05 < 0.1 < unlike(before)
    assert all(a.joules / b.joules == pytest.approx(a.ratio / b.ratio) for a, b in zip(after, before, strict=True))


def test_an_estimate_is_charged_for_the_page_faults_of_its_own_step():
    estimator = Estimator(profile())
    followed = FreshPages(1000.0, 4000.0)
    usual, many = estimator.estimate(OWN), estimator.estimate(OWN, fresh_pages=followed)
    beyond = estimator.page_faults.beyond_usual(OWN, followed)
    assert many.joules - usual.joules == pytest.approx(WATTS * beyond, rel=1e-6)
    assert sum(layer.joules for layer in many.layers) == pytest.approx(many.joules)
    assert many.seconds / usual.seconds == pytest.approx(many.joules / usual.joules)
    assert many.stddev > usual.stddev  # which script faults how often is a matter of luck
    assert estimator.estimate(OWN, "tuned", fresh_pages=followed) == estimator.estimate(OWN, "tuned")


def test_a_step_without_page_faults_never_costs_less_than_nothing():
    estimator = Estimator(profile())
    estimator.page_faults = PageFaults(1.0, 1.0)
    assert estimator.estimate(OWN, fresh_pages=FreshPages(0.0, 0.0)).joules > 0


def test_the_memory_of_a_models_own_code_is_followed_for_them():
    model = nn.Sequential(*(nn.Sequential(nn.Linear(512, 512), nn.ReLU()) for _ in range(6)))
    inputs = (torch.randn(4096, 512),)  # 8 MB an activation, all of them freed from the last to the first
    estimator, network = Estimator(profile()), ampere.trace(model, inputs)
    found, followed = ampere.estimate(model, inputs, profile=estimator), fresh_pages(allocations_of(model, inputs))
    assert followed.by_lot > 5000
    assert found.joules == pytest.approx(estimator.estimate(network, fresh_pages=followed).joules)
    assert found.joules != pytest.approx(estimator.estimate(network).joules, rel=0.01)


def test_blocks_that_are_always_too_large_are_certain():
    faults, lucky, certain = PageFaults(2e-6, 0.0), FreshPages(0.0, 9000.0), FreshPages(9000.0, 0.0)
    assert sum(faults.expected(OWN, certain)) == 9000 > sum(faults.expected(OWN, lucky))
    assert faults.stddev(OWN, certain) == 0 < faults.stddev(OWN, lucky)
