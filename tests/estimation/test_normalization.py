import math
from dataclasses import replace

import numpy as np
import pytest
from tests.synthetic import block, chain

from ampere.core import Measurement, Meter, TrainingSetup
from ampere.core.measurement import YARDSTICK_ALONE, YARDSTICK_EARLY, Window
from ampere.estimation.normalization import (
    PRIOR_STDDEV,
    DriftShare,
    NormalizedCost,
    Reference,
    corrected,
    drift_share_of,
    normalized,
    reference_of,
    speed_spread,
    to_reference,
    usable,
)
from ampere.storage import Observation
from ampere.storage.profile import Profile

METER = Meter("cpu-time", False, "5 W per busy core")
REFERENCE = Reference(1.0)


def measured(rounds: list[float], yardsticks: list[float]) -> NormalizedCost:
    """One network whose step cost so many yardstick steps in each round, paired with yardsticks of so many seconds."""
    blocks = [block(r * y, y, joules=r * y, meter=METER) for r, y in zip(rounds, yardsticks, strict=True)]
    return normalized([Observation(chain(3, 8), b, "network") for b in blocks], REFERENCE)[0]


def slowed(sharing: float, count: int = 60) -> list[NormalizedCost]:
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
    assert drift_share_of([measured([2.0], [1.1])]) == drift_share_of([]) == (1.0, pytest.approx(PRIOR_STDDEV))


def test_rounds_agree_in_the_reference_condition():
    for m in slowed(0.7):
        rounds = to_reference(m, REFERENCE, 0.7).rounds
        assert max(rounds) == pytest.approx(min(rounds))


def test_a_throttled_clock_changes_nothing():
    """Both slow down alike: the ratio is right as it is, and the correction leaves it alone."""
    throttled = [measured([3.0, 3.0], [1.0, 1.43]) for _ in range(20)]
    sharing = drift_share_of(throttled).part
    assert to_reference(throttled[0], REFERENCE, sharing).ratio == pytest.approx(3.0, rel=0.03)


def test_all_figures_of_a_measurement_move_together():
    m = to_reference(measured([2.0, 2.0], [1.2, 1.2]), REFERENCE, 0.5)
    assert (m.joules, m.seconds, m.busy_seconds, m.ratio) == pytest.approx((2.0 * 1.2**0.5,) * 4)


@pytest.mark.parametrize("true", [0.5, 0.7, 1.0])
def test_networks_measured_once_show_the_part_too(true):
    """Their errors move with the yardstick by as much as the part is wrong."""
    rng = np.random.default_rng(2)
    conditions, noise = rng.normal(0.1, 0.1, 40), 0.02
    errors = (true - 1.0) * (conditions - conditions.mean()) + noise * rng.standard_normal(40)
    found = corrected(DriftShare(1.0, PRIOR_STDDEV), conditions, errors, np.full(40, noise))
    assert found.part == pytest.approx(true, abs=3 * found.stddev)
    assert found.stddev < 0.05


def test_a_quiet_machine_says_nothing_about_the_part():
    quiet = corrected(DriftShare(1.0, PRIOR_STDDEV), np.full(20, 0.1), np.linspace(-0.05, 0.05, 20), np.full(20, 0.02))
    assert quiet == (1.0, pytest.approx(PRIOR_STDDEV))


def seen(ratio: float, allocator: str = "tuned", flags: tuple[str, ...] = (), width: int = 8) -> Observation:
    found = block(ratio * 0.002, 0.002, meter=METER, allocator=allocator, flags=flags)
    return Observation(chain(3, width), found, "network")


def costs(*observations: Observation) -> tuple[NormalizedCost, ...]:
    return normalized(observations, Reference(0.002))


def test_rounds_of_one_network_become_one_cost():
    (one,) = costs(seen(2.0), seen(2.2), seen(2.1))
    assert one.ratio == pytest.approx(2.1)
    assert one.rounds == pytest.approx((2.0, 2.2, 2.1))
    assert one.iterations == 24
    assert one.joules == pytest.approx(0.021)
    assert one.spread == pytest.approx(0.0476, abs=1e-3)


