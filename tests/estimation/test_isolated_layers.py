"""Layers that were all measured alone are learnt on logarithms."""

import numpy as np
import pytest
from tests.synthetic import chain, conv, linear

from ampere.core import Network, work
from ampere.estimation.additive import Additive, Data
from ampere.estimation.batch import BatchTotals
from ampere.estimation.learning import learn
from ampere.estimation.variance import variance_shares


def lone_layers(seed: int, count: int) -> Data:
    """Costs that span decades and grow faster than the work, which no price explains; read with an error of 3 %."""
    rng = np.random.default_rng(seed)
    sizes = np.exp2(rng.uniform([0, 0, 2], [9, 9, 7], (count, 3))).astype(int)
    networks = tuple(Network((conv(a, b, size),), 10) for a, b, size in sizes.tolist())
    flops = np.array([work(network.layers[0]).flops for network in networks])
    efficiency = (sizes[:, 0] / (sizes[:, 0] + 40)) * (sizes[:, 1] / (sizes[:, 1] + 10))
    costs = (1e-5 + flops / 1e11 / efficiency) ** 1.4 * np.exp(0.03 * rng.standard_normal(count))
    return Data(networks, costs, np.full(count, 1e-6), np.zeros(count))


def tiled_layers(seed: int, count: int) -> Data:
    """Linear layers of a device that computes 32 rows at once, whether they are there or not."""
    rng = np.random.default_rng(seed)
    sizes = np.column_stack([rng.integers(64, 2048, (count, 2)), rng.integers(1, 128, count)]).tolist()
    networks = tuple(Network((linear(*size),), size[2]) for size in sizes)
    costs = np.array([2e-4 + 3e-11 * a * b * 32 * -(-rows // 32) for a, b, rows in sizes])
    return Data(networks, costs * np.exp(0.02 * rng.standard_normal(count)), np.full(count, 1e-6), np.zeros(count))


@pytest.fixture(scope="module", name="model")
def fitted() -> Additive:
    return learn(lone_layers(0, 100))


def error(model: Additive, unseen: Data) -> float:
    return float(np.mean(np.abs(model.joint(unseen.networks, unseen.system)[0] / unseen.costs - 1)))


def test_costs_of_four_decades_are_learnt_and_more_rows_teach_more(model: Additive) -> None:
    unseen = lone_layers(1, 150)
    assert np.ptp(np.log10(unseen.costs)) > 4
    assert error(model, unseen) < 0.06
    assert error(model, unseen) < 0.8 * error(learn(lone_layers(0, 30)), unseen)


def test_one_network_and_many_at_once_have_the_same_cost(model: Additive) -> None:
    networks = [*lone_layers(3, 5).networks, chain(8, 16, 32, 64)]
    answers = [model.answer(network).seconds for network in networks]
    assert BatchTotals(model)(networks) == pytest.approx(answers)
    assert model.joint(networks, np.zeros(len(networks)))[0] == pytest.approx(answers)


def test_layers_sum_to_the_total_and_so_do_the_shares_of_its_variance(model: Additive) -> None:
    network = chain(8, 16, 32, 64)
    answer, shares = model.answer(network), variance_shares(model, network, False)
    counts = list(network.distinct.values())
    assert answer.step_seconds + np.dot(counts, answer.layer_seconds) == pytest.approx(answer.seconds)
    assert sum(shares.layers.values()) + shares.whole + shares.step + shares.measuring == pytest.approx(1)
    assert model.hyper.calibration * np.sqrt(shares.variance) == pytest.approx(answer.stddev)


def test_one_row_more_than_a_tile_costs_another_tile() -> None:
    model = learn(tiled_layers(0, 100))
    full, beyond = (model.answer(Network((linear(1024, 1024, rows),), rows)).seconds for rows in (64, 65))
    assert beyond / full == pytest.approx(1.5, rel=0.12)
    assert error(model, tiled_layers(1, 100)) < 0.06
