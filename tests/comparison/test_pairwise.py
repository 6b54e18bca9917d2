"""Which network is cheaper: right as often as it says, and more certain where networks share layers."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.synthetic import chain, conv, linear, observed, random_chains, true_seconds

from ampere import compare
from ampere.comparison import compare as compare_networks
from ampere.comparison import in_percent
from ampere.comparison.ranking import Pair, Ranked
from ampere.core import Meter, Network, TrainingSetup
from ampere.core.errors import UsageError
from ampere.estimation.estimator import Estimator
from ampere.storage import Profile

METER = Meter("cpu-time", False, "5 W per busy core")


def known_from(networks, method="additive"):
    noise = np.random.default_rng(0)
    seen = tuple(observed(n, true_seconds(n) * np.exp(0.01 * noise.standard_normal())) for n in networks)
    return Profile({"id": "known"}, TrainingSetup(), METER, 1e-3, seen, method=method)


@pytest.fixture(scope="module")
def estimator():
    return Estimator(known_from(random_chains(1, 40)))


def on_one(first, second, estimator) -> Pair:
    found = compare_networks([first, second], [estimator], "tuned")
    return found.devices[0].pair(*found.models)


def test_a_network_with_one_more_layer_is_more_expensive(estimator):
    found = on_one(chain(3, 20, 30), chain(3, 20, 30, 40), estimator)
    assert (found.cheaper, found.ratio < 1) == (found.first, True)
    assert found.probability > 0.99
    low, high = found.interval
    assert low < true_seconds(chain(3, 20, 30)) / true_seconds(chain(3, 20, 30, 40)) < high


def test_the_order_does_not_matter(estimator):
    one, other = (
        on_one(chain(3, 20, 30), chain(3, 21, 31), estimator),
        on_one(chain(3, 21, 31), chain(3, 20, 30), estimator),
    )
    assert one.first_is_cheaper + other.first_is_cheaper == pytest.approx(1)
    assert one.ratio * other.ratio == pytest.approx(1)


def test_a_network_is_not_cheaper_than_itself(estimator):
    found = on_one(chain(3, 20, 30), chain(3, 20, 30), estimator)
    assert found.ratio == 1
    assert found.probability == 0.5
    same = compare(chain(3, 20), chain(3, 20), estimator)
    assert same.models == ("model 1", "model 2")
    assert "too close to call" in same.sentence(same.devices[0])


def test_uncertainty_of_shared_layers_cancels(estimator):
    shared = chain(3, 200, 200).layers[:-1]  # far outside what was measured
    networks = [Network((*shared, linear(200 * 196, outputs)), 10) for outputs in (10, 40)]
    found = on_one(*networks, estimator)
    apart = np.hypot(*(e.stddev / e.joules for e in map(estimator.estimate, networks)))
    assert found.relative_stddev < 0.5 * apart


def test_it_is_right_as_often_as_it_says(estimator):
    pairs = list(zip(random_chains(2, 150), random_chains(3, 150), strict=True))
    near = [(a, b) for a, b in pairs if 0.8 < true_seconds(a) / true_seconds(b) < 1.25]
    found = [on_one(a, b, estimator) for a, b in near]
    right = [
        (true_seconds(a) < true_seconds(b)) == (f.cheaper == f.first) for (a, b), f in zip(near, found, strict=True)
    ]
    assert len(near) > 20
    assert np.mean(right) == pytest.approx(np.mean([f.probability for f in found]), abs=0.12)
    assert np.mean([r for r, f in zip(right, found, strict=True) if f.probability > 0.95]) > 0.9


def test_different_batches_are_compared_by_the_example(estimator):
    large = Network((conv(3, 20, batch=20), linear(20 * 196, 10, rows=20)), 20)
    found = compare(chain(3, 20), large, estimator)
    [device] = found.devices
    assert found.per == "example"
    small, large = (device.entry(name) for name in found.models)
    assert (small.joules, large.joules) == (small.estimate.joules / 10, large.estimate.joules / 20)


def test_the_papers_method_is_joint_as_well():
    variants = [Network((linear(c, 10),), 10) for c in (8, 16, 32)]
    variants += [Network((linear(64, c), linear(c, 10)), 10) for c in (8, 16, 32)]
    estimator = Estimator(known_from(variants, "sequential"))
    found = on_one(variants[-1], variants[-1], estimator)
    assert found.relative_stddev == pytest.approx(0, abs=1e-6)
    assert on_one(variants[3], variants[-1], estimator).relative_stddev > 0


def test_every_profile_is_a_device_and_other_meters_are_named(estimator):
    other = replace(estimator.profile, device={"id": "b", "cpu": "board"}, meter=Meter("RAPL", True, "package"))
    found = compare(chain(3, 20), chain(3, 40), estimator, other)
    assert [d.device for d in found.devices] == ["known", "board"]
    assert not found.one_meter
    assert [d["meter"]["name"] for d in found.to_json()["devices"]] == ["cpu-time", "RAPL"]


def test_nothing_is_said_to_be_certain():
    assert in_percent(1.0) == "over 99.9 %"
    assert in_percent(0.98) == "98 %"


def test_an_unknown_allocator_is_refused(estimator):
    with pytest.raises(UsageError, match="jemalloc"):
        compare(chain(3, 20), chain(3, 40), estimator, allocator="jemalloc")


def several(estimator):
    networks = [chain(3, 40, 60).renamed("large"), chain(3, 20, 30).renamed("small"), chain(3, 21, 31).renamed("next")]
    return compare_networks([*networks, chain(3, 30, 40).renamed("middle")], [estimator], "tuned")


def test_any_number_of_models_is_ranked(estimator):
    found = several(estimator)
    [device] = found.devices
    assert found.models == ("large", "small", "next", "middle")
    assert [entry.name for entry in device.entries] == ["small", "next", "middle", "large"]
    assert device.cheapest.ratio == 1
    ratios = [entry.ratio for entry in device.entries]
    assert ratios == sorted(ratios)
    assert device.entries[3].ratio == pytest.approx(
        true_seconds(chain(3, 40, 60)) / true_seconds(chain(3, 20, 30)), rel=0.1
    )
    assert found.sentence(device).startswith("cheapest is ")
    assert "this order has " in found.sentence(device)


def test_every_pair_of_several_is_what_the_two_alone_say(estimator):
    [device] = several(estimator).devices
    for pair in device.pairwise:
        networks = {"large": (40, 60), "small": (20, 30), "next": (21, 31), "middle": (30, 40)}
        alone = on_one(*(chain(3, *networks[name]) for name in (pair.first, pair.second)), estimator)
        assert pair.ratio == pytest.approx(alone.ratio)
        assert pair.relative_stddev == pytest.approx(alone.relative_stddev, rel=1e-6)
        assert pair.first_is_cheaper == pytest.approx(alone.first_is_cheaper)
    assert len(device.pairwise) == 6


def test_an_order_is_at_most_as_probable_as_its_least_certain_pair(estimator):
    [device] = several(estimator).devices
    least = min(pair.probability for pair in device.pairwise)
    assert 0.5 < device.order_probability <= least
    two = compare_networks([chain(3, 20, 30), chain(3, 21, 31)], [estimator], "tuned").devices[0]
    assert two.order_probability == two.probability == pytest.approx(two.pairwise[0].probability)


def test_the_probability_of_an_order_is_that_of_drawing_it():
    """Three independent costs that are the same: each of six orders is as probable."""
    entries = [SimpleNamespace(name=name, joules=1.0, probability=0.5) for name in "abc"]
    ranked = Ranked(tuple(entries), ((0.01, 0.0, 0.0), (0.0, 0.01, 0.0), (0.0, 0.0, 0.01)))
    assert ranked.order_probability == pytest.approx(1 / 6, abs=0.005)


def test_one_model_is_no_comparison(estimator):
    with pytest.raises(UsageError, match="two models or more"):
        compare_networks([chain(3, 20)], [estimator])


def test_all_of_it_is_json_and_a_table(estimator):
    found = several(estimator)
    record = found.to_json()
    assert json.loads(json.dumps(record)) == record
    [device] = record["devices"]
    assert [entry["name"] for entry in device["ranking"]] == ["small", "next", "middle", "large"]
    assert device["cheapest"] == "small"
    assert len(device["pairwise"]) == 6
    assert [row["model"] for row in found.rows()] == ["small", "next", "middle", "large"]
    shown = found._repr_html_()
    assert shown.count("<tr>") == 5
    assert "this order has" in shown
