"""A clock that falls by 30 % in the middle of a block or of a run: flagged, and the estimate hardly moves.

fixtures/recorded-blocks.json has 200 real blocks with each allocator (steps and CPU microseconds of every window),
recorded on a quiet shared machine. A lower clock slows arithmetic but not memory: the yardstick is slowed by the whole
factor, a network by a part of it. `python -m tests.faults.test_throttled 500` records as many anew and reports.
"""

import json
import sys
import time
from math import inf
from pathlib import Path
from random import Random
from statistics import mean
from types import SimpleNamespace

import pytest
from tests.synthetic import chain, random_chains, true_seconds

from ampere import runtimes
from ampere.core import Measurement, Meter, Network, TrainingSetup, work
from ampere.core.measurement import Window, seconds_per_iteration
from ampere.core.yardstick import YARDSTICK
from ampere.devices import LocalWorker
from ampere.profiling.experiment import Experiment
from ampere.profiling.loop import Profiling
from ampere.profiling.observing import PLAIN, QUIET, iterations_of
from ampere.profiling.strategies.strategy import Goal, MeasurementContext
from ampere.runtimes import Description, torch_runtime
from ampere.runtimes.table import OURS
from ampere.worker import block
from ampere.worker.block import slowed_down

RECORDED = Path(__file__).parent.parent / "fixtures" / "recorded-blocks.json"
FALLEN = 0.7  # of the clock
LEAST_SHARE = 0.7  # of the slowdown, that a network has whose memory is as slow as the network's arithmetic
HOW = {"tuned": QUIET, "system": PLAIN}
METER = Meter("cpu-time", False, "5 W per busy core")
REAL_BLOCKS, ATTEMPTS, RUN_SECONDS = 8, 3, 2.0
SECONDS_PER_VALUE = 2e-9  # of memory


def windows(rows):
    return [Window(steps, us * 1e-6, us * 1e-6, None) for steps, us in rows]


def recorded(allocator):
    blocks = json.loads(RECORDED.read_text())[allocator]
    return [(windows(block["target"]), windows(block["yardstick"])) for block in blocks]


def fallen(block, at, share):
    """The block as it would have been with a clock that falls after this part of its time."""
    in_turn = [w for pair in zip(block[1], [*block[0], None], strict=True) for w in pair if w]
    until, now, slowed = at * sum(w.busy_seconds for w in in_turn), 0.0, []
    for number, window in enumerate(in_turn):
        now += window.busy_seconds
        after = min(1.0, max(0.0, (now - until) / window.busy_seconds))
        factor = 1 + after * (FALLEN ** -(share if number % 2 else 1.0) - 1)
        slowed.append(window._replace(busy_seconds=window.busy_seconds * factor))
    return slowed[1::2], slowed[::2]


def rates(blocks, seed=0):
    """The shares of blocks that are flagged: of those in which the clock falls, and of undisturbed ones."""
    rng = Random(seed)
    fell = [slowed_down(*fallen(b, rng.uniform(0.3, 0.6), rng.uniform(LEAST_SHARE, 1.0))) for b in blocks]
    clean = [slowed_down(*block) for block in blocks]
    return sum(fell) / len(fell), sum(clean) / len(clean)


@pytest.mark.fault(8)
@pytest.mark.fault(29)
@pytest.mark.parametrize(("allocator", "least", "most"), [("tuned", 0.95, 0.02), ("system", 0.90, 0.03)])
def test_nearly_all_are_flagged_and_hardly_any_for_nothing(allocator, least, most, record_property):
    flagged, falsely = rates(recorded(allocator))
    record_property("figure", f"{allocator}: {flagged:.1%} of 200 flagged, {falsely:.1%} of 200 clean ones falsely")
    assert flagged >= least
    assert falsely <= most


class Fallen:
    """Steps of real training that cost so much more CPU time after some steps, as at a lower clock."""

    def __init__(self):
        self._torch, self._left = torch_runtime.create(), inf
        self.prepare, self.ready_to_fork = self._torch.prepare, self._torch.ready_to_fork

    def build(self, workload, setup):
        self._left = workload["falls_after"]
        return self._slowed(self._torch.build(workload, setup), workload["share"], counted=1)

    def yardstick(self):
        return self._slowed(self._torch.yardstick(), 1.0, counted=0)

    def _slowed(self, training, share, counted):
        def step():
            self._left -= counted
            began = time.process_time()
            training.step()
            spent = time.process_time() - began
            while self._left < 0 and time.process_time() - began < spent * FALLEN**-share:
                pass

        return training._replace(step=step)


