"""A simulated device stands in for a worker: it trains nothing, and answers from physics and a clock of its own.

y y y  T T T T  y y y  T T T T  y y y      windows of the yardstick and of the target in turn, each as long as
                                           the counter needs; joules are read by window, as from a real counter
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from random import Random
from statistics import mean, median
from types import TracebackType
from typing import Any

from ampere.core import Meter, Network, TrainingSetup, work
from ampere.core.protocol import PROTOCOL
from ampere.core.windows import reading_by, relative_spread
from ampere.core.yardstick import YARDSTICK
from ampere.devices.device import Block, VariantDied, Yardstick
from ampere.devices.workloads import network_of

from .body import Body, Window, read
from .parts import PARTS, Part
from .physics import Cost, Truth, footprint, stage_of, truth_of

PAIRS = 3  # windows of the target in a block
BUILD_SECONDS = 0.05  # to make a network ready, before its first step
LEAST_YARDSTICKS = 5


class SimulatedWorker:
    def __init__(self, name: str, seed: int = 0) -> None:
        self.part: Part = PARTS[name]
        self._rng = Random(f"{name} {seed}")
        self._body = Body(self.part, self._rng)

    def clock(self) -> float:
        """Simulated seconds since it was switched on."""
        return self._body.now

    def hello(self) -> dict[str, Any]:
        part = self.part
        return {
            "protocol": PROTOCOL,
            "system": "simulated",
            "machine": part.name,
            "cpu": f"simulated {part.title}",
            "cores": part.cores,
            "vector_width": min(part.tile_out, 32),
            "runtimes": {"torch": "simulated"},
            "meter": meter_of(part).to_json(),
        }

    def identity(self) -> dict[str, Any]:
        """`id` is not a machine's: no real device is ever taken for a simulated one."""
        said = self.hello()
        shown = {key: said[key] for key in ("cpu", "cores", "system", "machine")}
        return {"id": f"simulated-{self.part.name}", **shown, "allocators": ["tuned"]}

    def truth(self, network: Network, setup: TrainingSetup | None = None) -> Truth:
        """What a step of the network really costs, cold and at full clock: nobody else can know."""
        return truth_of(self.part, network, setup or TrainingSetup())

    def block(
        self,
        subject: Mapping[str, Any],
        setup: TrainingSetup | None = None,
        *,
        iterations: int = 10,
        warmup: int = 4,
        pairing: str = "step",
        isolation: str = "inline",
        stage: str = "step",
        seconds_limit: float = 60.0,
        count: bool = True,
        power: bool = False,
    ) -> Block:
        """Windows are as long as the counter needs, whatever the pairing; "plain" leaves out the yardstick."""
        began, setup = self.clock(), setup or TrainingSetup()
        network = network_of(subject)
        self._refuse_what_does_not_fit(network, setup)
        target, yardstick = self._cost(network, setup, stage), self._cost(YARDSTICK, TrainingSetup())
        self._body.now += BUILD_SECONDS
        self._body.train(target, warmup)
        if power:
            return self._steady(network, target, yardstick, began)
        window = self.part.counter.window_seconds if count else 0.0
        steps = _steps(target, window / PAIRS, math.ceil(iterations / PAIRS))
        if pairing == "plain":
            return self._block(network, [self._body.train(target, steps) for _ in range(PAIRS)], None, began)
        beside = _steps(yardstick, window / (PAIRS + 1), LEAST_YARDSTICKS)
        yardsticks, targets = [self._body.train(yardstick, beside)], []
        for _ in range(PAIRS):
            targets.append(self._body.train(target, steps))
            yardsticks.append(self._body.train(yardstick, beside))
        told = self._block(network, targets, yardsticks, began)
        return told if count else replace(told, joules=None, yardstick_joules=None)

    def yardstick(
        self,
        seconds: float = 1.0,
        threads: int = 1,
        runtime: str = "torch",
        power: bool = False,
        count: bool = True,
    ) -> Yardstick:
        """Its nominal cost; a slow counter is watched for as long as it needs, whatever the seconds."""
        cost = self._cost(YARDSTICK, TrainingSetup())
        whole = max(seconds, 2 * self.part.counter.window_seconds if count else 0.0)
        if power:
            reading = reading_by(self.part.counter.update_seconds)
            whole = max(seconds, reading.seconds)
            self._body.train(cost, _steps(cost, reading.settling_seconds, 1))
        windows = [self._body.train(cost, max(1, math.ceil(whole / 20 / cost(1.0).seconds))) for _ in range(20)]
        each = sorted(w.seconds / w.steps for w in windows)
        return Yardstick(
            cpu_seconds=median(each),
            seconds=median(each),
            cpu_seconds_p10=each[2],
            seconds_p10=each[2],
            steps=sum(w.steps for w in windows),
            joules=self._read([_around(windows)], power) * median(each) / mean(each) if count else None,
        )

    def close(self) -> None:
        """Nothing runs."""

    def __enter__(self) -> SimulatedWorker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _cost(self, network: Network, setup: TrainingSetup, stage: str = "step") -> Callable[[float], Cost]:
        """By the clock of the moment."""
        if stage == "step":
            return lru_cache(lambda clock: truth_of(self.part, network, setup, clock).total)
        return lru_cache(lambda clock: stage_of(self.part, network, setup, stage, clock))

    def _read(self, windows: list[Window], settled: bool = False) -> float:
        """Joules a step."""
        return sum(read(self.part, w, self._rng, settled) for w in windows) / sum(w.steps for w in windows)

    def _steady(
        self, network: Network, target: Callable[[float], Cost], yardstick: Callable[[float], Cost], began: float
    ) -> Block:
        """As `worker/steady.py`: one window of a load that has lasted for a while, yardsticks only timed."""
        reading = reading_by(self.part.counter.update_seconds)
        before = self._body.train(yardstick, LEAST_YARDSTICKS)
        self._body.train(target, _steps(target, reading.settling_seconds, 1))
        read = self._body.train(target, _steps(target, reading.seconds, 1))
        told = self._block(network, [read], [before, self._body.train(yardstick, LEAST_YARDSTICKS)], began, True)
        return replace(told, yardstick_joules=None)

    def _block(
        self,
        network: Network,
        targets: list[Window],
        yardsticks: list[Window] | None,
        began: float,
        settled: bool = False,
    ) -> Block:
        each = [w.seconds / w.steps for w in targets]
        beside = [w.seconds / w.steps for w in yardsticks or ()]
        ratios = [2 * t / (a + b) for t, a, b in zip(each, beside, beside[1:], strict=False)]
        throttled = any(w.throttled for w in targets)
        return Block(
            ratio=median(ratios) if ratios else None,
            spread=relative_spread(ratios or each),
            seconds=median(each),
            cpu_seconds=median(each),
            yardstick_seconds=median(beside) if beside else None,
            joules=self._read(targets, settled),
            iterations=sum(w.steps for w in targets),
            page_faults=0.0,
            parameters=int(sum(work(layer).parameters for layer in network.layers)),
            loss=(None, None),
            elapsed=self.clock() - began,
            conditions={"clock": self._body.clock, "kelvin_above_surroundings": self._body.kelvin},
            flags=("throttled",) if throttled else (),
            yardstick_joules=self._read(yardsticks) if yardsticks else None,
        )

    def _refuse_what_does_not_fit(self, network: Network, setup: TrainingSetup) -> None:
        needed = footprint(network, setup)
        if needed > self.part.memory_bytes:
            asked, there = needed / 1e9, self.part.memory_bytes / 1e9
            raise VariantDied(
                f"out of memory ({asked:.1f} GB of {there:.1f} GB on the simulated {self.part.title}); "
                "smaller channels or batches fit",
                out_of_memory=True,
            )


def _around(windows: list[Window]) -> Window:
    """One reading of many windows that follow each other at once."""
    steps, seconds, joules = (sum(values) for values in list(zip(*windows, strict=True))[:3])
    return Window(int(steps), seconds, joules, any(w.throttled for w in windows))


def _steps(cost: Callable[[float], Cost], seconds: float, least: int) -> int:
    return max(least, math.ceil(seconds / cost(1.0).seconds))


def meter_of(part: Part) -> Meter:
    counter = part.counter
    return Meter(
        counter.name,
        False,
        counter.scope,
        simulated=True,
        window_seconds=counter.window_seconds,
        update_seconds=counter.update_seconds,
    )
