"""Which of two is cheaper: right as often as it says, and surer where the two share layers."""

from dataclasses import replace

import numpy as np
import pytest
from tests.synthetic import chain, conv, linear, observed, random_chains, true_seconds

from ampere import compare
from ampere.comparison import DeviceComparison, in_percent
from ampere.core import Meter, Network, TrainingSetup
from ampere.core.errors import UsageError
from ampere.estimation.estimate import Estimator
from ampere.storage import Profile

METER = Meter("cpu-time", False, "5 W per busy core")


def known_from(networks, method="additive"):
    noise = np.random.default_rng(0)
    seen = tuple(observed(n, true_seconds(n) * np.exp(0.01 * noise.standard_normal())) for n in networks)
    return Profile({"id": "known"}, TrainingSetup(), METER, 1e-3, seen, method=method)


@pytest.fixture(scope="module")
def estimator():
    return Estimator(known_from(random_chains(1, 40)))


def on_one(first, second, estimator) -> DeviceComparison:
    [device] = compare(first, second, estimator, allocator="tuned").devices
    return device


def test_a_network_with_one_more_layer_is_dearer(estimator):
    found = on_one(chain(3, 20, 30), chain(3, 20, 30, 40), estimator)
    assert (found.cheaper, found.ratio < 1) == (0, True)
    assert found.sure > 0.99
    low, high = found.ratio_interval90
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
    assert found.sure == 0.5
    assert "too close to call" in compare(chain(3, 20), chain(3, 20), estimator).sentence(found)


def test_doubt_about_shared_layers_cancels(estimator):
    shared = chain(3, 200, 200).layers[:-1]  # far outside what was measured
    networks = [Network((*shared, linear(200 * 196, outputs)), 10) for outputs in (10, 40)]
    found = on_one(*networks, estimator)
    apart = np.hypot(*(e.stddev / e.joules for e in found.estimates))
    assert found.relative_stddev < 0.5 * apart


def test_it_is_right_as_often_as_it_says(estimator):
    pairs = list(zip(random_chains(2, 150), random_chains(3, 150), strict=True))
    near = [(a, b) for a, b in pairs if 0.8 < true_seconds(a) / true_seconds(b) < 1.25]
    found = [on_one(a, b, estimator) for a, b in near]
    right = [(true_seconds(a) < true_seconds(b)) == (f.cheaper == 0) for (a, b), f in zip(near, found, strict=True)]
    assert len(near) > 20
    assert np.mean(right) == pytest.approx(np.mean([f.sure for f in found]), abs=0.12)
    assert np.mean([r for r, f in zip(right, found, strict=True) if f.sure > 0.95]) > 0.9


def test_different_batches_are_compared_by_the_example(estimator):
    large = Network((conv(3, 20, batch=20), linear(20 * 196, 10, rows=20)), 20)
    found = compare(chain(3, 20), large, estimator)
    [device] = found.devices
    assert found.per == "example"
    assert device.joules == (device.estimates[0].joules / 10, device.estimates[1].joules / 20)


def test_the_papers_method_is_joint_as_well():
    variants = [Network((linear(c, 10),), 10) for c in (8, 16, 32)]
    variants += [Network((linear(64, c), linear(c, 10)), 10) for c in (8, 16, 32)]
    estimator = Estimator(known_from(variants, "sequential"))
    found = on_one(variants[-1], variants[-1], estimator)
    assert found.relative_stddev == pytest.approx(0, abs=1e-6)
    assert on_one(variants[3], variants[-1], estimator).relative_stddev > 0


def test_every_profile_is_a_device_and_other_meters_are_told(estimator):
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
