"""The paper's strategy on a device with known costs, and its variants of every family."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from tests.profiling import test_loop
from tests.profiling.test_loop import METER, YARDSTICK, KnownCosts
from tests.synthetic import chain, true_seconds

from ampere.core import Network, TrainingSetup, work
from ampere.estimation.sequential import Sequential
from ampere.estimation.units import units_of, variant_units
from ampere.models.loading import find_space
from ampere.profiling.experiment import Experiment
from ampere.profiling.sources import SpaceSource
from ampere.profiling.strategies.networks import collect as collect_networks
from ampere.profiling.strategies.sequential import POINTS_AT_MOST, TARGET_DEVIATION, collect
from ampere.profiling.strategies.strategy import Collected, Goal, MeasurementContext, Task
from ampere.profiling.variants import joined, layers_of, unit_kinds, variant


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


def run(seconds: float, known=(), record=lambda seen: None, way=collect, noise=0.002) -> Collected:
    context = MeasurementContext(
        Chains(), {"tuned": KnownCosts(noise)}, TrainingSetup(), METER, YARDSTICK, record, clock=Ticking()
    )
    return way(context, Task(Goal(seconds), 0.0, known=known))


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
    networks = [source.original().network, *(source.sample(rng).network for _ in range(7))]
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
