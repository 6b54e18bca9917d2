"""One network over several profiles: those of one device are brought to one condition, others are left unchanged."""

import json
from dataclasses import replace
from itertools import permutations
from math import exp, hypot, log

import numpy as np
import pytest
from tests.synthetic import chain, observed, random_chains, true_seconds

from ampere import Estimator, Meter, Profile, TrainingSetup, compare
from ampere.comparison.normalization import UNKNOWN_CONDITION, Normalized, common_yardstick, normalize
from ampere.core.errors import UsageError
from ampere.estimation.normalization import PRIOR_STDDEV
from ampere.runtimes import description_of

METER = Meter("cpu-time", False, "5 W per busy core")
JAX = description_of("jax")
NETWORK = chain(3, 20, 30).renamed("small")


@pytest.fixture(scope="module")
def torch():
    noise = np.random.default_rng(0)
    seen = [observed(n, true_seconds(n) * np.exp(0.01 * noise.standard_normal())) for n in random_chains(1, 40)]
    return Profile({"id": "a", "cpu": "board", "torch": "2.13.0"}, TrainingSetup(), METER, 1e-3, tuple(seen))


@pytest.fixture(scope="module")
def jax(torch):
    """With the same costs, made while PyTorch's yardstick was as quick as for the first."""
    return replace(torch, setup=TrainingSetup("jax"), common_yardstick_seconds=1e-3)


def ranked(*profiles):
    return compare(NETWORK, *profiles, allocator="tuned")


def entries_of(*profiles):
    return {entry.name: entry for entry in ranked(*profiles).entries}


def test_a_profile_made_while_the_device_was_slower_is_expressed_cheaper(torch, jax):
    slower = entries_of(torch, replace(jax, common_yardstick_seconds=1.1e-3))
    assert slower["jax"].estimate.joules == pytest.approx(slower["torch"].estimate.joules / 1.1)
    assert slower["jax"].estimate.seconds == pytest.approx(slower["torch"].estimate.seconds / 1.1)
    assert slower["jax"].normalized.factor == pytest.approx(1 / 1.1)
    assert sum(share.joules for share in slower["jax"].estimate.layers) == pytest.approx(slower["jax"].estimate.joules)


def test_which_profile_comes_first_changes_no_ratio(torch, jax):
    slower = replace(jax, common_yardstick_seconds=1.1e-3)
    one, other = ranked(torch, slower), ranked(slower, torch)
    assert [entry.name for entry in one.entries] == [entry.name for entry in other.entries] == ["jax", "torch"]
    assert one.entries[1].ratio == pytest.approx(other.entries[1].ratio)
    assert one.probability == pytest.approx(other.probability)


def test_the_uncertainty_of_the_factor_is_in_the_interval(torch, jax):
    slower = ranked(torch, replace(jax, common_yardstick_seconds=1.1e-3))
    cheapest, other = slower.entries
    own = [entry.estimate.stddev / entry.estimate.joules for entry in slower.entries]
    assert other.relative_stddev == pytest.approx(hypot(*own, JAX.yardstick_repeats, PRIOR_STDDEV * log(1.1)))
    low, high = other.interval
    assert high / low == pytest.approx(exp(2 * 1.6449 * other.relative_stddev))
    assert cheapest.ratio == 1


def test_an_unsteady_machine_is_in_the_interval(torch, jax):
    """Of a yardstick that varies in plain loops; before other steps it varies with the network."""

    def with_yardsticks(profile, allocator):
        seen = [
            with_yardstick(o, 1e-3 * (1 + 0.3 * (n % 2)), allocator=allocator)
            for n, o in enumerate(profile.observations)
        ]
        return replace(profile, observations=tuple(seen))

    def uncertainty(allocator):
        normalized = normalize([Estimator(torch), Estimator(with_yardsticks(jax, allocator))], ["torch", "jax"])[1]
        return normalized.stddev

    assert uncertainty("tuned") == JAX.yardstick_repeats
    assert uncertainty("system") == pytest.approx(hypot(JAX.yardstick_repeats, log(1.3) / 2), rel=0.02)


def test_profiles_of_other_devices_have_no_uncertainty_of_a_factor(torch, jax):
    alone, beside = ranked(jax, replace(torch, device={"id": "b"})), ranked(jax, torch)
    assert [entry.normalized.stddev for entry in alone.entries] == [0, 0]
    assert sorted(entry.normalized.stddev for entry in beside.entries) == [0, JAX.yardstick_repeats]


def test_two_equal_places_are_too_close_to_call(torch, jax):
    ranking = ranked(torch, jax)
    assert ranking.probability == pytest.approx(0.5)
    assert "too close to call" in ranking.sentence


