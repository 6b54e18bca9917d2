"""Nothing infinite leaves the surrogate, whatever it is asked, and no variance is negative."""

from math import isfinite

import numpy as np
import pytest
from tests.synthetic import chain, measured, random_chains

from ampere.estimation.learning import learn

pytestmark = pytest.mark.fault(13)

ASKED, TOGETHER = 10_000, 500  # layers of so many networks are looked up at once


def test_ten_thousand_random_networks():
    model = learn(measured(random_chains(1, 25, depth=2)), evaluations=20)
    rng = np.random.default_rng(0)
    widths = np.exp(rng.uniform(0, np.log(1e5), (ASKED, 3))).astype(int) + 1
    for first in range(0, ASKED, TOGETHER):
        networks = [chain(*row) for row in widths[first : first + TOGETHER].tolist()]
        model.posteriors_of([layer for network in networks for layer in network.layers])
        for number, network in enumerate(networks):
            answer = model.answer(network, system=bool(number % 2))
            figures = [answer.seconds, answer.stddev, answer.step_seconds, *answer.layer_seconds, *answer.layer_stddevs]
            assert all(map(isfinite, figures)), widths[first + number]
            assert min(figures) >= 0, widths[first + number]
