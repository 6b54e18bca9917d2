import numpy as np
import pytest
from tests.synthetic import measured, random_chains

from ampere.estimation.additive import Additive
from ampere.estimation.hyperparameters import Hyperparameters
from ampere.estimation.marginal_likelihood import _Layout, most_probable

STEP = 1e-5


def coordinates(model: Additive) -> dict[str, int]:
    return {kind: positions.shape[1] for kind, positions in model.design.positions.items()}


def test_slopes_are_those_of_the_value() -> None:
    model, start = Additive(measured(random_chains(1, 20)), Hyperparameters()), Hyperparameters()
    layout = _Layout(coordinates(model))
    here = layout.typical + 0.1 * np.random.default_rng(0).standard_normal(len(layout.typical))
    slopes = layout.flat(model.marginal_likelihood(layout.unpack(here, start))[1])
    for index, slope in enumerate(slopes):
        aside = STEP * np.eye(len(here))[index]
        above, below = (model.marginal_likelihood(layout.unpack(here + s * aside, start))[0] for s in (1, -1))
        assert abs((above - below) / (2 * STEP) - slope) < 1e-4 * (1 + abs(slope))


def test_the_search_finds_something_more_probable() -> None:
    start = Hyperparameters()
    model = Additive(measured(random_chains(1, 30)), start)
    found = most_probable(model.marginal_likelihood, coordinates(model), start, 30)
    assert model.marginal_likelihood(found)[0] > model.marginal_likelihood(start)[0]


def test_a_search_from_several_places_ends_at_the_most_probable() -> None:
    poor, usual = Hyperparameters(residual=1.2, octaves=0.3), Hyperparameters()
    model = Additive(measured(random_chains(1, 15)), usual)
    found = most_probable(model.marginal_likelihood, coordinates(model), poor, 1, other_starts=[usual])
    assert model.marginal_likelihood(found)[0] > model.marginal_likelihood(poor)[0] + 10


def test_a_search_without_time_ends_where_it_began() -> None:
    start = Hyperparameters()
    model = Additive(measured(random_chains(1, 10)), start)
    found = most_probable(model.marginal_likelihood, coordinates(model), start, 30, seconds=0.0)
    assert np.isclose(found.residual, start.residual)


def test_hyperparameters_survive_a_file_and_older_files_are_read() -> None:
    learnt = Hyperparameters(residual=0.2, spread={"conv": 1.5}, stretch={"linear": (1.0, 2.0, 1.0, 1.0, 0.5, 1.0)})
    assert Hyperparameters.from_json(learnt.to_json()) == learnt
    assert Hyperparameters.from_json({"residual": 0.2}) == Hyperparameters(residual=0.2)


def test_stretches_for_another_number_of_coordinates_are_not_used() -> None:
    foreign = Hyperparameters(stretch={"linear": (9.0, 9.0)})
    assert np.array_equal(foreign.lengths("linear", 6), Hyperparameters().lengths("linear", 6))


def test_stretches_of_linear_layers_from_before_row_tiles_are_kept() -> None:
    earlier = Hyperparameters(stretch={"linear": (1.0, 2.0, 1.0, 1.0, 0.5, 1.0)})
    usual, kept = Hyperparameters().lengths("linear", 8), earlier.lengths("linear", 8)
    assert kept / usual == pytest.approx([1.0, 2.0, 1.0, 1.0, 0.5, 1.0, 1.0, 1.0])
