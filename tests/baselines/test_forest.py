"""The forests: steps are found, estimates stay within what was seen, and without scikit-learn the remedy is named."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.synthetic import conv

from ampere.baselines import METHODS, answers
from ampere.core.errors import RuntimeMissingError
from ampere.estimation.kernel_forests import KernelForests, forest_costs, grow_forest, out_of_bag

RNG = np.random.default_rng(0)
ROWS = RNG.uniform(0, 1, (200, 4))
STEP = np.where(ROWS[:, 2] > 0.4, 5.0, 1.0)


def test_a_step_is_found_among_features_that_do_not_matter():
    forest = grow_forest(ROWS, STEP)
    below, above = np.full((1, 4), 0.3), np.full((1, 4), 0.5)
    assert np.allclose(forest_costs(forest, np.vstack([below, above])), [1.0, 5.0], rtol=0.02)


def test_the_same_seed_grows_the_same_forest():
    one, same = (forest_costs(grow_forest(ROWS, STEP, seed=3), ROWS) for _ in range(2))
    assert np.array_equal(one, same)


def test_no_sample_is_estimated_by_trees_that_saw_it():
    costs = STEP.copy()
    costs[7] = 1000.0
    estimates = out_of_bag(grow_forest(ROWS, costs), len(costs))
    assert estimates[7] < 10
    assert np.nanmedian(np.abs(estimates / costs - 1)) < 0.05


def test_one_sample_is_all_that_is_known():
    forest = grow_forest(np.array([[1.0, 2.0]]), np.array([3.0]))
    assert np.allclose(forest_costs(forest, np.array([[9.0, 9.0]])), 3.0)
    assert np.isnan(out_of_bag(forest, 1)).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**31), st.floats(0.1, 20))
def test_estimates_lie_within_what_was_seen(count, seed, spread):
    rng = np.random.default_rng(seed)
    rows, costs = rng.integers(0, 3, (count, 3)).astype(float), np.exp(spread * rng.standard_normal(count))
    estimates = forest_costs(grow_forest(rows, costs, trees=5), rng.uniform(-5, 5, (4, 3)))
    assert np.all(estimates >= costs.min() * (1 - 1e-9))
    assert np.all(estimates <= costs.max() * (1 + 1e-9))


@pytest.mark.usefixtures("no_sklearn")
def test_without_scikit_learn_kernels_are_named_as_unavailable():
    assert answers.unavailable().keys() == {"kernels"}
    assert "kernels" not in answers.names("all")
    assert "kernels" in METHODS
    for run in (lambda: answers.names("flops,kernels"), lambda: KernelForests([conv(3, 4)], ["forward"], np.ones(1))):
        with pytest.raises(RuntimeMissingError, match=r"pip install 'ampere-energy\[baselines\]'"):
            run()
