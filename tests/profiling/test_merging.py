import pytest
from tests.synthetic import chain

from ampere.core import Measurement, Meter
from ampere.profiling.observing import merged
from ampere.storage import Observation

METER = Meter("cpu-time", False, "5 W per busy core")


def seen(ratio: float, allocator: str = "tuned", flags: tuple[str, ...] = (), width: int = 8) -> Observation:
    figures = (ratio * 0.01, ratio * 0.002, ratio * 0.002, ratio)
    return Observation(
        chain(3, width), Measurement(*figures, 8, (ratio,), METER, (0.002,), allocator, {}, flags), "network"
    )


def test_rounds_of_one_network_become_one_measurement():
    (one,) = merged([seen(2.0), seen(2.2), seen(2.1)])
    assert one.measurement.ratio == 2.1
    assert one.measurement.rounds == (2.0, 2.2, 2.1)
    assert one.measurement.iterations == 24
    assert one.measurement.joules == pytest.approx(0.021)
    assert one.measurement.spread == pytest.approx(0.0476, abs=1e-3)


def test_a_single_round_has_no_spread():
    (one,) = merged([seen(2.0)])
    assert one.measurement.spread is None


def test_allocators_and_networks_stay_apart():
    assert len(merged([seen(2.0), seen(2.0, "system"), seen(2.0, width=9)])) == 3


def test_a_flag_stays_when_most_rounds_have_it():
    assert merged([seen(2.0, flags=("loaded",)), seen(2.1)])[0].measurement.flags == ()
    assert merged([seen(2.0, flags=("loaded",)), seen(2.1, flags=("loaded",))])[0].measurement.flags == ("loaded",)


def test_merging_again_changes_nothing():
    once = merged([seen(2.0), seen(2.2)])
    assert merged(once) == once
