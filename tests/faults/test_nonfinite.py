"""Nothing infinite leaves the surrogate, whatever it is asked, and no variance is negative."""

import numpy as np
import pytest
from tests.synthetic import chain, measured, random_chains

from ampere.estimation.learning import learn

pytestmark = pytest.mark.fault(13)

ASKED = 10_000


def test_ten_thousand_random_networks():
    model = learn(measured(random_chains(1, 25, depth=2)), evaluations=20)
    rng = np.random.default_rng(0)
    widths = np.exp(rng.uniform(0, np.log(1e5), (ASKED, 3))).astype(int) + 1
    for row in widths.tolist():
        answer = model.answer(chain(*row), system=bool(row[0] % 2))
        figures = [answer.seconds, answer.stddev, answer.step_seconds, *answer.layer_seconds, *answer.layer_stddevs]
        assert np.all(np.isfinite(figures)), row
        assert min(figures) >= 0, row
