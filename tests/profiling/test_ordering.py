"""Networks with the narrowest layer of a kind come early, until something as narrow was measured."""

from tests.synthetic import chain

from ampere.network import Measurement, Meter
from ampere.profiles.profile import Observation
from ampere.profiling.experiment import Experiment
from ampere.profiling.ordering import edges_in_turn


def whole(*widths):
    network = chain(*widths)
    return Experiment(network, {"layers": network.to_json()}, "network")


def measured(experiment):
    meter = Meter("cpu-time", False, "5 W per busy core")
    return Observation(experiment.network, Measurement(1.0, 1.0, 1.0, 1.0, 8, (1.0,), meter, (1.0,)), "network")


NARROW_FIRST, USUAL, LATEST = whole(3, 2, 48, 16), whole(3, 24, 48, 16), whole(3, 30, 40, 16)


def test_the_narrowest_takes_turns_with_the_latest():
    order = edges_in_turn([NARROW_FIRST, USUAL, LATEST], [measured(USUAL)])
    assert order == [NARROW_FIRST, LATEST, USUAL]


def test_what_was_measured_as_narrow_is_no_news():
    order = edges_in_turn([NARROW_FIRST, USUAL, LATEST], [measured(NARROW_FIRST), measured(USUAL)])
    assert order == [LATEST, USUAL, NARROW_FIRST]


def test_everything_is_there_once():
    pool = [whole(3, width, 20, 16) for width in range(4, 24)]
    order = edges_in_turn(pool, [])
    assert len(order) == len(pool)
    assert all(any(e is other for other in order) for e in pool)
