"""The paper's strategy on a device with known costs, and its variants of every family."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from tests.profiling import test_loop
from tests.profiling.test_loop import METER, YARDSTICK, KnownCosts
from tests.synthetic import chain, conv, linear, true_seconds

import ampere
from ampere.core import Network, TrailingOp, TrainingSetup, work
from ampere.estimation.sequential import Sequential
from ampere.estimation.units import Unit, units_of, variant_units
from ampere.models.loading import find_space
from ampere.profiling.experiment import Experiment
from ampere.profiling.input_sizes import with_places
from ampere.profiling.observing import request
from ampere.profiling.running import make_profile
from ampere.profiling.sources import SpaceSource
from ampere.profiling.strategies.networks import collect as collect_networks
from ampere.profiling.strategies.sequential import POINTS_AT_MOST, TARGET_DEVIATION, Settings, collect
from ampere.profiling.strategies.strategy import Collected, Goal, MeasurementContext, Task
from ampere.profiling.variants import joined, layers_of, unit_kinds, variant
from ampere.storage.profile import Profile


def network(*widths: int) -> Network:
    """A chain whose first layer needs no gradient of its input, as real ones do not."""
    first, *others = chain(*widths).layers
    return Network((replace(first, input_grad=False), *others), 10)


class Chains:
    name = "chains"

    def original(self) -> Experiment:
        return self._of(network(3, 64, 64, 64))

    def sample(self, rng: Random) -> Experiment:
        return self._of(network(3, *(rng.randint(1, 64) for _ in range(3))))

    def opaque(self) -> list[Experiment]:
        return []

    def _of(self, net: Network) -> Experiment:
        return Experiment(net, {"layers": net.to_json()}, "network")


class Ticking:
    """A clock on which every look takes as long as a block."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.01
        return self.now


def run(seconds: float, known=(), record=lambda seen: None, way=collect, noise=0.002, **settings) -> Collected:
    context = MeasurementContext(
        Chains(), {"tuned": KnownCosts(noise)}, TrainingSetup(), METER, YARDSTICK, record, clock=Ticking()
    )
    return way(context, Task(Goal(seconds), 0.0, known=known), **settings)


def fitted(collected: Collected) -> Sequential:
    costs = np.array([o.measurement.busy_seconds for o in collected.observations])
    return Sequential([o.network for o in collected.observations], costs)


def smooth_seconds(net: Network) -> float:
    """As the stepped device of `tests.synthetic`, without its vectors."""
    total = 2e-4
    for layer in net.layers:
        needed, wide = work(layer), layer.channels_out
        efficiency = 0.4 + 0.6 * wide / (wide + 16)
        total += needed.flops / 4e10 / efficiency + needed.values * 3e-10 + needed.parameters * 1e-9 + 2e-5
    return total


def errors_of(model: Sequential, cost: Callable[[Network], float]) -> tuple[list[float], list[float]]:
    """Of each layer and of each total, relative, on random networks."""
    rng, layers, totals = Random(5), [], []
    for _ in range(40):
        net = Chains().sample(rng).network
        answer = model.answer(net)
        for layer, seconds in zip(answer.layers, answer.layer_seconds, strict=True):
            own = cost(Network((layer,), 10)) - (0.0 if layer.kind == "linear" else 2e-4)  # the step is in the output
            layers.append(abs(seconds / own - 1))
        totals.append(abs(answer.seconds / cost(net) - 1))
    return layers, totals


def test_every_layers_true_cost_is_recovered_where_costs_are_smooth(monkeypatch):
    monkeypatch.setattr(test_loop, "true_seconds", smooth_seconds)
    layers, totals = errors_of(fitted(run(1e4)), smooth_seconds)
    assert np.mean(layers) < 0.06
    assert np.quantile(layers, 0.9) < 0.12
    assert np.mean(totals) < 0.03


def test_steps_at_the_vector_width_are_what_it_cannot_follow():
    """The weakness of a smooth surface over channels, held here so that nobody claims otherwise."""
    layers, totals = errors_of(fitted(run(1e4)), true_seconds)
    assert 0.06 < np.mean(layers) < 0.25
    assert np.mean(totals) < 0.2


