"""Several threads: waiting threads spin, so busy time is noisy by 11 % where wall time is by 1.3 %."""

from dataclasses import replace
from random import Random
from statistics import mean

import pytest
from tests.synthetic import random_chains, true_seconds

from ampere.core import Measurement, Meter, TrainingSetup, work
from ampere.core.errors import ProfileError
from ampere.core.measurement import BUSY, WALL, Window
from ampere.estimation.estimator import Estimator
from ampere.estimation.fitting import busy_power
from ampere.estimation.normalization import costs_of, guide
from ampere.meters import CpuTimeMeter
from ampere.storage.profile import Observation, Profile

METER = Meter(**CpuTimeMeter(5.0).describe())
YARDSTICK = 1e-3
WALL_NOISE, BUSY_NOISE = 0.013, 0.11


def seconds_on(threads, network):
    """Products are divided among threads, what moves memory and starts operations is not."""
    divided = sum(work(layer).padded_flops for layer in network.layers) / 5e10
    return true_seconds(network) - divided * (1 - 1 / threads)


def busy_cores(threads, network):
    """Threads that spin while one of them works: more where more is divided."""
    return 1 + (threads - 1) * (0.7 + 0.3 * seconds_on(2, network) / seconds_on(1, network))


def measurement(threads, network, rng):
    speed = rng.uniform(1.0, 1.5)  # of the machine, which the yardstick shares

    def window(seconds, cores, steps):
        wall = steps * seconds * speed * rng.gauss(1, WALL_NOISE if threads > 1 else 0.005)
        busy = wall * cores * (rng.gauss(1, BUSY_NOISE) if threads > 1 else 1.0)
        return Window(steps, wall, busy, 5.0 * busy)

    target = [window(seconds_on(threads, network), busy_cores(threads, network), 8) for _ in range(3)]
    yardstick = [window(YARDSTICK, 1 + 0.8 * (threads - 1), 4) for _ in range(4)]
    return Measurement(tuple(target), tuple(yardstick), METER)


def profile(threads, count, seed):
    rng = Random(f"{threads} {seed}")
    seen = [Observation(n, measurement(threads, n, rng), "network") for n in random_chains(seed, count)]
    return Profile({"id": "x"}, TrainingSetup(threads=threads), METER, YARDSTICK, tuple(seen))


def errors(known, threads=2):
    estimator = Estimator(known)
    joules, seconds = [], []
    for network in random_chains(99, 40):
        found = estimator.estimate(network, "tuned")
        wall = seconds_on(threads, network)
        seconds.append(abs(found.seconds / wall - 1))
        joules.append(abs(found.joules / (5.0 * wall * busy_cores(threads, network)) - 1))
    return mean(joules), mean(seconds)


def test_wall_time_guides_as_soon_as_there_is_a_second_thread():
    assert [guide("yardstick", threads) for threads in (1, 2, 8)] == [BUSY, WALL, WALL]
    assert guide("wallclock", 1) == WALL


def test_costs_on_two_threads_repeat_as_wall_time_does():
    again, seen = Random("again"), profile(2, 30, 5)
    repeated = [replace(o, measurement=measurement(2, o.network, again)) for o in seen.observations]
    apart = [
        abs(a.seconds / b.seconds - 1)
        for a, b in zip(costs_of(seen), costs_of(replace(seen, observations=tuple(repeated))), strict=True)
    ]
    assert mean(apart) < 0.02
    assert all(c.clock == WALL and c.guiding_seconds == c.seconds for c in costs_of(seen))


def test_joules_of_noisy_busy_time_are_learnt_as_power_is():
    known = profile(2, 60, 1)
    assert busy_power(costs_of(known))
    joules, seconds = errors(known)
    assert seconds < 0.02
    assert joules < 0.035  # a single network's busy time is off by 6 %


def test_watts_of_a_core_scale_the_joules_of_several_threads():
    known, network = profile(2, 20, 1), random_chains(3, 1)[0]
    usual, twice = (Estimator(known, watts).estimate(network, "tuned") for watts in (None, 10.0))
    assert twice.joules == pytest.approx(2 * usual.joules, rel=1e-6)
    assert twice.seconds == pytest.approx(usual.seconds)


def test_one_thread_tells_most_of_two():
    one, seeds = profile(1, 60, 1), (2, 3, 4)
    few, best = [profile(2, 25, seed) for seed in seeds], [errors(profile(2, 60, seed)) for seed in seeds]
    alone = [errors(each) for each in few]
    shared = [errors(replace(each, others=(one,))) for each in few]
    for with_one, without in zip(shared, alone, strict=True):
        assert with_one[0] < without[0]
        assert with_one[1] < without[1]
    assert mean(joules for joules, _ in shared) < 1.2 * mean(joules for joules, _ in best)
    assert mean(seconds for _, seconds in shared) < 1.2 * mean(seconds for _, seconds in best)


def test_a_profile_of_one_thread_is_not_made_worse_by_two():
    one, two = profile(1, 40, 1), profile(2, 40, 2)
    assert errors(replace(one, others=(two,)), 1)[1] < 1.2 * errors(one, 1)[1]


def test_each_number_of_threads_is_there_once():
    one, two = profile(1, 3, 1), profile(2, 3, 1)
    both = replace(one, others=(two,))
    assert both.threads == (1, 2)
    assert both.on_threads(2) == replace(two, others=(one,))
    assert both.on_threads(4) is None
    assert Profile.from_json(both.to_json()) == both
    for wrong in (one, replace(two, device={"id": "y"}), replace(two, others=(profile(4, 3, 1),))):
        with pytest.raises(ProfileError, match="other numbers of threads"):
            replace(one, others=(wrong,))
