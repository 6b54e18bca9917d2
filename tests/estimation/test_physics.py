import numpy as np
import pytest
from tests.synthetic import chain, measured, random_chains

from ampere.core import work
from ampere.estimation.features import COLUMN, COLUMNS, ONE_BY_ONE, PRIOR_PRICES, network_features
from ampere.estimation.hyperparameters import Hyperparameters
from ampere.estimation.prices import fit_prices


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.array([network_features(n, 16).row for n in random_chains(1, 40)])


def test_prices_are_never_negative(rows: np.ndarray) -> None:
    data = measured(random_chains(1, 40))
    assert np.all(fit_prices(rows, data.costs) >= 0)


def test_without_measurements_prices_are_the_prior() -> None:
    assert fit_prices(np.zeros((0, len(COLUMNS))), np.zeros(0)) == pytest.approx(PRIOR_PRICES)


def test_what_ends_in_full_vectors_has_no_remainder() -> None:
    ragged, full = chain(8, 17, 16), chain(8, 16, 16)
    assert work(full.layers[1], 8).remainder_flops == 0
    assert work(ragged.layers[0], 8).remainder_flops == pytest.approx(work(ragged.layers[0], 8).flops * 2 / 3 / 17)


def test_remainders_have_a_price_only_where_the_runtime_does_them_one_by_one(rows: np.ndarray) -> None:
    remainder, truth = COLUMN["conv.remainder_flops"], ONE_BY_ONE.copy()
    truth[remainder] = 6e-11
    costs = rows @ truth
    assert fit_prices(rows, costs)[remainder] == 0
    assert fit_prices(rows, costs, before=ONE_BY_ONE)[remainder] == pytest.approx(6e-11, rel=0.05)


def test_whether_remainders_go_one_by_one_is_kept_with_a_profile() -> None:
    known = Hyperparameters(one_by_one=True)
    assert Hyperparameters.from_json(known.to_json()) == known
    assert not Hyperparameters.from_json({"one_by_one": "no"}).one_by_one
