import numpy as np
import pytest
from tests.synthetic import observed, random_chains, true_seconds

from ampere.core import Meter, TrainingSetup
from ampere.estimation.estimator import Estimator
from ampere.storage import Profile


@pytest.fixture(scope="module")
def estimator():
    seen = tuple(observed(network, true_seconds(network)) for network in random_chains(1, 30, depth=2))
    return Estimator(Profile({"id": "synthetic"}, TrainingSetup(), Meter("synthetic", False), 1e-3, seen))


@pytest.mark.parametrize("allocator", ["system", "tuned"])
def test_totals_of_many_are_the_estimates_of_each(estimator, allocator):
    networks = random_chains(7, 20, depth=3)
    totals = estimator.totals(allocator)
    alone = [estimator.estimate(network, allocator).joules for network in networks]
    assert np.allclose(totals(networks), alone, rtol=1e-9)
    assert np.allclose(totals(networks[:3]), alone[:3], rtol=1e-9)  # of layers that are known by now
