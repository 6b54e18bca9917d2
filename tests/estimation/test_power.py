"""Power learnt from few windows: close to the truth, with an uncertainty that covers the errors."""

import numpy as np
import pytest
from tests.synthetic import random_chains, true_seconds

from ampere.core import work
from ampere.estimation.power import Power

NETWORKS = random_chains(3, 60)
SECONDS = np.array([true_seconds(network) for network in NETWORKS])
FLOPS = np.array([sum(work(layer).flops for layer in network.layers) for network in NETWORKS])
RATES = FLOPS / SECONDS
TRUTH = 2.0 + 3.0 * RATES / RATES.max()


def learnt(count, noise=0.01, chosen=True, seed=0):
    rng = np.random.default_rng(seed)
    watts = TRUTH * (1 + noise * rng.standard_normal(len(TRUTH)))
    read = np.zeros(len(NETWORKS), dtype=bool)
    for _ in range(count):
        gains = Power(NETWORKS, SECONDS, watts, read, ~np.zeros_like(read)).gains()
        read[int(np.argmax(np.where(read, -1.0, gains))) if chosen else rng.integers(len(read))] = True
    return Power(NETWORKS, SECONDS, watts, read, ~np.zeros_like(read)), read


@pytest.mark.parametrize("count", [3, 6])
def test_few_windows_give_the_power_of_all(count):
    for seed in range(5):
        watts, _ = learnt(count, seed=seed)[0].watts(NETWORKS, SECONDS)
        assert np.mean(np.abs(watts / TRUTH - 1)) < 0.03


def test_the_uncertainty_covers_the_errors():
    inside = []
    for seed in range(10):
        watts, stddevs = learnt(4, seed=seed)[0].watts(NETWORKS, SECONDS)
        inside.append(np.mean(np.abs(watts / TRUTH - 1) <= 1.645 * stddevs))
    assert np.mean(inside) > 0.8


def test_more_windows_leave_less_uncertainty():
    few, many = (np.mean(learnt(count)[0].watts(NETWORKS, SECONDS)[1]) for count in (2, 12))
    assert many < few


def test_the_chosen_network_is_unlike_those_already_read():
    def off(chosen, seed):
        return np.mean(np.abs(learnt(3, chosen=chosen, seed=seed)[0].watts(NETWORKS, SECONDS)[0] / TRUTH - 1))

    assert np.mean([off(True, s) for s in range(10)]) < np.mean([off(False, s) for s in range(10)])
    power, read = learnt(3)
    assert np.max(power.gains()[read]) < np.max(power.gains()[~read])
