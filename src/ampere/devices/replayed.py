"""A device that answers from recorded measurements: a result can be reproduced where the device is not.

A block of a network that was recorded gives its recorded rounds in turn, and then from the first again; anything else
is refused. Time is the recording's: the clock moves by what a block took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from ampere.core import Measurement, Network, TrainingSetup, work
from ampere.core.errors import ProfileError
from ampere.core.kinds import USUAL_WIDTH, VECTOR_WIDTHS
from ampere.core.protocol import PROTOCOL
from ampere.storage.profile import Profile
from ampere.storage.recording import profile_from

from .device import Block, VariantFailed, Yardstick
from .workloads import described, network_of

Key = tuple[object, ...]


def recording(path: Path) -> Profile:
    """A profile, or the journal that one is made from."""
    found = profile_from(path) if path.name.endswith(".journal") else Profile.load(path)
    if not found.observations:
        raise ProfileError(f"{path} holds no measurement, so there is nothing to replay: name another")
    return found


class ReplayedWorker:
    def __init__(self, path: Path, allocator: str = "tuned", known: Profile | None = None) -> None:
        self.path, self.recorded = path, known or recording(path)
        self._rounds: dict[Key, list[tuple[Measurement, int]]] = {}
        for o in self.recorded.observations:
            if o.measurement.allocator == allocator:
                rounds = [(o.measurement, i) for i in range(len(o.measurement.rounds))]
                self._rounds.setdefault(_key(o.network, o.stage), []).extend(rounds)
        self._given: Counter[Key] = Counter()
        self._now = 0.0

    def clock(self) -> float:
        return self._now

    def hello(self) -> dict[str, Any]:
        device, width = self.recorded.device, self.recorded.fit.get("vector_width", USUAL_WIDTH)
        return {
            "protocol": PROTOCOL,
            "cpu": f"replayed {device.get('cpu', device['id'])}",
            "cores": device.get("cores", 1),
            "vector_width": int(width) if width in VECTOR_WIDTHS else USUAL_WIDTH,
            "runtimes": {self.recorded.setup.runtime: "recorded"},
            "meter": replace(self.recorded.meter, replayed=True).to_json(),
        }

    def identity(self) -> dict[str, Any]:
        said, device = self.hello(), self.recorded.device
        there = sorted({o.measurement.allocator for o in self.recorded.observations}, reverse=True)
        return {**device, "id": f"replayed-{device['id']}", "cpu": said["cpu"], "allocators": there}

    def left(self, network: Network, stage: str = "step") -> int:
        """How many rounds of it were recorded and not given yet."""
        key = _key(network, stage)
        return max(0, len(self._rounds.get(key, ())) - self._given[key])

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
        network = self._recorded_network(subject, stage)
        if setup is not None and setup != self.recorded.setup:
            raise VariantFailed(f"{self.path} was recorded with {self.recorded.setup.name}, not {setup.name}")
        key = _key(network, stage)
        rounds = self._rounds.get(key)
        if not rounds:
            what = network.name or f"a network of {len(network.layers)} layers"
            raise VariantFailed(f"{what} is not recorded in {self.path}: only what was recorded can be replayed")
        measurement, index = rounds[self._given[key] % len(rounds)]
        self._given[key] += 1
        found = self._block(network, measurement, index)
        self._now += found.elapsed
        return found

    def yardstick(
        self,
        seconds: float = 1.0,
        threads: int = 1,
        runtime: str = "torch",
        power: bool = False,
        count: bool = True,
    ) -> Yardstick:
        nominal = self.recorded.yardstick_seconds
        return Yardstick(nominal, nominal, nominal, nominal, 1, self.recorded.yardstick_joules if count else None)

    def close(self) -> None:
        """Nothing runs."""

    def __enter__(self) -> ReplayedWorker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _recorded_network(self, subject: Mapping[str, Any], stage: str) -> Network:
        """Described layers may be a recorded network itself, or one to which a worker would have added a loss."""
        if "layers" in subject and _key(as_it_is := described(subject["layers"]), stage) in self._rounds:
            return as_it_is
        return network_of(subject)

    def _joules(self, m: Measurement, index: int, scale: float) -> float | None:
        """None of a round that was only timed; those came first."""
        if not self.recorded.yardstick_joules:
            return m.joules * scale
        counted = index - len(m.rounds) + len(m.joules_rounds)
        return m.joules_rounds[counted] if counted >= 0 else None

    def _block(self, network: Network, m: Measurement, index: int) -> Block:
        """One round as it was, so that what is made of it is what was recorded."""
        scale, nominal = m.rounds[index] / m.ratio, self.recorded.yardstick_seconds
        plain = bool(m.conditions.get("wallclock"))
        beside = m.yardsticks[index] if len(m.yardsticks) == len(m.rounds) else nominal
        steps = max(1, m.iterations // len(m.rounds))
        return Block(
            ratio=None if plain else m.rounds[index],
            spread=None,
            seconds=m.seconds * scale,
            cpu_seconds=m.cpu_seconds * scale,
            yardstick_seconds=None if plain else beside,
            joules=self._joules(m, index, scale),
            iterations=steps,
            page_faults=m.conditions.get("page_faults", 0.0),
            parameters=int(sum(work(layer).parameters for layer in network.layers)),
            loss=(None, None),
            elapsed=steps * (m.seconds * scale + beside),
            conditions={k: v for k, v in m.conditions.items() if k not in ("page_faults", "wallclock")},
            flags=m.flags,
            yardstick_joules=None if plain else self.recorded.yardstick_joules,
        )


def _key(network: Network, stage: str) -> Key:
    return network.layers, network.batch, stage
