import numpy as np
import pytest
from tests.synthetic import measured, random_chains

from ampere.surrogate.features import COLUMN, COLUMNS, PRIOR_PRICES, network_features
from ampere.surrogate.physics import ARITHMETIC, SORTS, STARTING, fit_prices, settle_prices


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.array([network_features(n, 16).row for n in random_chains(1, 40)])


def test_every_quantity_is_of_one_sort() -> None:
    assert SORTS.sum(axis=1) == pytest.approx(np.ones(len(COLUMNS)))
    assert SORTS[COLUMN["step"], STARTING] == SORTS[COLUMN["conv.padded_flops"], ARITHMETIC] == 1


def test_a_device_that_starts_things_dearly_is_found_from_few_measurements(rows: np.ndarray) -> None:
    """Ten times the prior for starting, a half for arithmetic: one speed cannot say that, three can."""
    prices = PRIOR_PRICES * (SORTS @ np.array([10.0, 0.5, 1.0]))
    costs = rows @ prices
    settled = settle_prices(rows[:4], costs[:4], lambda x: x / (0.1 * costs[:4]).reshape(-1, *[1] * (x.ndim - 1)))
    assert np.mean(np.abs(rows @ settled / costs - 1)) < 0.03


def test_a_measurement_of_great_variance_hardly_moves_the_prices(rows: np.ndarray) -> None:
    costs, deviations = rows @ PRIOR_PRICES, 0.02 * (rows @ PRIOR_PRICES)
    wild = costs.copy()
    wild[0] *= 5
    trusted = settle_prices(rows, wild, lambda x: x / deviations.reshape(-1, *[1] * (x.ndim - 1)))
    deviations[0] *= 1000
    doubted = settle_prices(rows, wild, lambda x: x / deviations.reshape(-1, *[1] * (x.ndim - 1)))
    off = [np.max(np.abs(rows[1:] @ prices / costs[1:] - 1)) for prices in (trusted, doubted)]
    assert off[1] < 0.01 < off[0]


def test_prices_are_never_negative(rows: np.ndarray) -> None:
    data = measured(random_chains(1, 40))
    assert np.all(fit_prices(rows, data.costs) >= 0)
    assert np.all(settle_prices(rows, data.costs, lambda x: x) >= 0)


def test_without_measurements_prices_are_the_prior() -> None:
    assert fit_prices(np.zeros((0, len(COLUMNS))), np.zeros(0)) == pytest.approx(PRIOR_PRICES)
