"""A simulated device in the place of a worker: it trains nothing, and answers from physics and its own clock.

y y y  T T T T  y y y  T T T T  y y y      windows of the yardstick and of the target in turn, each as long as
                                           the counter needs; joules are read by window, as from a real counter
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from random import Random
from statistics import mean, median
from types import TracebackType
from typing import Any

from ampere.core import Measurement, Meter, Network, TrainingSetup, work
from ampere.core.measurement import Window
from ampere.core.protocol import PROTOCOL
from ampere.core.windows import RAMP_WINDOW_SECONDS, STILL_FASTER, reading_by
from ampere.core.yardstick import YARDSTICK
from ampere.devices.device import VariantDied, Yardstick
from ampere.devices.workloads import network_of

from .body import Body, SimulatedWindow, read
from .parts import PARTS, Part
from .physics import Cost, Truth, footprint, stage_of, truth_of

PAIRS = 3  # windows of the target in a block
BUILD_SECONDS = 0.05  # to build a network, before its first step
LEAST_YARDSTICKS = 5


class SimulatedWorker:
    """A worker on a simulated device; a seed repeats everything."""

    def __init__(self, name: str, seed: int = 0) -> None:
        self.part: Part = PARTS[name]
        self._rng = Random(f"{name} {seed}")
        self._body = Body(self.part, self._rng)
        self._threads = 1  # of the present block

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
            "threads": part.threads,
            "vector_width": min(part.tile_out, 32),
            "runtimes": {"torch": "simulated"},
            "meter": meter_of(part).to_json(),
        }

    def identity(self) -> dict[str, Any]:
        """The fingerprint; its `id` cannot be that of a real device."""
        hello = self.hello()
        shown = {key: hello[key] for key in ("cpu", "cores", "system", "machine")}
        return {"id": f"simulated-{self.part.name}", **shown, "allocators": ["tuned"]}

    def truth(self, network: Network, setup: TrainingSetup | None = None) -> Truth:
        """The true cost of a step of the network, on a cold device at full clock."""
        return truth_of(self.part, network, setup or TrainingSetup())

    def block(
        self,
        workload: Mapping[str, Any],
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
    ) -> Measurement:
        """Train with windows as long as the counter needs, whatever the pairing; "plain" leaves out the yardstick."""
        began, setup = self.clock(), setup or TrainingSetup()
        network = network_of(workload)
        self._refuse_what_does_not_fit(network, setup)
        target, yardstick = (
            self._cost(network, setup, stage),
            self._cost(YARDSTICK, TrainingSetup(threads=setup.threads)),
        )
        self._threads = setup.threads
        self._body.now += BUILD_SECONDS
        self._raise_clocks(yardstick)
        self._body.train(target, warmup)
        if power:
            return self._steady(network, target, yardstick, began)
        window = self.part.counter.window_seconds if count else 0.0
        steps = _steps(target, window / PAIRS, math.ceil(iterations / PAIRS))
        if pairing == "plain":
            return self._measurement(network, [self._body.train(target, steps) for _ in range(PAIRS)], [], began)
        yardstick_steps = _steps(yardstick, window / (PAIRS + 1), LEAST_YARDSTICKS)
        yardsticks, targets = [self._body.train(yardstick, yardstick_steps)], []
        for _ in range(PAIRS):
            targets.append(self._body.train(target, steps))
            yardsticks.append(self._body.train(yardstick, yardstick_steps))
        return self._measurement(network, targets, yardsticks, began, count=count)

    def yardstick(
        self,
        seconds: float = 1.0,
        threads: int = 1,
        runtime: str = "torch",
        power: bool = False,
        count: bool = True,
    ) -> Yardstick:
        """Nominal cost of the yardstick; a slow counter is read for as long as it needs, whatever the seconds."""
        cost = self._cost(YARDSTICK, TrainingSetup(threads=threads))
        self._raise_clocks(cost)
        whole = max(seconds, 2 * self.part.counter.window_seconds if count else 0.0)
        if power:
            reading = reading_by(self.part.counter.update_seconds)
            whole = max(seconds, reading.seconds)
            self._body.train(cost, _steps(cost, reading.settling_seconds, 1))
        windows = [self._body.train(cost, max(1, math.ceil(whole / 20 / cost(1.0).seconds))) for _ in range(20)]
        each = sorted(w.seconds / w.steps for w in windows)
        return Yardstick(
            busy_seconds=median(each) * self._busy_cores(threads),
            wall_seconds=median(each),
            steps=sum(w.steps for w in windows),
            joules=self._read([_around(windows)], power) * median(each) / mean(each) if count else None,
        )

    def close(self) -> None:
        """Do nothing: no process runs."""

    def __enter__(self) -> SimulatedWorker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _cost(self, network: Network, setup: TrainingSetup, stage: str = "step") -> Callable[[float], Cost]:
        """The cost of a step as a function of the clock."""
        if stage == "step":
            return lru_cache(lambda clock: truth_of(self.part, network, setup, clock).total)
        return lru_cache(lambda clock: stage_of(self.part, network, setup, stage, clock))

    def _raise_clocks(self, step: Callable[[float], Cost]) -> None:
        """Repeat the step until it gets no faster, as a worker does on a card that was idle."""
        quickest = math.inf
        while self._body.clock < 1.0 and self.part.ramp:
            window = self._body.train(step, _steps(step, RAMP_WINDOW_SECONDS, 1))
            if window.seconds / window.steps > STILL_FASTER * quickest:
                return
            quickest = window.seconds / window.steps

    def _read(self, windows: list[SimulatedWindow], settled: bool = False) -> float:
        """Joules of a step, as the counter reads them."""
        return sum(read(self.part, w, self._rng, settled) for w in windows) / sum(w.steps for w in windows)

    def _steady(
        self, network: Network, target: Callable[[float], Cost], yardstick: Callable[[float], Cost], began: float
    ) -> Measurement:
        """One window of a steady load, as a worker measures it; yardsticks are only timed."""
        reading = reading_by(self.part.counter.update_seconds)
        before = self._body.train(yardstick, LEAST_YARDSTICKS)
        self._body.train(target, _steps(target, reading.settling_seconds, 1))
        read = self._body.train(target, _steps(target, reading.seconds, 1))
        around = [before, self._body.train(yardstick, LEAST_YARDSTICKS)]
        return self._measurement(network, [read], around, began, settled=True, count_yardstick=False)

    def _measurement(
        self,
        network: Network,
        targets: list[SimulatedWindow],
        yardsticks: list[SimulatedWindow],
        began: float,
        settled: bool = False,
        count: bool = True,
        count_yardstick: bool = True,
    ) -> Measurement:
        return Measurement(
            target=self._windows(targets, count, settled),
            yardstick=self._windows(yardsticks, count and count_yardstick, False),
            meter=meter_of(self.part),
            parameters=int(sum(work(layer).parameters for layer in network.layers)),
            elapsed_seconds=self.clock() - began,
            conditions={"clock": self._body.clock, "kelvin_above_ambient": self._body.kelvin},
            flags=("throttled",) if any(w.throttled for w in targets) else (),
        )

    def _windows(self, trained: list[SimulatedWindow], count: bool, settled: bool) -> tuple[Window, ...]:
        """Windows as measured. Joules are always read, so that later random numbers do not depend on `count`."""
        read_joules = [read(self.part, w, self._rng, settled) for w in trained]
        return tuple(
            Window(w.steps, *self._clocks(w.seconds), joules if count else None)
            for w, joules in zip(trained, read_joules, strict=True)
        )

    def _clocks(self, seconds: float) -> tuple[float, float]:
        """Wall and busy seconds of a window: waiting threads spin, which makes busy time vary."""
        cores = self._busy_cores(self._threads)
        if cores == 1:
            return seconds, seconds
        wall = seconds * math.exp(self._rng.gauss(0.0, self.part.wall_noise))
        return wall, wall * cores * math.exp(self._rng.gauss(0.0, self.part.busy_noise))

    def _busy_cores(self, threads: int) -> float:
        return 1 + self.part.spinning * (threads - 1) if self.part.divided else 1.0

    def _refuse_what_does_not_fit(self, network: Network, setup: TrainingSetup) -> None:
        needed = footprint(network, setup)
        if needed > self.part.memory_bytes:
            needed_gb, available_gb = needed / 1e9, self.part.memory_bytes / 1e9
            raise VariantDied(
                f"out of memory ({needed_gb:.1f} GB of {available_gb:.1f} GB on the simulated {self.part.title}); "
                "use fewer channels or a smaller batch",
                out_of_memory=True,
            )


def _around(windows: list[SimulatedWindow]) -> SimulatedWindow:
    """One window around many that follow each other."""
    steps, seconds, joules = (sum(values) for values in list(zip(*windows, strict=True))[:3])
    return SimulatedWindow(int(steps), seconds, joules, any(w.throttled for w in windows))


def _steps(cost: Callable[[float], Cost], seconds: float, least: int) -> int:
    return max(least, math.ceil(seconds / cost(1.0).seconds))


def meter_of(part: Part) -> Meter:
    """The simulated meter of a part."""
    counter = part.counter
    return Meter(
        counter.name,
        False,
        counter.scope,
        simulated=True,
        window_seconds=counter.window_seconds,
        update_seconds=counter.update_seconds,
    )
