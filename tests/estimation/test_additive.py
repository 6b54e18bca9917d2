import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.synthetic import chain, conv, linear, measured, random_chains, true_seconds

from ampere.core import Network
from ampere.estimation.additive import Additive, Data
from ampere.estimation.design_matrix import group_shares
from ampere.estimation.features import network_features
from ampere.estimation.hyperparameters import Hyperparameters
from ampere.estimation.learning import calibrated, learn
from ampere.estimation.prices import MEMORY, fit_prices


@pytest.fixture(scope="module")
def model() -> Additive:
    fitted = learn(measured(random_chains(1, 40)))
    return calibrated(fitted, np.ones(40, dtype=bool))


def errors(model: Additive, networks: list[Network]) -> np.ndarray:
    return np.array([model.answer(n).seconds / true_seconds(n) - 1 for n in networks])


def test_unseen_networks_are_estimated_within_two_percent(model: Additive) -> None:
    assert np.mean(np.abs(errors(model, random_chains(2, 60)))) < 0.02


def test_the_gaussian_process_improves_on_physics_alone(model: Additive) -> None:
    networks, data = random_chains(2, 60), model.data
    rows = model.design.rows
    prices = fit_prices(rows, data.costs)
    unseen = learn(measured(networks)).design.rows
    physics = unseen @ prices / np.array([true_seconds(n) for n in networks]) - 1
    assert np.mean(np.abs(errors(model, networks))) < np.mean(np.abs(physics))


def test_intervals_cover_what_they_say() -> None:
    """Averaged over profiles: one profile of forty networks may be lucky or not."""
    networks = random_chains(3, 100)
    costs = measured(networks, seed=9).costs
    inside = []
    for seed in range(4):
        profiled = learn(measured(random_chains(10 + seed, 40), seed=seed))
        fitted = calibrated(profiled, np.ones(40, dtype=bool))
        answers = [fitted.answer(n) for n in networks]
        inside += [abs(a.seconds - cost) <= 1.645 * a.stddev for a, cost in zip(answers, costs, strict=True)]
    assert 0.85 <= np.mean(inside) <= 0.95


def test_the_layers_and_the_step_sum_to_the_total(model: Additive) -> None:
    answer = model.answer(chain(3, 20, 40, 20, 40))
    counts = list(chain(3, 20, 40, 20, 40).distinct.values())
    assert answer.step_seconds + np.dot(counts, answer.layer_seconds) == pytest.approx(answer.seconds, rel=1e-9)


def test_parts_teach_the_whole() -> None:
    """Isolated layers and short chains alone let it estimate long chains."""
    rng = np.random.default_rng(0)
    parts = [Network((conv(*map(int, rng.integers(1, 64, 2))),), 10) for _ in range(40)]
    parts += [Network((linear(int(rng.integers(1, 64)) * 196, 10),), 10) for _ in range(15)]
    model = learn(measured(parts))
    assert np.mean(np.abs(errors(model, random_chains(5, 40, depth=5)))) < 0.06


def test_far_outside_physics_takes_over_and_the_interval_widens(model: Additive) -> None:
    inside, outside = model.answer(chain(16, 32, 32, 32)), model.answer(chain(1024, 2048, 2048, 2048))
    truth = true_seconds(chain(1024, 2048, 2048, 2048))
    assert 0.5 < outside.seconds / truth < 2
    assert outside.stddev / outside.seconds > 2 * inside.stddev / inside.seconds


def test_a_kind_never_measured_is_priced_with_great_uncertainty(model: Additive) -> None:
    config = {"batch": 8, "length": 16, "layers": 1, "directions": 1, "bias": True}
    from ampere.core import Layer

    answer = model.answer(Network((Layer("lstm", config, 32, 64),), 8))
    assert answer.seconds > 0
    assert answer.stddev > 0.3 * answer.seconds


