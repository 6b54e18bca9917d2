"""The loop on a device that answers at once with costs that are known: what it chooses, keeps and survives."""

from random import Random

import numpy as np
import pytest
from tests.synthetic import block, chain, random_chains, true_seconds

from ampere.core import Measurement, Meter, Network, TrainingSetup, work
from ampere.devices import VariantDied
from ampere.profiling.experiment import Experiment
from ampere.profiling.loop import Profiling
from ampere.profiling.strategies.strategy import Collected, Goal, MeasurementContext
from ampere.storage import Observation

METER = Meter("cpu-time", False, "5 W per busy core")
YARDSTICK = 0.002
SAMPLING = 0.003  # seconds that a network takes to be thought of


class Chains:
    name = "chains"

    def __init__(self, trainer: "KnownCosts") -> None:
        self._trainer = trainer

    def original(self) -> Experiment:
        return self._of(chain(3, 32, 48, 64))

    def sample(self, rng: Random) -> Experiment:
        self._trainer.now += SAMPLING
        return self._of(chain(3, *(rng.randint(1, 64) for _ in range(3))))

    def opaque(self) -> list[Experiment]:
        return []

    def _of(self, network: Network) -> Experiment:
        return Experiment(network, {"layers": network.to_json()}, "network")


class KnownCosts:
    """Trains nothing: answers with the true cost and a little noise, and moves a clock of its own by what it takes."""

    def __init__(self, noise: float = 0.01, largest: float = float("inf")) -> None:
        self._rng, self._noise, self._largest = np.random.default_rng(0), noise, largest
        self.requested: list[float] = []
        self.now = 0.0

    def block(self, workload, setup, *, iterations, warmup, pairing, isolation) -> Measurement:
        network = Network.from_json(workload["layers"])
        size = sum(work(layer).values + work(layer).parameters for layer in network.layers)
        self.requested.append(size)
        if size > self._largest:
            raise VariantDied("out of memory", out_of_memory=True)
        seconds = true_seconds(network) * float(np.exp(self._noise * self._rng.standard_normal()))
        self.now += (iterations + warmup) * (seconds + YARDSTICK)
        return block(seconds, YARDSTICK, meter=METER, allocator="system" if pairing == "window" else "tuned")


def run(trainer: KnownCosts, goal: Goal, record=lambda seen: None, known=()) -> Collected:
    devices = {"tuned": trainer, "system": trainer}
    context = MeasurementContext(
        Chains(trainer), devices, TrainingSetup(), METER, YARDSTICK, record, clock=lambda: trainer.now
    )
    return Profiling(context, known).run(goal, 0.0, lambda progress: None)


def error_of(outcome: Collected) -> float:
    return float(np.mean([abs(outcome.model.answer(n).seconds / true_seconds(n) - 1) for n in random_chains(8, 40)]))


def test_a_few_seconds_teach_it_the_device():
    assert error_of(run(KnownCosts(), Goal(seconds=2.0))) < 0.06


def test_it_stops_at_the_target_error():
    outcome = run(KnownCosts(), Goal(seconds=60.0, target=0.2))
    assert outcome.expected_error < 0.2
    assert len(outcome.observations) < 200


def test_every_block_is_recorded_when_it_is_seen():
    recorded: list[Observation] = []
    trainer = KnownCosts()
    outcome = run(trainer, Goal(seconds=1.0), recorded.append)
    assert len(recorded) == len(trainer.requested)
    assert list(outcome.observations) == recorded


def test_it_ends_where_no_more_can_be_recorded():
    trainer, recorded = KnownCosts(), list[Observation]()
    context = MeasurementContext(
        Chains(trainer), {"tuned": trainer}, TrainingSetup(), METER, YARDSTICK, recorded.append,
        clock=lambda: trainer.now, full=lambda: len(recorded) >= 10,
    )  # fmt: skip
    outcome = Profiling(context, ()).run(Goal(seconds=60.0), 0.0, lambda progress: None)
    assert len(outcome.observations) == len(recorded) == 10


def test_what_was_known_before_is_used_again():
    first = run(KnownCosts(), Goal(seconds=1.0))
    second = run(KnownCosts(), Goal(seconds=0.2), known=first.observations)
    assert {o.network for o in first.observations} <= {o.network for o in second.observations}


def test_what_runs_out_of_memory_is_named_and_nothing_as_large_is_proposed_again():
    trainer = KnownCosts(largest=3e6)
    outcome = run(trainer, Goal(seconds=2.0))
    too_large = [size for size in trainer.requested if size > 3e6]
    assert outcome.observations
    assert len(outcome.refused) == len(too_large)
    assert sorted(too_large, reverse=True) == too_large


def test_both_allocators_are_measured():
    outcome = run(KnownCosts(), Goal(seconds=2.0))
    assert {o.measurement.allocator for o in outcome.observations} == {"tuned", "system"}


@pytest.mark.parametrize("seconds", [0.01, 0.3])
def test_hardly_any_time_is_no_error(seconds):
    assert run(KnownCosts(), Goal(seconds=seconds)).model.answer(chain(3, 8, 8, 8)).seconds > 0


def test_a_run_that_is_out_of_time_at_once_still_reports_its_error():
    before = run(KnownCosts(), Goal(seconds=1.0)).observations
    trainer = KnownCosts()
    trainer.now = 5.0
    outcome = run(trainer, Goal(seconds=1.0), known=before)
    assert not trainer.requested
    assert 0 < outcome.expected_error < 1
