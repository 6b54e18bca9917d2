import numpy as np
import pytest

from ampere.core import Measurement, Meter
from ampere.estimation.normalization import BELIEF, DriftShare, corrected, drift_share_of, to_reference

METER = Meter("cpu-time", False, "5 W per busy core")


def measured(rounds: list[float], yardsticks: list[float]) -> Measurement:
    ratio = float(np.median(rounds))
    return Measurement(ratio, ratio, ratio, ratio, 8, tuple(rounds), METER, tuple(yardsticks))


def slowed(sharing: float, count: int = 60) -> list[Measurement]:
    """Networks on a machine whose yardstick slows down by up to a fifth, of which they share a part."""
    rng = np.random.default_rng(1)
    found = []
    for cost in rng.uniform(1, 10, count):
        yardsticks = 1 + 0.2 * rng.random(2)
        found.append(measured(list(cost * yardsticks**sharing / yardsticks), list(yardsticks)))
    return found


@pytest.mark.parametrize("sharing", [0.6, 0.8, 0.98])
def test_the_shared_part_is_found(sharing):
    assert drift_share_of(slowed(sharing)).part == pytest.approx(sharing, abs=0.05)


def test_without_repeats_the_plain_ratio_stays():
    assert drift_share_of([measured([2.0], [1.1])]) == drift_share_of([]) == (1.0, pytest.approx(BELIEF))


def test_rounds_agree_in_the_reference_condition():
    for m in slowed(0.7):
        rounds = to_reference(m, 1.0, 0.7).rounds
        assert max(rounds) == pytest.approx(min(rounds))


def test_a_throttled_clock_changes_nothing():
    """Both slow down alike: the ratio is right as it is, and the correction leaves it alone."""
    throttled = [measured([3.0, 3.0], [1.0, 1.43]) for _ in range(20)]
    sharing = drift_share_of(throttled).part
    assert to_reference(throttled[0], 1.0, sharing).ratio == pytest.approx(3.0, rel=0.03)


def test_all_figures_of_a_measurement_move_together():
    m = to_reference(measured([2.0, 2.0], [1.2, 1.2]), 1.0, 0.5)
    assert m.joules == m.seconds == m.cpu_seconds == m.ratio == pytest.approx(2.0 * 1.2**0.5)


@pytest.mark.parametrize("true", [0.5, 0.7, 1.0])
def test_networks_measured_once_tell_the_part_too(true):
    """Their errors move with the yardstick by as much as the part is wrong."""
    rng = np.random.default_rng(2)
    conditions, noise = rng.normal(0.1, 0.1, 40), 0.02
    errors = (true - 1.0) * (conditions - conditions.mean()) + noise * rng.standard_normal(40)
    found = corrected(DriftShare(1.0, BELIEF), conditions, errors, np.full(40, noise))
    assert found.part == pytest.approx(true, abs=3 * found.doubt)
    assert found.doubt < 0.05


def test_a_quiet_machine_tells_nothing_of_the_part():
    quiet = corrected(DriftShare(1.0, BELIEF), np.full(20, 0.1), np.linspace(-0.05, 0.05, 20), np.full(20, 0.02))
    assert quiet == (1.0, pytest.approx(BELIEF))