def test_twice_the_price_is_certain(torch, jax):
    twice = tuple(observed(n, 2 * true_seconds(n)) for n in random_chains(1, 40))
    ranking = ranked(torch, replace(jax, observations=twice))
    assert ranking.sentence.startswith("small is cheapest in torch (over 99.9 % probability): jax costs ")
    assert ranking.entries[1].ratio == pytest.approx(2, rel=0.05)


def test_the_runtime_that_uses_pytorchs_yardstick_needs_no_other(torch):
    for runtime in ("torch", "torch-compile"):
        assert common_yardstick(replace(torch, setup=TrainingSetup(runtime))) == (1e-3, None)
    assert common_yardstick(replace(torch, setup=TrainingSetup("jax"))) is None
    assert common_yardstick(replace(torch, device={"id": "x", "worker": "of others"})) is None


@pytest.mark.parametrize(
    ("changed", "says", "helps"),
    [
        ({"common_yardstick_seconds": None}, "not timed with jax", "with PyTorch there"),
        (
            {"device": {"id": "a", "worker": "of others"}, "common_yardstick_seconds": None},
            "cannot be timed",
            "one day",
        ),
        ({"setup": TrainingSetup("jax", threads=2)}, "on 1 and 2 threads", "profile both on one day"),
        ({"device": {"id": "a", "torch": "2.12.0"}}, "of PyTorch 2.12.0 and 2.13.0", "both again with one of them"),
        ({"timing": "wallclock"}, "jax was profiled without a yardstick", "--timing yardstick"),
    ],
)
def test_what_has_no_common_yardstick_is_left_unchanged_and_says_what_would_help(torch, jax, changed, says, helps):
    other = replace(jax, **{"common_yardstick_seconds": 1.1e-3, **changed})
    [normalized] = [entry.normalized for entry in ranked(torch, other).entries if entry.normalized.caveat]
    why, _, help_ = normalized.caveat.partition(": ")
    assert says in why
    assert helps in help_
    assert (normalized.factor, normalized.seconds_factor, normalized.expressed_as) == (1, 1, "")
    assert normalized.stddev >= UNKNOWN_CONDITION


def test_a_profile_that_cannot_be_brought_to_one_condition_is_less_certain(torch, jax):
    more_expensive = tuple(observed(n, 1.2 * true_seconds(n)) for n in random_chains(1, 40))
    with_it = replace(jax, observations=more_expensive)
    without = replace(with_it, common_yardstick_seconds=None)
    known, unknown = ranked(torch, with_it), ranked(torch, without)
    assert known.entries[1].ratio == pytest.approx(unknown.entries[1].ratio)
    assert 0.8 < unknown.probability < known.probability - 0.01


def test_a_profile_without_it_keeps_no_other_from_being_normalized(torch, jax):
    """In whichever order they come."""
    lacking = replace(jax, setup=TrainingSetup("mnn"), common_yardstick_seconds=None)
    slower = replace(jax, common_yardstick_seconds=1.1e-3)
    every = [ranked(*order) for order in permutations([lacking, slower, torch])]
    for ranking in every:
        by_name = {entry.name: entry for entry in ranking.entries}
        assert by_name["jax"].normalized.factor == pytest.approx(1 / 1.1)
        assert [by_name[name].normalized.factor for name in ("mnn", "torch")] == [1, 1]
        assert by_name["jax"].estimate.joules == pytest.approx(every[0].entries[0].estimate.joules)
        assert by_name["mnn"].ratio == pytest.approx(1.1)
        assert ranking.probability == pytest.approx(every[0].probability)


def test_a_counters_joules_are_normalized_by_joules(torch, jax):
    read = {"yardstick_joules": 2e-3, "meter": Meter("RAPL", True, "package")}
    here = replace(jax, **read, common_yardstick_seconds=1.1e-3, common_yardstick_joules=2.5e-3)
    assert entries_of(replace(torch, **read), here)["jax"].normalized.factor == pytest.approx(2 / 2.5)


def test_seconds_are_normalized_by_seconds(torch, jax):
    read = {"yardstick_joules": 2e-3, "meter": Meter("RAPL", True, "package")}
    here = replace(jax, **read, common_yardstick_seconds=1.1e-3, common_yardstick_joules=2.5e-3)
    both = entries_of(replace(torch, **read), here)
    assert both["jax"].estimate.seconds == pytest.approx(both["torch"].estimate.seconds / 1.1)
    assert both["jax"].estimate.joules == pytest.approx(both["torch"].estimate.joules * 2 / 2.5)


def test_where_only_its_time_is_known_a_slow_meters_joules_may_have_no_part_of_it(torch, jax):
    read = {"yardstick_joules": 2e-3, "meter": Meter("adb", True, "phone", window_seconds=60.0)}
    normalized = entries_of(replace(torch, **read), replace(jax, **read, common_yardstick_seconds=1.1e-3))[
        "jax"
    ].normalized
    assert normalized.factor == normalized.seconds_factor == pytest.approx(1 / 1.1)
    assert normalized.stddev == pytest.approx(hypot(JAX.yardstick_repeats, log(1.1)))


