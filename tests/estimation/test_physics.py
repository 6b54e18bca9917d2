import numpy as np
import pytest
from tests.synthetic import chain, measured, random_chains

from ampere.core import Layer, TrailingOp, work
from ampere.devices.simulated import SimulatedWorker
from ampere.estimation.features import COLUMN, COLUMNS, ONE_BY_ONE, PRIOR_PRICES, layer_row, network_features
from ampere.estimation.hyperparameters import Hyperparameters
from ampere.estimation.prices import SPEED_GROUPS, fit_prices, known_prices, likeliest_prices


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.array([network_features(n, 16).row for n in random_chains(1, 40)])


def test_prices_are_never_negative(rows: np.ndarray) -> None:
    data = measured(random_chains(1, 40))
    assert np.all(fit_prices(rows, data.costs) >= 0)


def test_without_measurements_prices_are_the_prior() -> None:
    assert fit_prices(np.zeros((0, len(COLUMNS))), np.zeros(0)) == pytest.approx(PRIOR_PRICES)


def test_every_quantity_has_a_known_price_where_it_has_a_prior_one() -> None:
    for prior in (PRIOR_PRICES, ONE_BY_ONE):
        assert np.array_equal(known_prices(prior) > 0, prior > 0)


def test_few_measurements_find_the_prices_of_a_processor_like_the_known_one(rows: np.ndarray) -> None:
    truth = known_prices() * (SPEED_GROUPS @ np.array([3.0, 0.5, 1.0]))
    few, others = rows[:6], rows[6:]
    costs = few @ truth
    assert others @ likeliest_prices(few, costs, PRIOR_PRICES) == pytest.approx(others @ truth, rel=0.02)
    off = np.abs(others @ fit_prices(few, costs) / (others @ truth) - 1)
    assert np.mean(off) > 0.03  # as far as the guess that is the same for all kinds comes


def test_an_accelerator_is_fitted_as_if_no_processor_were_known(rows: np.ndarray) -> None:
    worker = SimulatedWorker("server", 0)
    costs = np.array([worker.truth(n).total.seconds for n in random_chains(1, 40)])
    assert likeliest_prices(rows, costs, PRIOR_PRICES) == pytest.approx(fit_prices(rows, costs))


def test_a_kind_that_a_library_is_worse_at_does_not_make_the_known_prices_useless(rows: np.ndarray) -> None:
    costs = rows @ (known_prices() * np.where([column.startswith("conv.") for column in COLUMNS], 2.0, 1.0))
    found = likeliest_prices(rows, costs, PRIOR_PRICES)
    assert rows @ found == pytest.approx(costs, rel=0.05)


def test_what_a_layer_does_besides_its_products_is_priced_as_such() -> None:
    def dropped(layer: Layer) -> float:
        return float(layer_row(layer, 16)[COLUMN["tail.dropout"]])

    config = {"batch": 2, "heads": 3, "queries": 5, "keys": 7}
    assert dropped(Layer("attention", config, 8, 8)) == 0
    assert dropped(Layer("attention", {**config, "dropout": True}, 8, 8)) == 2 * (2 * 3 * 5 * 7)
    config = {"batch": 2, "length": 3, "layers": 3, "directions": 2, "bias": True, "dropout": True}
    assert dropped(Layer("lstm", config, 8, 5)) == 2 * (2 * 3 * 5 * 2) * 2


def test_an_operation_counts_as_often_as_it_weighs() -> None:
    def counted(**more: float) -> float:
        layer = Layer("linear", {"lead": (4,), "bias": True}, 8, 8, (TrailingOp("copy", 32, 32, **more),))
        return float(layer_row(layer, 16)[COLUMN["tail.copy"]])

    assert counted(weight=8.0) == 8 * counted()


def test_one_delayed_step_does_not_decide_what_a_device_is_like(rows: np.ndarray) -> None:
    costs = rows @ known_prices()
    delayed = costs * np.where(np.arange(len(costs)) == 3, 10.0, 1.0)
    found = likeliest_prices(rows, delayed, PRIOR_PRICES)
    assert np.median(np.abs(rows @ found / costs - 1)) < 0.05


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
