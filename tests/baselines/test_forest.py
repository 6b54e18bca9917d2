"""The forest: steps are found, answers stay within what was seen, and nobody is judged by trees that saw it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ampere.estimation.kernel_forests import grow_forest

RNG = np.random.default_rng(0)
ROWS = RNG.uniform(0, 1, (200, 4))
STEP = np.where(ROWS[:, 2] > 0.4, 5.0, 1.0)


def test_a_step_is_found_among_features_that_do_not_matter():
    forest = grow_forest(ROWS, STEP)
    below, above = np.full((1, 4), 0.3), np.full((1, 4), 0.5)
    assert np.allclose(forest.costs(np.vstack([below, above])), [1.0, 5.0], rtol=0.02)


def test_nobody_is_judged_by_trees_that_saw_it():
    costs = STEP.copy()
    costs[7] = 1000.0
    told = grow_forest(ROWS, costs).out_of_bag
    assert told[7] < 10
    assert np.nanmedian(np.abs(told / costs - 1)) < 0.05


def test_one_sample_is_all_that_is_known():
    forest = grow_forest(np.array([[1.0, 2.0]]), np.array([3.0]))
    assert np.allclose(forest.costs(np.array([[9.0, 9.0]])), 3.0)
    assert np.isnan(forest.out_of_bag).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**31), st.floats(0.1, 20))
def test_answers_lie_within_what_was_seen(count, seed, spread):
    rng = np.random.default_rng(seed)
    rows, costs = rng.integers(0, 3, (count, 3)).astype(float), np.exp(spread * rng.standard_normal(count))
    told = grow_forest(rows, costs, trees=5).costs(rng.uniform(-5, 5, (4, 3)))
    assert np.all(told >= costs.min() * (1 - 1e-9))
    assert np.all(told <= costs.max() * (1 + 1e-9))
