import numpy as np
import pytest
from tests.synthetic import measured, random_chains

from ampere.surrogate.features import COLUMNS, PRIOR_PRICES, network_features
from ampere.surrogate.physics import fit_prices


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.array([network_features(n, 16).row for n in random_chains(1, 40)])


def test_prices_are_never_negative(rows: np.ndarray) -> None:
    data = measured(random_chains(1, 40))
    assert np.all(fit_prices(rows, data.costs) >= 0)


def test_without_measurements_prices_are_the_prior() -> None:
    assert fit_prices(np.zeros((0, len(COLUMNS))), np.zeros(0)) == pytest.approx(PRIOR_PRICES)
