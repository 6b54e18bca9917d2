"""HyperPower: candidates below every limit, chosen by what was trained; what learns nothing is stopped early."""

from statistics import fmean

import numpy as np
import pytest
from tests.searching.test_searching import NET, profile, wider_is_better
from tests.synthetic import block, random_chains, true_seconds

from ampere.core import Meter, TrainingSetup
from ampere.core.errors import UsageError
from ampere.core.units import watts
from ampere.estimation.estimator import Estimator
from ampere.models.loading import find_space
from ampere.models.spaces import CNN5
from ampere.searching.candidates import Prices
from ampere.searching.hyperpower import expected_improvement, settings_of
from ampere.searching.memory import upper_bytes
from ampere.searching.result import Candidate
from ampere.searching.searching import drawn_widths, search
from ampere.searching.spaces import of_function, of_space
from ampere.searching.training import Chance, on_made_task, tried
from ampere.storage.profile import Observation, Profile


@pytest.fixture(scope="module")
def estimator():
    return Estimator(profile())


@pytest.fixture(scope="module")
def counted():
    """A device whose counter reads more power where there are more parameters: power differs between networks."""
    meter = Meter("synthetic", True)

    def seen(network):
        seconds, wide = true_seconds(network), sum(layer.channels_out for layer in network.layers)
        measured = block(seconds, joules=seconds * (2.0 + 0.05 * wide), meter=meter, yardstick_joules=5e-3)
        return Observation(network, measured, "network")

    networks = tuple(map(seen, random_chains(1, 40, depth=2)))
    return Estimator(Profile({"id": "counted"}, TrainingSetup(), meter, 1e-3, networks, yardstick_joules=5e-3))


def test_accuracy_guides_what_is_trained_next(estimator):
    """Later trials are better on the mean than the first ones, which are random; and nothing comes twice."""
    found = search("cnn5", "60%", estimator, train=wider_is_better, candidates=20_000, trials=12, mode="hyperpower")
    accuracies = [trial.accuracy for trial in found.trials]
    assert len(accuracies) == 12
    assert fmean(accuracies[3:]) > fmean(accuracies[:3]) + 0.05
    assert np.mean(accuracies[3:]) > np.mean(accuracies[:3])
    assert len({str(trial.candidate.arguments) for trial in found.trials}) == 12
    assert all(c.joules + 1.28 * c.stddev <= found.budget_joules for c in found.chosen)
    assert found.to_json()["mode"] == "hyperpower"


def test_improvement_is_expected_near_the_best_and_where_nothing_is_known():
    seen, accuracies = np.array([[0.0], [0.3], [0.6]]), np.array([0.2, 0.3, 0.6])
    gains = expected_improvement(seen, accuracies, np.array([[0.0], [0.3], [0.6], [0.8]]))
    assert np.argmax(gains) == 3
    assert np.all(gains >= 0)
    assert np.all(np.isfinite(expected_improvement(seen, np.full(3, 0.5), seen)))


def test_settings_of_any_space_are_numbers_between_0_and_1():
    candidates = [
        Candidate({"convs": [{"channels": 8, "kernel": 3}] * n, "norm": n > 1, "head": "flatten"}, "sgd", 8 * n, 1, 0)
        for n in (1, 2, 3)
    ]
    places = settings_of(candidates, ("convs", "norm", "head"))
    assert places.min() == 0
    assert places.max() == 1
    assert len({tuple(row) for row in places}) == 3


TWO = """
import torch
from torch import nn

def build(first=32, second=48):
    body = [nn.Conv2d(3, first, 3, padding=1), nn.ReLU(), nn.Conv2d(first, second, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*body, nn.Flatten(), nn.Linear(second * 196, 5)), torch.randn(10, 3, 14, 14)
"""


