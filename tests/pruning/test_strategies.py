"""Strategies against costs that are written down: straight ones, and ones that fall in steps of eight channels."""

from itertools import product
from math import ceil
from random import Random

import numpy as np
import pytest

from ampere.pruning.strategies import STRATEGIES
from ampere.pruning.widths import Problem, cheapest, first_that_fits

FULL = (24, 40, 33)
PRICES = (1.0, 3.0, 0.5)


def straight(widths):
    return 2.0 + sum(p * w for p, w in zip(PRICES, widths, strict=True))


def stepped(widths):
    return 2.0 + sum(p * 8 * ceil(w / 8) for p, w in zip(PRICES, widths, strict=True))


def problem(cost=straight, share=0.5, seed=0):
    rng = np.random.default_rng(seed)
    importance = [(values := rng.uniform(0.1, 1, width)) / values.sum() for width in FULL]
    return Problem(importance, cost, share * cost(FULL), Random(seed))


def widths_of(chosen):
    return tuple(full - len(chosen[group]) for group, full in enumerate(FULL))


def kept(problem, chosen):
    """The product over groups of the importance that remains."""
    return np.prod([1 - values[chosen[group]].sum() for group, values in enumerate(problem.importance)])


@pytest.mark.parametrize("cost", [straight, stepped])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.9])
@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_meets_the_budget_and_leaves_each_group_something(name, share, cost):
    asked = problem(cost, share)
    chosen = STRATEGIES[name](asked)
    assert cost(widths_of(chosen)) <= asked.budget
    assert min(widths_of(chosen)) >= 1
    assert all(len(set(units)) == len(units) for units in chosen.values())


@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_no_channel_goes_that_saves_nothing(share):
    chosen = STRATEGIES["energy"](problem(stepped, share))
    for width, full in zip(widths_of(chosen), FULL, strict=True):
        assert width == full or width % 8 == 0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("cost", [straight, stepped])
def test_more_importance_is_kept_than_by_those_that_do_not_know_the_cost(cost, seed):
    asked = problem(cost, 0.5, seed)
    ours = kept(asked, STRATEGIES["energy"](asked))
    assert ours >= kept(asked, STRATEGIES["magnitude"](asked))
    assert ours > kept(asked, STRATEGIES["random"](asked))


@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_the_budget_is_used(share):
    asked = problem(straight, share)
    widths = widths_of(STRATEGIES["energy"](asked))
    left = asked.budget - straight(widths)
    assert left < min(price for price, width, full in zip(PRICES, widths, FULL, strict=True) if width < full)


def test_the_least_important_channels_go():
    asked = problem()
    for name in ("energy", "magnitude"):
        for group, units in STRATEGIES[name](asked).items():
            stay = np.delete(asked.importance[group], units)
            assert len(units) == 0 or asked.importance[group][units].max() <= stay.min()


def test_a_valley_behind_a_hill_is_found():
    """Narrower is more expensive at first, as where a faster kernel needs whole vectors."""

    def hilly(widths):
        return sum(8 * ceil(w / 8) * (1.5 if w % 8 else 1.0) for w in widths)

    asked = problem(hilly, 0.5)
    widths = widths_of(STRATEGIES["energy"](asked))
    assert hilly(widths) <= asked.budget
    assert all(w % 8 == 0 for w in widths if w > 8)


def test_random_is_repeatable_and_differs_by_seed():
    assert STRATEGIES["random"](problem(seed=1)) == STRATEGIES["random"](problem(seed=1))
    assert STRATEGIES["random"](problem(seed=1)) != STRATEGIES["random"](problem(seed=2))


def test_the_least_is_found_where_few_channels_are_expensive():
    def valley(widths):
        return sum(abs(w - 8) + 10 for w in widths)

    assert cheapest(FULL, lambda some: [valley(widths) for widths in some]) == (8, 8, 8)


@pytest.mark.parametrize("name", STRATEGIES)
def test_what_fits_is_found_where_few_channels_are_expensive(name):
    def valley(widths):
        return sum(abs(w - 8) + 1 for w in widths)

    asked = problem(valley, 0.5)
    chosen = STRATEGIES[name](asked)
    assert valley(widths_of(chosen)) <= asked.budget


@pytest.mark.parametrize("name", STRATEGIES)
def test_nothing_is_made_up_where_nothing_fits(name):
    assert STRATEGIES[name](problem(lambda widths: 1.0 + sum(widths) / 1e3, 0.5)) is None


@pytest.mark.parametrize("first", [0, 1, 37, 1000])
def test_the_first_that_fits(first):
    assert first_that_fits(1000, lambda place: place >= first) == first


def test_none_fits():
    assert first_that_fits(10, lambda place: False) is None


def exhaustive(asked):
    """The most that any widths inside the budget keep."""
    kept = [np.concatenate([[0.0], np.cumsum(np.sort(values)[::-1])]) for values in asked.importance]
    every = product(*(range(1, full + 1) for full in FULL))
    return max(np.prod([kept[g][w] for g, w in enumerate(ws)]) for ws in every if asked.cost(ws) <= asked.budget)


@pytest.mark.parametrize("cost", [straight, stepped])
@pytest.mark.parametrize("share", [0.35, 0.5, 0.7])
def test_exchanges_come_near_to_the_best_that_there_is(cost, share):
    asked = problem(cost, share)
    assert kept(asked, STRATEGIES["energy"](asked)) >= 0.99 * exhaustive(asked)