@pytest.mark.alone
@pytest.mark.fault(8)
@pytest.mark.fault(29)
@pytest.mark.parametrize("allocator", HOW)
def test_real_blocks_are_flagged(allocator, monkeypatch, record_property):
    monkeypatch.setitem(sys.modules, "fallen_runtime", SimpleNamespace(create=Fallen))
    monkeypatch.setitem(OURS, "fallen", Description("fallen_runtime", (), ""))
    monkeypatch.setattr(runtimes, "_loaded", {})
    monkeypatch.setenv("AMPERE_METER", "cpu-time")
    rng, network = Random(0), chain(3, 24, 32).to_json()
    iterations, warmup = iterations_of(allocator, 0.004)

    def throttled(falls_at):
        workload = {
            "layers": network,
            "falls_after": warmup + falls_at * iterations,
            "share": rng.uniform(LEAST_SHARE, 1),
        }
        request = {"workload": workload, "setup": {"runtime": "fallen"}, "iterations": iterations, "warmup": warmup}
        return "throttled" in block.block({**request, **HOW[allocator]})["flags"]

    attempts = 0
    flagged, falsely = 0, REAL_BLOCKS
    # A neighbour that leaves hides a fall, and one that comes looks like one.
    while attempts < ATTEMPTS and (flagged < 0.75 * REAL_BLOCKS or falsely > 0.25 * REAL_BLOCKS):
        attempts += 1
        flagged = sum(throttled(rng.uniform(0.3, 0.6)) for _ in range(REAL_BLOCKS))
        falsely = sum(throttled(inf) for _ in range(REAL_BLOCKS))
    seen = f"{flagged} of {REAL_BLOCKS} real blocks flagged, {falsely} clean ones"
    record_property("figure", f"{allocator}: {seen}" + (f" (attempt {attempts})" if attempts > 1 else ""))
    assert flagged >= 0.75 * REAL_BLOCKS  # few blocks, on whatever machine this is
    assert falsely <= 0.25 * REAL_BLOCKS


class Throttling:
    """A device whose arithmetic depends on its clock, its memory not, and whose windows vary as recorded ones do."""

    name = "chains"

    def __init__(self, falls_after=inf):
        self.now, self._falls_after, self._rng = 0.0, falls_after, Random(0)
        self._noise = {allocator: recorded(allocator) for allocator in HOW}
        self.flagged = 0

    def block(self, workload, setup, *, pairing, **how):
        allocator = "system" if pairing == "window" else "tuned"
        target, yardstick = self._rng.choice(self._noise[allocator])
        steps = iter(pair for both in zip(yardstick, [*target, None], strict=True) for pair in both if pair)
        seconds, network = [], Network.from_json(workload["layers"])
        usual = [seconds_per_iteration(windows) for windows in (yardstick, target)]
        for number, window in enumerate(steps):
            clock = FALLEN if self.now > self._falls_after else 1.0
            step = (
                self.seconds(network if number % 2 else YARDSTICK, clock) * window.per_iteration() / usual[number % 2]
            )
            seconds.append(Window(1, step, step, 5 * step))
            self.now += step
        windows = tuple(seconds[1::2]), tuple(seconds[::2])
        flags = ("throttled",) if slowed_down(*map(list, windows)) else ()
        self.flagged += bool(flags)
        return Measurement(*windows, METER, allocator, flags=flags)

    def seconds(self, network, clock=1.0):
        moved = sum(work(layer).values + work(layer).parameters for layer in network.layers)
        return true_seconds(network) / clock + moved * SECONDS_PER_VALUE

    def original(self):
        return self._of(chain(3, 32, 48, 64))

    def sample(self, rng):
        return self._of(chain(3, *(rng.randint(1, 64) for _ in range(3))))

    def opaque(self):
        return []

    def _of(self, network):
        return Experiment(network, {"layers": network.to_json()}, "network")

    def model(self, seconds):
        trainers, y0 = dict.fromkeys(HOW, self), self.seconds(YARDSTICK)
        context = MeasurementContext(
            self, trainers, TrainingSetup(), METER, y0, lambda seen: None, clock=lambda: self.now
        )
        return Profiling(context).run(Goal(seconds), 0.0, lambda progress: None).model


@pytest.mark.fault(8)
def test_an_estimate_moves_by_at_most_3_percent(record_property):
    networks = random_chains(8, 40)
    undisturbed, disturbed = Throttling(), Throttling(RUN_SECONDS / 2)
    slower = [undisturbed.seconds(n, FALLEN) / undisturbed.seconds(n) for n in (YARDSTICK, *networks)]
    assert max(slower) / min(slower) > 1.05  # they are not slowed alike
    steady, falling = undisturbed.model(RUN_SECONDS), disturbed.model(RUN_SECONDS)
    moved = [abs(falling.answer(n).seconds / steady.answer(n).seconds - 1) for n in networks]
    record_property("figure", f"the clock falls 30 % in the middle of a run: estimates move by {mean(moved):.1%}")
    assert mean(moved) <= 0.03


def test_a_few_steps_are_not_enough_to_flag():
    one = [Window(1, 0.001, 0.001, None)]
    assert not slowed_down(one, [*one, one[0]._replace(busy_seconds=0.002)])


def main(count):
    for allocator in HOW:
        flagged, falsely = rates(record(allocator, count))
        print(f"{allocator}: {flagged:.1%} of {count} flagged, {falsely:.1%} of the clean ones falsely")


def record(allocator, count):
    """Real blocks as profiling requests them."""
    rng, found = Random(1), []
    with LocalWorker(allocator) as worker:
        worker.yardstick(0.3)
        while len(found) < count:
            workload = {"layers": chain(3, *(rng.randint(4, 96) for _ in range(rng.randint(1, 5)))).to_json()}
            step_seconds = worker.block(workload, iterations=4, warmup=1).busy_seconds
            iterations, warmup = iterations_of(allocator, step_seconds)
            block = worker.block(workload, iterations=iterations, warmup=warmup, **HOW[allocator])
            found.append((list(block.target), list(block.yardstick)))
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]))
