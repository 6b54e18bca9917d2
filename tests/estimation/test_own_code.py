"""What layers say and what a model's own code showed, combined: by their variances, and without touching others."""

from dataclasses import replace
from math import exp

import numpy as np
import pytest
from tests.synthetic import block, chain, random_chains, true_seconds

from ampere.core import Meter, Network, TrainingSetup
from ampere.estimation.estimate import Estimate
from ampere.estimation.estimator import Estimator
from ampere.estimation.own_code import code_stddev, costs_of_code, with_own_code
from ampere.storage import Observation, Profile

METER = Meter("cpu-time", False, "5 W per busy core")
YARDSTICK, WATTS = 0.002, 5.0
OWN = chain(3, 20, 30, 40).renamed("own")
OTHERS = [n.renamed(f"other {i}") for i, n in enumerate(random_chains(7, 6))]


def observed(network: Network, seconds: float, purpose: str = "network", allocator: str = "tuned") -> Observation:
    found = block(seconds, YARDSTICK, joules=WATTS * seconds, meter=METER, allocator=allocator)
    return Observation(network, found, purpose)


def touches(
    network: Network, factor: float, spread: float = 0.0, processes: int = 3, seed: int = 0
) -> list[Observation]:
    """Processes that train code which costs `factor` times its description."""
    lots = np.exp(spread * np.random.default_rng(seed).standard_normal(processes))
    return [observed(network, true_seconds(network) * factor * float(lot), "touch", "system") for lot in lots]


@pytest.fixture(scope="module")
def estimator() -> Estimator:
    rng = np.random.default_rng(1)
    noise = np.exp(0.01 * rng.standard_normal(60))
    networks = random_chains(1, 60)
    seen = [
        observed(n, true_seconds(n) * float(e), allocator=("tuned", "system")[i % 2])
        for i, (n, e) in enumerate(zip(networks, noise, strict=True))
    ]
    return Estimator(Profile({"id": "known", "system": "Linux"}, TrainingSetup(), METER, YARDSTICK, tuple(seen)))


def combined(estimator: Estimator, network: Network, seen: list[Observation]) -> Estimate:
    return with_own_code(estimator, estimator.estimate(network), network, seen)


def test_a_model_whose_code_was_not_trained_keeps_its_estimate(estimator):
    layers = estimator.estimate(OWN)
    assert with_own_code(estimator, layers, OWN, touches(OTHERS[0], 1.5)) is layers
    assert layers.to_json()["touch"] is None


def test_the_estimate_lies_between_both_and_nearer_to_the_more_certain(estimator):
    layers, found = estimator.estimate(OWN), combined(estimator, OWN, touches(OWN, 1.4))
    assert found.touch is not None
    assert found.touch.factor == pytest.approx(1.4, rel=0.06)
    assert layers.joules < found.joules < found.touch.code_joules
    assert found.touch.code_joules - found.joules < found.joules - layers.joules
    vague = replace(layers, stddev=layers.joules)
    assert with_own_code(estimator, vague, OWN, touches(OWN, 1.4)).joules > found.joules


def test_code_that_ran_is_believed_where_layers_are_far_off(estimator):
    found = combined(estimator, OWN, touches(OWN, 3.0, 0.6))
    assert found.touch is not None
    assert found.joules == pytest.approx(found.touch.code_joules, rel=0.02)


def test_layers_seconds_and_joules_stay_one_whole(estimator):
    layers, found = estimator.estimate(OWN), combined(estimator, OWN, touches(OWN, 0.6))
    assert sum(share.joules for share in found.layers) == pytest.approx(found.joules)
    assert found.seconds / found.joules == pytest.approx(layers.seconds / layers.joules)
    record = found.to_json()["touch"]
    assert record["layers_joules"] == layers.joules
    assert record["processes"] == 3


def test_more_processes_make_it_more_certain_but_their_differences_stay(estimator):
    one, three = (combined(estimator, OWN, touches(OWN, 1.2, processes=n)) for n in (1, 3))
    assert three.stddev / three.joules < one.stddev / one.joules
    uneven = combined(estimator, OWN, touches(OWN, 1.2, spread=0.15, processes=3))
    assert uneven.stddev / uneven.joules > three.stddev / three.joules


def test_a_touch_changes_no_other_estimate(estimator):
    seen = [o for i, n in enumerate(OTHERS) for o in touches(n, exp(0.3 * (-1) ** i))]
    extended = Estimator(replace(estimator.profile, touches=tuple(seen)))
    for network in (OWN, *random_chains(9, 4)):
        assert extended.estimate(network) == estimator.estimate(network)
        assert combined(extended, network, seen) == estimator.estimate(network)


def test_how_far_code_is_from_descriptions_is_learnt(estimator):
    def learnt(factor: float) -> float:
        seen = [o for i, n in enumerate(OTHERS) for o in touches(n, factor ** (-1) ** i)]
        return code_stddev(estimator, [*costs_of_code(estimator, seen).values()], "system")

    assert learnt(1.0) < 0.1 < learnt(1.5) < 0.6


def test_a_touch_with_another_allocator_is_not_used(estimator):
    tuned = [replace(o, measurement=replace(o.measurement, allocator="tuned")) for o in touches(OWN, 1.4)]
    assert combined(estimator, OWN, tuned).touch is None


def test_intervals_cover_nine_of_ten_models(estimator):
    """Code differs from its description by 12 %, processes by 6 %; the truth is the mean of four more processes."""
    rng, within = np.random.default_rng(3), []
    for number, network in enumerate(random_chains(11, 60)):
        factor = exp(0.12 * rng.standard_normal())
        found = combined(estimator, network, touches(network, factor, 0.06, seed=number))
        actual = true_seconds(network) * factor * np.exp(0.06 * rng.standard_normal(4)).mean() * WATTS
        within.append(found.interval[0] <= actual <= found.interval[1])
    assert 0.8 <= np.mean(within) <= 1.0


def test_code_that_was_trained_for_one_step_counts_less(estimator):
    many = touches(OWN, 1.4)
    window = many[0].measurement.target[0]
    one = window._replace(iterations=1, wall_seconds=window.wall_seconds / 8, busy_seconds=window.busy_seconds / 8)
    few = [replace(o, measurement=replace(o.measurement, target=(one,))) for o in many]
    surer, other = (costs_of_code(estimator, seen)[OWN].variance for seen in (many, few))
    assert other > 2 * surer


def test_code_that_was_trained_on_a_much_slower_machine_counts_less(estimator):
    def slower(factor: float) -> list[Observation]:
        seconds = true_seconds(OWN) * 1.4 * factor
        found = block(seconds, YARDSTICK * factor, joules=WATTS * seconds, meter=METER, allocator="system")
        return [Observation(OWN, found, "touch")] * 3

    usual, loaded = (combined(estimator, OWN, slower(factor)) for factor in (1.0, 3.0))
    assert usual.touch.code_joules == pytest.approx(loaded.touch.code_joules, rel=0.05)
    assert loaded.touch.code_stddev > 2 * usual.touch.code_stddev