def test_a_single_round_has_no_spread():
    assert costs(seen(2.0))[0].spread is None


def test_allocators_and_networks_stay_apart():
    assert len(costs(seen(2.0), seen(2.0, "system"), seen(2.0, width=9))) == 3


def test_a_flag_stays_when_most_rounds_have_it():
    assert costs(seen(2.0, flags=("loaded",)), seen(2.1))[0].flags == ()
    assert costs(seen(2.0, flags=("loaded",)), seen(2.1, flags=("loaded",)))[0].flags == ("loaded",)


def test_a_counters_joules_are_expressed_in_the_yardsticks():
    """A clock that was lowered changes both; the reference is what counts."""
    counter = Meter("powercap", True, "package")
    found = block(0.004, 0.002, joules=0.08, yardstick_joules=0.02, meter=counter)
    (cost,) = normalized([Observation(chain(3, 8), found, "network")], Reference(0.002, joules=0.01))
    assert cost.joules_rounds == (cost.joules,) == (pytest.approx(0.04),)


def test_what_was_only_timed_costs_the_yardsticks_power_and_says_so():
    found = block(0.004, 0.002, joules=0.0, meter=Meter("battery", True, "whole device"))
    timed = [window._replace(joules=None) for window in found.target]
    only_timed = type(found)(tuple(timed), found.yardstick, found.meter)
    (cost,) = normalized([Observation(chain(3, 8), only_timed, "network")], Reference(0.002, joules=0.01))
    assert (cost.joules, cost.joules_rounds, cost.meter.measured) == (pytest.approx(0.02), (), False)
    assert not usable(only_timed, Reference(0.002))


def test_a_measurement_is_left_as_it_was():
    one = seen(2.0)
    before = one.measurement.to_json()
    to_reference(costs(one)[0], Reference(0.001), 0.5).scaled(3.0)
    assert one.measurement.to_json() == before


def test_how_much_the_speed_wandered_is_the_spread_of_all_yardsticks():
    def seen(*yardsticks: float) -> list[Observation]:
        return [Observation(chain(3, 8), block(0.02, yardstick), "network") for yardstick in yardsticks]

    assert speed_spread(seen(*[0.002] * 12), Reference(0.002)) == pytest.approx(0.0, abs=1e-9)
    assert speed_spread(seen(*[0.0018, 0.002, 0.0022] * 4), Reference(0.002)) == pytest.approx(
        1.4826 * math.log(1.1), rel=0.1
    )
    assert speed_spread(seen(0.002, 0.004), Reference(0.002)) is None


def crowded_out(ratio: float, allocator: str = "tuned") -> Observation:
    """A block whose network takes so many yardstick steps; a large one leaves the yardstick little of the caches."""
    alone, steps = 0.002, 5 if allocator == "system" else 1
    slowdown = 0.88 if allocator == "system" else max(1.0, ratio) ** 0.1
    target = Window(1, ratio * alone, ratio * alone, 5.0 * ratio * alone)
    beside = Window(steps, *[steps * slowdown * alone] * 2, None)
    found = Measurement((target,), (beside, beside), METER, allocator, conditions={YARDSTICK_ALONE: alone})
    return Observation(chain(3, 8), found, "network")


def known(*observations: Observation) -> Profile:
    return Profile({"id": "a"}, TrainingSetup(), METER, 0.002, observations)


