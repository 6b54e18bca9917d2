"""Every method by its name, and what a profile can teach."""

from dataclasses import replace

import numpy as np
import pytest
from tests.synthetic import block, chain, random_chains, true_seconds

from ampere.baselines import METHODS, evidence_of
from ampere.baselines.answers import TITLES, answers, names, strategy_of, title
from ampere.core import Meter, Network, TrainingSetup
from ampere.core.errors import ProfileError, UsageError
from ampere.estimation.estimator import Estimator, watts_of
from ampere.evaluation.plan import Plan
from ampere.evaluation.summary import summary_of
from ampere.evaluation.validation import compare
from ampere.profiling.strategies import STRATEGIES, find_strategy
from ampere.storage import Observation, Profile

METER, YARDSTICK = Meter("cpu-time", False, "5 W per busy core"), 0.002


def observed(network: Network, slow: float = 1.0, allocator: str = "tuned") -> Observation:
    cpu = true_seconds(network)
    purpose = "network" if len(network.layers) > 3 else "variant" if len(network.layers) > 1 else "layer"
    beside = YARDSTICK if slow == 1.0 else None  # a plain loop takes longer by the wall's clock
    measured = block(cpu, beside, meter=METER, wall=cpu * slow, allocator=allocator)
    return Observation(network, measured, purpose)


def profile(*networks: Network, **more) -> Profile:
    slow = 1.5 if more.get("timing") == "wallclock" else 1.0
    return Profile(
        {"id": "known"}, TrainingSetup(), METER, YARDSTICK, tuple(observed(n, slow) for n in networks), **more
    )


def parts(network: Network) -> list[Network]:
    first, *_, last = network.layers
    return [Network(layers, network.batch) for layers in ((last,), (first, last))]


WHOLE = random_chains(1, 20)
USUAL = profile(*WHOLE, profiling_seconds=7.0)
PAPERS = [part for n in random_chains(2, 12) for part in parts(n)]


def test_all_are_named_and_say_what_they_are():
    assert {"additive", "sequential", "physics", "flops", "flops_intercept"} <= set(TITLES)
    assert all(title(name) for name in names("all"))
    assert names("all")[-1] == "sequential_wallclock"
    assert names(" flops, additive,flops ") == ("flops", "additive")


@pytest.mark.parametrize(
    ("methods", "says"), [("flop", "did you mean flops"), ("", "or all"), ("additive,guess", "guess")]
)
def test_a_name_that_is_none(methods, says):
    with pytest.raises(UsageError, match=says):
        names(methods)


def test_every_method_has_a_strategy_that_is_there():
    for name in names("all"):
        find_strategy(*strategy_of(name))
    assert strategy_of("flops") == ("additive", "yardstick")
    assert strategy_of("sequential_wallclock") == ("sequential", "wallclock")


def test_a_strategy_that_is_none():
    with pytest.raises(UsageError, match="did you mean sequential"):
        find_strategy("sequentiel")
    assert {"additive", "networks", "sequential"} <= set(STRATEGIES)


def test_a_method_learns_only_from_its_sort():
    mixed = profile(*WHOLE, *PAPERS)
    system = replace(mixed, observations=(*mixed.observations, observed(WHOLE[0], allocator="system")))
    everything, whole = evidence_of(system, "all"), evidence_of(system, "networks")
    assert everything is not None
    assert whole is not None
    assert set(everything.networks) == {o.network for o in mixed.observations}
    assert whole.networks == tuple(WHOLE)
    assert whole.costs == pytest.approx([true_seconds(n) for n in WHOLE])
    assert evidence_of(system, "stages") is None
    assert evidence_of(replace(system, method="sequential"), "networks") is None


def test_a_profile_answers_for_its_own_method_and_those_it_serves():
    said = answers(USUAL, WHOLE[:3], "tuned", YARDSTICK)
    assert next(iter(said)) == "additive"
    assert {"physics", "flops", "flops_intercept"} <= said.keys()
    assert said["additive"].stddevs is not None
    assert said["flops"].stddevs is None