@pytest.mark.parametrize("mode", ["capacity", "hyperpower"])
def test_both_modes_stay_below_power_and_memory(counted, mode, tmp_path):
    (tmp_path / "two.py").write_text(TWO)
    name, vary = f"{tmp_path}/two.py:build", {"first": range(1, 33), "second": range(1, 49)}
    space = of_function(name, vary)
    held = upper_bytes(space, [counted.profile], tuned=False)

    def watts(found):
        """Of what was chosen, each network by itself."""
        estimates = [counted.estimate(space.network(candidate.arguments)) for candidate in found.chosen]
        return np.array([estimate.joules / estimate.seconds for estimate in estimates])

    options = {"vary": vary, "trials": 5, "train": lambda m, c: sum(c.arguments.values()) / 100, "mode": mode}
    free = search(name, "70%", counted, **options)
    power, most = watts(free).max(), max(held(c.arguments, c.optimizer) for c in free.chosen)
    least = held({"first": 1, "second": 1}, "sgd")
    limits = {"power": 0.8 * power, "memory_bytes": (least + most) / 2}
    found = search(name, "70%", counted, **options, **limits)
    assert len(found.trials) == 5
    assert watts(found).max() <= 1.001 * limits["power"]
    assert max(held(c.arguments, c.optimizer) for c in found.chosen) <= 1.02 * limits["memory_bytes"]
    assert (found.to_json()["power_watts"], found.to_json()["memory_bytes"]) == tuple(limits.values())


def test_power_of_many_is_that_of_each(counted):
    space, prices = of_space(find_space("cnn5")), Prices(counted, "system", CNN5["batch"])
    [shape] = space.shapes
    group = prices.opened(shape, space, drawn_widths(np.random.default_rng(0), shape, 50))
    for row in (0, 20, 49):
        network = space.network(group.arguments(row))
        estimate = counted.estimate(network)
        assert group.watts()[row] == pytest.approx(estimate.joules / estimate.seconds, rel=0.03)
    fewer = group.kept(np.arange(1, 50, 2))
    assert fewer.joules == pytest.approx(group.joules[1::2])
    assert fewer.arguments(0) == group.arguments(1)


def test_one_at_chance_level_is_stopped_and_one_that_learns_is_not():
    space = of_space(find_space("lenet5"))
    candidate = Candidate(space.original, "adam", space.original["batch"], 1.0, 0.1)
    train, chance = on_made_task(space, 8, seed=0, early=True)
    stopped = tried(train, space, candidate, 0, chance, stop_at_chance=True)
    assert stopped.stopped_early
    assert stopped.at_chance
    assert not tried(train, space, candidate, 0, chance).stopped_early

    def learns(model, candidate):
        yield 0.5
        trained.append(True)
        return 0.7

    def learns_nothing(model, candidate):
        yield 0.1
        trained.append(False)
        yield 0.9

    trained = []
    chance = Chance(0.1, 1000)
    good, bad = (tried(t, space, candidate, 0, chance, stop_at_chance=True) for t in (learns, learns_nothing))
    assert trained == [True]  # the other one was not continued
    assert (good.accuracy, good.stopped_early) == (0.7, False)
    assert (bad.accuracy, bad.stopped_early) == (0.1, True)
    assert tried(learns_nothing, space, candidate, 0, chance).accuracy == 0.9
    silent = tried(lambda m, c: (x for x in ()), space, candidate, 0, chance)
    assert "yielded no accuracy" in silent.failure


def test_a_space_with_fewer_networks_than_trials_ends(tmp_path, estimator):
    (tmp_path / "net.py").write_text(NET)
    vary = {"width": range(8, 12)}
    found = search(
        f"{tmp_path}/net.py:build", "1kJ", estimator, vary=vary, train=f"{tmp_path}/net.py:train", mode="hyperpower"
    )
    assert sorted(trial.candidate.arguments["width"] for trial in found.trials) == [8, 9, 10, 11]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"memory_bytes": 10.0}, r"no candidate fits into 10 B: the least that one may need is .* MB"),
        ({"power": 1e-6}, r"limit of 0\.00100 mW of power cannot be met"),
        ({"power": -1.0}, "power is -1, but must be greater than 0"),
        ({"mode": "guess"}, "no mode 'guess': choose one of capacity, hyperpower"),
        ({"mode": "hyperpower", "trials": 0}, "leave out --no-training"),
    ],
)
def test_what_makes_no_sense_is_refused(estimator, tmp_path, options, says):
    (tmp_path / "net.py").write_text(NET)
    vary, space = {"width": range(8, 65)}, f"{tmp_path}/net.py:build"
    with pytest.raises(UsageError, match=says):
        search(space, "1kJ", estimator, **{"vary": vary, "trials": 2, "train": wider_is_better, **options})


def test_watts_in_words():
    assert [watts(8.0), watts(0.25)] == ["8.00 W", "250 mW"]