def test_one_wild_measurement_does_little_harm() -> None:
    data = measured(random_chains(1, 40))
    wild = data.costs.copy()
    wild[7] *= 3
    model = learn(Data(data.networks, wild, data.noise, data.system))
    assert np.mean(np.abs(errors(model, random_chains(2, 60)))) < 0.04


def test_the_allocator_is_learnt_apart() -> None:
    """Networks measured under the system's allocator cost a tenth more, and are estimated so."""
    quiet, plain = measured(random_chains(1, 40)), measured(random_chains(6, 15))
    system = np.concatenate([quiet.system, np.ones(15)])
    costs = np.concatenate([quiet.costs, 1.1 * plain.costs])
    both = Data((*quiet.networks, *plain.networks), costs, np.concatenate([quiet.noise, plain.noise]), system)
    model = learn(both)
    ratios = [model.answer(n, system=True).seconds / model.answer(n).seconds for n in random_chains(2, 30)]
    assert np.mean(ratios) == pytest.approx(1.1, abs=0.02)


def test_what_a_loop_adds_to_memory_is_learnt_for_networks_that_move_more_of_it() -> None:
    quiet, networks = measured(random_chains(1, 40)), random_chains(2, 40)
    model = learn(quiet)
    shares = group_shares(np.array([network_features(n, 8).row for n in networks]), model.prices)[:, MEMORY]
    factor = dict(zip(networks, 1 + 0.3 * shares, strict=True))
    taught, asked = networks[::2], networks[1::2]
    loops = measured(taught)
    costs = np.concatenate([quiet.costs, loops.costs * [factor[n] for n in taught]])
    system = np.concatenate([quiet.system, np.ones(len(taught))])
    both = learn(Data((*quiet.networks, *taught), costs, np.concatenate([quiet.noise, loops.noise]), system))
    ratios = np.array([both.answer(n, system=True).seconds / both.answer(n).seconds for n in asked])
    assert np.max(np.abs(ratios / [factor[n] for n in asked] - 1)) < 0.03


def test_without_any_measurement_it_still_answers() -> None:
    empty = Data((), np.zeros(0), np.zeros(0), np.zeros(0))
    answer = Additive(empty, Hyperparameters()).answer(chain(3, 8, 8, 8))
    assert 0 < answer.seconds < 1
    assert answer.stddev > 0.3 * answer.seconds


@given(st.lists(st.integers(1, 100_000), min_size=2, max_size=5), st.booleans())
@settings(max_examples=200, deadline=None)
def test_never_negative_never_infinite(model: Additive, widths: list[int], system: bool) -> None:
    answer = model.answer(chain(*widths), system)
    figures = [answer.seconds, answer.stddev, *answer.layer_seconds, *answer.layer_stddevs]
    assert np.all(np.isfinite(figures))
    assert min(figures) >= 0
    assert answer.seconds > 0


@given(st.lists(st.floats(1e-6, 1e3), min_size=5, max_size=12), st.integers(0, 5))
@settings(max_examples=50, deadline=None)
def test_whatever_was_measured_the_answer_is_a_number(costs: list[float], seed: int) -> None:
    networks = random_chains(seed, len(costs))
    data = Data(tuple(networks), np.array(costs), np.full(len(costs), 1e-4), np.zeros(len(costs)))
    answer = learn(data, evaluations=5).answer(chain(5, 6, 7, 8))
    assert np.isfinite(answer.seconds)
    assert answer.seconds > 0
    assert np.isfinite(answer.stddev)


def test_what_is_kept_of_layers_is_bounded(model: Additive, monkeypatch: pytest.MonkeyPatch) -> None:
    networks = random_chains(5, 30)
    expected = [model.answer(network).seconds for network in networks]
    monkeypatch.setattr("ampere.estimation.additive.MOST_KEPT", 20 * (len(model.data) + 300))
    assert [model.answer(network).seconds for network in networks] == pytest.approx(expected)
    assert len(model._posteriors) <= 20 + 4  # those of the last network come on top