def test_estimates_follow_the_condition():
    plain, slower = (answers(USUAL, WHOLE[:3], "tuned", y)["flops"].joules for y in (YARDSTICK, 1.1 * YARDSTICK))
    assert slower == pytest.approx(1.1 * plain, rel=0.01)


def test_joules_are_the_meters_whatever_the_clock_said():
    """Wall seconds were half as many again as CPU seconds: the estimate's seconds are longer, its joules are not."""
    paper = profile(*PAPERS, method="sequential", timing="wallclock")
    assert watts_of(paper) == pytest.approx(5 / 1.5)
    assert Estimator(paper, 10.0).watts == pytest.approx(10 / 1.5)
    known = PAPERS[1]
    estimate = Estimator(paper).estimate(known, "system")
    assert estimate.joules == pytest.approx(5 * true_seconds(known), rel=0.05)
    assert estimate.seconds == pytest.approx(1.5 * true_seconds(known), rel=0.05)
    assert estimate.allocator == "tuned"


def test_layers_that_a_sequential_profile_lacks_are_named():
    estimator = Estimator(profile(*PAPERS, method="sequential"))
    network = chain(8, 24, 24)
    assert len(estimator.estimate(network).layers) == len(network.layers) + 1
    other = Network((*network.layers[:1], replace(network.layers[1], name="odd", trainable=False)), 10)
    assert estimator.estimate(other).unprofiled == ("odd",)


def test_a_profile_without_layers_cannot_estimate():
    with pytest.raises(ProfileError, match="profile again with --method additive or sequential"):
        Estimator(profile(*WHOLE, method="networks"))


def test_further_profiles_add_their_methods_to_the_table():
    pairs = [((observed(n),), (observed(n),)) for n in random_chains(3, 4)]
    others = [
        profile(*PAPERS, method="sequential", profiling_seconds=5.0),
        profile(*PAPERS, method="sequential", timing="wallclock", profiling_seconds=6.0),
    ]
    both = compare("chains", pairs, USUAL, "tuned", others)
    assert next(iter(both.mape)) == both.method == "additive"
    assert both.mape.keys() >= {"additive", "sequential", "sequential_wallclock", "flops"}
    assert both.coverage.keys() == {"additive", "sequential", "sequential_wallclock"}
    assert (both.seconds["flops"], both.seconds["sequential"]) == (7.0, 5.0)
    few = compare("chains", pairs, USUAL, "tuned", others, ["sequential"])
    assert few.mape.keys() == {"additive", "sequential"}
    assert all(np.isfinite(list(few.mape.values())))


def test_a_profile_made_for_a_baseline_replaces_one_that_serves_it():
    pairs = [((observed(WHOLE[0]),), (observed(WHOLE[0]),))]
    more = profile(*random_chains(5, 5), method="networks", profiling_seconds=3.0)
    assert compare("chains", pairs, USUAL, "tuned", [more]).seconds["flops"] == 3.0


def test_files_are_found_by_themselves():
    assert all(method.name == name for name, method in METHODS.items())


@pytest.mark.usefixtures("no_sklearn")
def test_methods_that_cannot_run_are_named_in_a_validation():
    pairs = [((observed(WHOLE[0]),), (observed(WHOLE[0]),))]
    kernels = replace(USUAL, method="kernels")
    assert compare("chains", pairs, USUAL, "tuned").unavailable == {}  # nobody wanted it
    for found in (
        compare("c", pairs, USUAL, "tuned", methods=["additive", "flops"]),
        compare("c", pairs, USUAL, "tuned", [kernels]),
    ):
        assert "kernels" not in found.mape
        assert "ampere-energy[baselines]" in found.to_json()["unavailable"]["kernels"]


@pytest.mark.usefixtures("no_sklearn")
def test_an_evaluation_leaves_out_what_cannot_run():
    assert ("kernels", "yardstick") not in Plan().baselines("local", "cnn5")
    assert "kernels" in summary_of([])["unavailable"]
