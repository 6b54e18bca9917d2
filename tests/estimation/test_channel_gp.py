"""One kind's process: its answers are always finite, and it reproduces its data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ampere.estimation.sequential import ChannelGP

channels = st.tuples(st.integers(1, 4096), st.integers(1, 4096))
points = st.lists(st.tuples(channels, st.floats(0, 10)), min_size=1, max_size=12)


def process(seen) -> ChannelGP:
    return ChannelGP(np.array([c for c, _ in seen], dtype=float), np.array([y for _, y in seen]))


@settings(deadline=None, max_examples=60)
@given(points, st.lists(channels, min_size=1, max_size=5))
def test_every_answer_is_finite(seen, points):
    gp = process(seen)
    mean, covariance = gp.posterior(np.array(points, dtype=float))
    assert np.all(np.isfinite(mean))
    assert np.all(np.isfinite(covariance))
    assert np.all(np.isfinite(gp.deviations(np.array(points, dtype=float))))


def test_it_repeats_what_was_measured_and_uncertainties_what_lies_between():
    gp = process([((c, 10), 1e-3 + 1e-6 * c**2) for c in (1, 20, 40, 60)])
    known, between = np.array([[20.0, 10.0]]), np.array([[30.0, 10.0]])
    assert gp.posterior(known)[0][0] == pytest.approx(1.4e-3, rel=0.02)
    assert gp.posterior(between)[0][0] == pytest.approx(1.9e-3, rel=0.05)
    assert gp.deviations(between)[0] > gp.deviations(known)[0]


def test_far_away_it_falls_back_on_the_mean_and_says_so():
    gp = process([((c, 10), 1e-3 + 2e-5 * c) for c in (1, 20, 40, 60)])
    far = np.array([[1e6, 10.0]])
    assert gp.posterior(far)[0][0] == pytest.approx(gp.mean, rel=0.01)
    assert gp.deviations(far)[0] > 3 * gp.deviations(np.array([[30.0, 10.0]]))[0]


def test_a_single_point_is_doubted_elsewhere():
    gp = process([((8, 8), 1e-3)])
    assert gp.deviations(np.array([[64.0, 64.0]]))[0] > 1e-4


def test_noise_is_not_taken_for_a_surface():
    rng = np.random.default_rng(0)
    xs = rng.integers(1, 64, 40)
    gp = process([((int(x), 10), 1e-3 * (1 + 0.05 * rng.standard_normal())) for x in xs])
    mean, _ = gp.posterior(np.stack([np.linspace(1, 64, 30), np.full(30, 10.0)], axis=1))
    assert np.max(np.abs(mean / 1e-3 - 1)) < 0.05