def test_it_begins_at_the_bounds_with_the_output_then_the_input_then_hidden_layers():
    order = []
    run(30.0, record=order.append)
    lengths = [len(o.network.layers) for o in order]
    assert lengths[:8] == [1, 1, 2, 2, 3, 3, 3, 3]
    corners = {(o.network.layers[1].channels_in, o.network.layers[1].channels_out) for o in order[4:8]}
    ins, outs = ({corner[side] for corner in corners} for side in (0, 1))
    assert len(corners) == 4
    assert max(ins) == max(outs) == 64


def test_it_ends_by_itself_when_every_kind_is_sure_or_at_its_limit():
    collected = run(1e6)
    model = fitted(collected)
    counts: dict[object, int] = {}
    for o in collected.observations:
        units = variant_units(o.network)
        exposed = units[1 if len(units) == 3 else 0].kind
        counts[exposed] = counts.get(exposed, 0) + 1
    assert max(counts.values()) <= POINTS_AT_MOST[False]
    for kind in unit_kinds([Chains().original().network, Chains().sample(Random(1)).network]).hidden:
        process = model.processes[kind.kind]
        largest = np.max(process.deviations(np.array(kind.candidates(), dtype=float)))
        assert largest < 2 * TARGET_DEVIATION * process.typical or counts[kind.kind] == POINTS_AT_MOST[False]


def exposed(collected: Collected) -> list[tuple]:
    """The kind that each variant exposes, in the order of measuring."""
    units = [variant_units(o.network) for o in collected.observations]
    return [each[1 if len(each) == 3 else 0].kind for each in units]


def test_to_its_own_end_it_finishes_one_kind_after_the_other_as_the_paper_does():
    collected = run(math.inf)
    kinds = exposed(collected)
    assert [*itertools.chain.from_iterable([kind] * kinds.count(kind) for kind in dict.fromkeys(kinds))] == kinds
    assert collected.ended["time"] == 0
    assert sum(collected.ended.values()) == len(set(kinds))


def test_it_says_how_many_kinds_time_cut_short():
    assert run(0.06).ended["time"] == 3
    assert run(1e6).ended["time"] == 0


def test_the_limit_of_points_ends_it():
    collected = run(math.inf, settings=Settings(points_on_line=3, points_on_surface=5, target_deviation=0.0))
    kinds = exposed(collected)
    assert sorted(map(kinds.count, set(kinds))) == [3, 3, 5]
    assert collected.ended == {"time": 0, "limit": 3, "rule": 0}


def test_random_points_are_others_than_those_of_the_largest_uncertainty():
    few = Settings(points_on_line=4, points_on_surface=8, target_deviation=0.0)
    guided, anywhere, again = (run(math.inf, settings=replace(few, guided=g)) for g in (True, False, False))
    networks = [[o.network for o in collected.observations] for collected in (guided, anywhere, again)]
    assert len(networks[0]) == len(networks[1])
    assert networks[0] != networks[1] == networks[2]


def test_the_kernel_is_kept_for_estimates():
    collected = run(0.5, settings=Settings(kernel="rbf"))
    assert collected.fit == {"kernel": "rbf"}
    assert run(0.5).fit == {}


def test_a_measurement_has_as_many_iterations_as_asked_for():
    experiment = Chains().original()
    published = request(experiment, TrainingSetup(), 1e-3, timing="wallclock", iterations=500, settled=True)
    assert (published["iterations"], published["pairing"]) == (500, "plain")
    assert published["seconds_limit"] >= 500
    short = request(experiment, TrainingSetup(), 1e-3, settled=True)
    assert (short["iterations"], short["pairing"], short["isolation"]) == (16, "window", "inline")


def test_what_ended_a_run_and_what_it_took_are_in_the_profile(tmp_path):
    place, how = tmp_path / "profile.json", {"method": "sequential", "timing": "wallclock", "iterations": 50}
    with ampere.device("simulated:phone-ios") as device:
        made = make_profile(Chains, device.setup(), Goal(math.inf), device, path=place, **how)
    said, stored = made.to_json(), Profile.load(place)
    assert (said["ended_by"], said["points"]) == (stored.ended_by, len(stored.observations))
    assert stored.ended_by in ("own rule", "limit of points")
    assert sum(stored.ended.values()) == 3
    assert said["profiling_joules"] == stored.profiling_joules > 0
    assert all(o.measurement.iterations >= 50 for o in stored.observations)