def test_a_yardstick_that_networks_slow_down_is_seen_through():
    ratios = np.geomspace(0.5, 25, 40)
    profile = known(*map(crowded_out, ratios), *(crowded_out(r, "system") for r in (1, 3, 5, 7, 20)))
    reference = reference_of(profile)
    for ratio in (0.7, 2.0, 6.0, 20.0):
        for allocator in ("tuned", "system"):
            (cost,) = normalized([crowded_out(ratio, allocator)], reference)
            assert cost.ratio == pytest.approx(ratio, rel=0.05)
            assert cost.yardsticks == pytest.approx([0.002], rel=0.05)
            assert cost.joules == pytest.approx(5.0 * ratio * 0.002, rel=0.05)
    assert reference.loop_seconds == pytest.approx(0.88 * 0.002)
    assert speed_spread(profile.observations, reference) < 0.02, "the machine's speed did not change"


def test_a_forked_process_does_not_say_how_long_the_yardstick_takes_alone():
    """Its first steps copy pages that it shares with its parent."""

    def slow_at_first(observation: Observation) -> Observation:
        found = replace(observation.measurement, conditions={YARDSTICK_ALONE: 0.0023})
        return replace(observation, measurement=found)

    quiet = [*map(crowded_out, np.geomspace(0.5, 25, 40))]
    reference = reference_of(known(*quiet, *(slow_at_first(crowded_out(r, "system")) for r in (1, 3, 5, 7, 20))))
    assert reference.loop_seconds == pytest.approx(0.88 * 0.002)


def test_a_plain_process_says_itself_how_much_quicker_a_loop_of_the_yardstick_is():
    """Read in long loops beside it, the yardstick is quicker than in the short ones of a block."""
    profile = known(*map(crowded_out, np.geomspace(0.5, 25, 40)), *(crowded_out(r, "system") for r in range(1, 6)))
    loop = Window(50, 50 * 0.8 * 0.002, 50 * 0.8 * 0.002, None)
    target = Window(3, 3 * 4.0 * 0.002, 3 * 4.0 * 0.002, 1.0)
    plain = Measurement((target,), (loop, loop), METER, "system", conditions={YARDSTICK_EARLY: 0.002})
    (cost,) = normalized([Observation(chain(3, 8), plain, "touch")], reference_of(profile))
    assert cost.ratio == pytest.approx(4.0)
    assert cost.yardsticks == pytest.approx([0.002])


def test_the_next_process_costs_the_mean_of_those_that_were_seen_and_other_rounds_their_median():
    loop = Window(50, 50 * 0.002, 50 * 0.002, None)

    def costing(ratio: float, **conditions: float) -> Observation:
        target = Window(3, 3 * ratio * 0.002, 3 * ratio * 0.002, 3 * ratio * 0.01)
        measurement = Measurement((target,), (loop, loop), METER, "system", conditions=conditions)
        return Observation(chain(3, 8), measurement, "touch")

    reference = reference_of(known(crowded_out(2.0)))
    for conditions, expected in (({YARDSTICK_EARLY: 0.002}, 5.0), ({}, 4.0)):
        (cost,) = normalized([costing(ratio, **conditions) for ratio in (3.0, 4.0, 8.0)], reference)
        moved = to_reference(cost, reference, 0.5)
        for found in (cost, moved):
            assert found.ratio == pytest.approx(expected)
            assert found.busy_seconds == pytest.approx(expected * reference.seconds)
            assert found.joules == pytest.approx(expected * 0.01 * reference.seconds / 0.002)


def test_few_blocks_do_not_tell_how_a_yardstick_is_slowed_down():
    few = reference_of(known(*map(crowded_out, [1.0, 5.0, 20.0]), crowded_out(2.0, "system")))
    assert (few.after_steps, few.in_loops) == ((), 0.0)


def test_one_yardstick_that_was_disturbed_changes_nothing():
    blocks = [*map(crowded_out, np.geomspace(0.5, 25, 40))]
    found = blocks[20].measurement
    slow = replace(found, yardstick=tuple(w._replace(busy_seconds=3 * w.busy_seconds) for w in found.yardstick))
    blocks[20] = replace(blocks[20], measurement=slow)
    (cost,) = normalized([crowded_out(6.0)], reference_of(known(*blocks)))
    assert cost.ratio == pytest.approx(6.0, rel=0.03)
