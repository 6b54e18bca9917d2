import numpy as np
import pytest
from tests.synthetic import measured, random_chains

from ampere.core import Network
from ampere.estimation.additive import Data
from ampere.estimation.features import COLUMN, COLUMNS, PRIOR_PRICES, network_features
from ampere.estimation.prices import ARITHMETIC, SPEED_GROUPS, STARTING, isolated_prices
from ampere.runtimes.conformance import conv


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.array([network_features(n, 16).row for n in random_chains(1, 40)])


def test_every_quantity_has_one_speed_group() -> None:
    assert SPEED_GROUPS.sum(axis=1) == pytest.approx(np.ones(len(COLUMNS)))
    assert SPEED_GROUPS[COLUMN["step"], STARTING] == SPEED_GROUPS[COLUMN["conv.padded_flops"], ARITHMETIC] == 1


def test_a_device_with_large_overheads_is_found_from_few_measurements(rows: np.ndarray) -> None:
    """Overheads are ten times the prior and arithmetic half of it, which one speed cannot express but three can."""
    costs = rows @ (PRIOR_PRICES * (SPEED_GROUPS @ np.array([10.0, 0.5, 1.0])))
    prices = isolated_prices(rows[:4], costs[:4], 0.1**2 * np.eye(4))
    assert np.mean(np.abs(rows @ prices / costs - 1)) < 0.03


def test_a_measurement_of_great_variance_hardly_moves_the_prices(rows: np.ndarray) -> None:
    costs, deviations = rows @ PRIOR_PRICES, np.full(len(rows), 0.02)
    wild = costs.copy()
    wild[0] *= 5
    trusted = isolated_prices(rows, wild, np.diag(deviations) ** 2)
    deviations[0] *= 1000
    noisy = isolated_prices(rows, wild, np.diag(deviations) ** 2)
    off = [np.max(np.abs(rows[1:] @ prices / costs[1:] - 1)) for prices in (trusted, noisy)]
    assert off[1] < 0.01 < off[0]


def test_isolated_prices_are_never_negative(rows: np.ndarray) -> None:
    costs = measured(random_chains(1, 40)).costs
    assert np.all(isolated_prices(rows, costs, np.eye(len(costs))) >= 0)


def test_sums_of_layers_are_not_isolated_layers() -> None:
    alone, two = Network((conv(),), 1), Network((conv(), conv()), 1)
    assert _data(alone, alone).isolated
    assert not _data(alone, two).isolated
    assert not _data().isolated


def _data(*networks: Network) -> Data:
    return Data(networks, np.ones(len(networks)), np.ones(len(networks)), np.zeros(len(networks)))