def test_other_devices_stay_as_they_are(torch, jax):
    server = replace(jax, device={"id": "b", "cpu": "server"}, common_yardstick_seconds=3e-3)
    ranking = ranked(torch, server)
    assert [entry.normalized.factor for entry in ranking.entries] == [1, 1]
    assert not any(entry.normalized.caveat for entry in ranking.entries)
    assert {entry.name for entry in ranking.entries} == {"board, torch", "server, jax"}
    assert not ranking.one_device


def test_more_than_the_runtime_is_named_where_more_differs(torch):
    assert set(entries_of(torch, replace(torch, setup=TrainingSetup(optimizer="adam")))) == {"sgd", "adam"}


def with_yardstick(observation, seconds, **more):
    """The same windows, paired with a yardstick that takes so long."""
    window = observation.measurement.yardstick[0]._replace(wall_seconds=seconds, busy_seconds=seconds)
    return replace(observation, measurement=replace(observation.measurement, yardstick=(window, window), **more))


def test_two_boards_of_one_make_are_not_made_equal(torch, jax):
    """They have the same id, and are left as they were measured though the yardstick took longer on one of them."""
    seen = tuple(with_yardstick(o, 1.2e-3) for o in torch.observations)
    slower = replace(torch, yardstick_seconds=1.2e-3, observations=seen)
    ranking = ranked(torch, slower)
    assert {entry.name for entry in ranking.entries} == {"board (1)", "board (2)"}
    assert ranking.entries[1].ratio == pytest.approx(1)
    assert all(
        entry.normalized == replace(Normalized(), yardstick_seconds=entry.normalized.yardstick_seconds)
        for entry in ranking.entries
    )
    assert not ranking.one_device
    mixed = ranked(torch, slower, jax)
    assert {entry.normalized.factor for entry in mixed.entries} == {1}
    assert all("several devices of one make" in entry.normalized.caveat for entry in mixed.entries)
    assert all(entry.normalized.stddev >= UNKNOWN_CONDITION for entry in mixed.entries)


def test_an_allocator_that_only_one_profile_has_is_used_for_none(torch, jax):
    """Such as the system's allocator: a device behind a port has no other than the quiet one."""
    behind_a_port = replace(torch, device={"id": "b", "cpu": "phone", "allocators": ["tuned"]})
    mixed = compare(NETWORK, torch, behind_a_port, allocator="system")
    assert {entry.estimate.allocator for entry in mixed.entries} == {"tuned"}
    assert {entry.estimate.allocator for entry in compare(NETWORK, torch, jax).entries} == {"system"}


def test_two_models_are_normalized_too(torch, jax):
    found = compare(NETWORK, chain(3, 40, 60), torch, replace(jax, common_yardstick_seconds=1.1e-3))
    assert [device.name for device in found.devices] == ["torch", "jax"]
    first, second = found.devices
    [a], [b] = first.pairwise, second.pairwise
    assert second.cheapest.joules == pytest.approx(first.cheapest.joules / 1.1)
    assert b.ratio == pytest.approx(a.ratio)


def test_all_of_it_is_json(torch, jax):
    record = ranked(torch, replace(jax, common_yardstick_seconds=1.1e-3)).to_json()
    assert json.loads(json.dumps(record)) == record
    cheapest = record["ranking"][0]
    assert (record["cheapest"], cheapest["runtime"]) == ("jax", "jax")
    assert cheapest["factor"] == pytest.approx(1 / 1.1)
    assert cheapest["common_yardstick_seconds"] == 1.1e-3
    assert (cheapest["expressed_as"], cheapest["caveat"]) == ("torch", None)
    assert record["ranking"][1]["expressed_as"] is None
    uncertain = ranked(torch, replace(jax, common_yardstick_seconds=None)).to_json()
    assert sum("not timed with jax" in (entry["caveat"] or "") for entry in uncertain["ranking"]) == 1


def test_two_profiles_of_two_models_are_named_in_json(torch):
    adam = replace(torch, setup=TrainingSetup(optimizer="adam"), yardstick_seconds=1.1e-3)
    first, second = compare(NETWORK, chain(3, 40, 60), torch, adam).to_json()["devices"]
    assert (first["name"], second["name"]) == ("sgd", "adam")
    assert second["setup"]["optimizer"] == "adam"
    assert (second["expressed_as"], second["caveat"], second["factor"]) == ("sgd", None, pytest.approx(1 / 1.1))


def test_one_profile_is_compared_with_nothing(torch):
    with pytest.raises(UsageError, match="name another model, two runtimes or two profiles"):
        ranked(Estimator(torch))
