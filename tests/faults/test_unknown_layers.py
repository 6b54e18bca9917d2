"""Layers of kinds that were never measured: every one is named, priced, and makes the estimate less certain."""

from random import Random

import pytest
from tests.synthetic import chain, observed, random_chains, true_seconds

from ampere.core import Layer, Meter, Network, TrainingSetup
from ampere.estimation.estimator import Estimator
from ampere.storage.profile import Profile

pytestmark = pytest.mark.fault(14)

MEMORY = {"batch": 8, "length": 16, "layers": 1, "directions": 1, "bias": True}


@pytest.fixture(scope="module")
def estimator():
    seen = tuple(observed(network, true_seconds(network)) for network in random_chains(1, 40))
    return Estimator(Profile({"id": "synthetic"}, TrainingSetup(), Meter("synthetic", False), 1e-3, seen))


def test_every_one_of_many_is_named(estimator):
    chance = Random(0)
    for _ in range(50):
        layers, unknown = list(chain(3, 8, 16).layers), []
        for number in range(chance.randrange(1, 4)):
            unknown.append(f"memory{number}")
            strange = Layer("lstm", MEMORY, chance.choice((16, 32)), chance.choice((16, 64)), name=unknown[-1])
            layers.insert(chance.randrange(len(layers) + 1), strange)
        estimate = estimator.estimate(Network(tuple(layers), 10))
        assert sorted(estimate.unprofiled) == unknown
        shares = {share.name: share.joules for share in estimate.layers}
        assert all(shares[name] > 0 for name in unknown)
        assert estimate.stddev > 0.1 * estimate.joules
    assert estimator.estimate(chain(3, 8, 16)).unprofiled == ()