def test_a_block_with_a_free_width_inside_is_cut_into_its_layers():
    def resnet(rng: Random, tied: bool) -> Network:
        width = rng.randint(4, 64)
        return network_with_block(width, width if tied else rng.randint(4, 64))

    rng = Random(1)
    whole, cut = ([resnet(rng, tied) for _ in range(6)] for tied in (True, False))
    assert [len(kind.example.layers) for kind in unit_kinds(whole).hidden] == [2]
    assert {len(kind.example.layers) for kind in unit_kinds(cut).hidden} == {1}


def network_with_block(width: int, inner: int) -> Network:
    first, *_, last = network(3, width, width).layers
    into, out = conv(width, inner), conv(inner, width)
    values = 10 * 196 * width
    shortcut = replace(out, trailing=(TrailingOp("elementwise", 2 * values, values),))
    return Network((first, into, shortcut, last), 10)


def test_an_input_is_resized_to_what_a_hidden_unit_reads():
    values, config = 10 * 6 * 24 * 24, {**conv(1, 6, 28).config, "kernel": (5, 5), "padding": (0, 0)}
    trailing = (TrailingOp("elementwise", values, values), TrailingOp("pool", values, values / 2))
    first = Unit(((replace(conv(1, 6, 28), config=config, trailing=trailing, input_grad=False),),))
    (resized,) = with_places(first, (3, 3)).layers
    assert resized.config["size_in"] == (10, 10)  # 6 places after the convolution, 3 after the pool
    assert [op.values_in for op in resized.trailing] == [10 * 6 * 36] * 2
    assert with_places(Unit(((linear(4, 4),),)), (1, 1)) is None


def test_a_short_run_is_no_error_and_a_second_one_goes_on_from_there():
    first = run(0.06)
    second = run(0.3, known=first.observations)
    assert len(first.observations) < 8
    assert {o.network for o in first.observations} < {o.network for o in second.observations}
    assert len({o.network for o in second.observations}) == len(second.observations)


def test_whole_networks_are_all_that_the_networks_strategy_trains():
    collected = run(0.5, way=collect_networks)
    assert {o.purpose for o in collected.observations} == {"network"}
    assert collected.observations[0].network == Chains().original().network
    assert len(collected.observations) > 10


HIDDEN = {"lenet5": 2, "cnn5": 2, "har": 3, "lstm": 1, "transformer": 2, "resnet": 9}


@pytest.mark.parametrize("family", HIDDEN)
def test_every_hidden_kind_of_every_family_is_seen_between_an_input_and_an_output(family):
    source, rng = SpaceSource(find_space(family)), Random(0)
    sampled = range(7 if family == "resnet" else 3)
    networks = [source.original().network, *(source.sample(rng).network for _ in sampled)]
    kinds = unit_kinds(networks)
    assert len(kinds.hidden) == HIDDEN[family]
    known = {kind.kind for kind in kinds.in_order}
    for kind in kinds.in_order:
        for point in (*kind.bounds(), *rng.sample(kind.candidates(), 1)):
            units = variant(kinds, kind, point)
            assert len(units) == (1 if kind is kinds.output else 2 if kind in kinds.inputs else 3)
            assert joined(layers_of(units))
            assert units[-1].channels[0] <= kinds.output.most[0]
            assert {unit.kind for unit in units} <= known  # so that all but one can be subtracted
            parsed = variant_units(Network(layers_of(units), kinds.batch))
            assert [unit.kind for unit in parsed] == [unit.kind for unit in units]
    assert {unit.kind for n in networks for unit in units_of(n)} <= known


def test_bounds_are_from_one_to_the_originals_channels():
    source, rng = SpaceSource(find_space("cnn5")), Random(0)
    kinds = unit_kinds([source.original().network, *(source.sample(rng).network for _ in range(5))])
    corners = {kind.most: kind.bounds() for kind in kinds.hidden}
    assert corners == {
        (32, 64): [(1, 1), (1, 64), (32, 1), (32, 64)],
        (128, 256): [(1, 1), (1, 256), (128, 1), (128, 256)],
    }
    assert kinds.inputs[0].bounds() == [(1, 1), (1, 32)]


def test_the_clock_of_the_context_ends_it():
    assert 0 < len(run(0.2).observations) <= 20  # every look at that clock takes 0.01 s
