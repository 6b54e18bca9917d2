"""A device that answers from recorded measurements, to reproduce results without the device.

A recorded network returns its recorded measurements in turn, and starts again after the last; any other network is
refused. The clock is the recording's: it advances by what each block took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from ampere.core import Measurement, Network, TrainingSetup
from ampere.core.errors import ProfileError
from ampere.core.kinds import USUAL_WIDTH, VECTOR_WIDTHS
from ampere.core.protocol import PROTOCOL
from ampere.core.setup import CPU
from ampere.core.units import counted
from ampere.storage.profile import Profile
from ampere.storage.recording import profile_from

from .device import VariantFailed, Yardstick
from .workloads import described, network_of

Key = tuple[object, ...]


def recording(path: Path) -> Profile:
    """The recorded profile in a file, which may also be a journal."""
    found = profile_from(path) if path.name.endswith(".journal") else Profile.load(path)
    if not found.observations:
        raise ProfileError(f"{path} holds no measurements, so there is nothing to replay: use another recording")
    return found


class ReplayedWorker:
    """A worker that returns the measurements of a recording."""

    def __init__(self, path: Path, allocator: str = "tuned", known: Profile | None = None) -> None:
        self.path, self.recorded = path, known or recording(path)
        self._measurements: dict[Key, list[Measurement]] = {}
        for o in self.recorded.observations:
            if o.measurement.allocator == allocator:
                self._measurements.setdefault(_key(o.network, o.stage), []).append(o.measurement)
        self._returned: Counter[Key] = Counter()
        self._now = 0.0

    def clock(self) -> float:
        return self._now

    def hello(self) -> dict[str, Any]:
        device, width = self.recorded.device, self.recorded.fit.get("vector_width", USUAL_WIDTH)
        return {
            "protocol": PROTOCOL,
            "cpu": f"replayed {device.get('cpu', device['id'])}",
            "cores": device.get("cores", 1),
            "threads": self.recorded.setup.threads,
            **({"accelerator": {"on": self.recorded.setup.on}} if self.recorded.setup.on != CPU else {}),
            "vector_width": int(width) if width in VECTOR_WIDTHS else USUAL_WIDTH,
            "runtimes": {self.recorded.setup.runtime: "recorded"},
            "meter": replace(self.recorded.meter, replayed=True).to_json(),
        }

    def identity(self) -> dict[str, Any]:
        hello, device = self.hello(), self.recorded.device
        allocators = sorted({o.measurement.allocator for o in self.recorded.observations}, reverse=True)
        return {**device, "id": f"replayed-{device['id']}", "cpu": hello["cpu"], "allocators": allocators}

    def left(self, network: Network, stage: str = "step") -> int:
        """How many recorded measurements of a network were not returned yet."""
        key = _key(network, stage)
        return max(0, len(self._measurements.get(key, ())) - self._returned[key])

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
        network = self._recorded_network(workload, stage)
        if setup is not None and setup != self.recorded.setup:
            raise VariantFailed(
                f"{self.path} was recorded with {self.recorded.setup.name}, not {setup.name}: use another recording"
            )
        key = _key(network, stage)
        recorded = self._measurements.get(key)
        if not recorded:
            what = network.name or f"a network of {counted(len(network.layers), 'layer')}"
            raise VariantFailed(f"{what} is not in {self.path}: only recorded networks can be replayed")
        found = recorded[self._returned[key] % len(recorded)]
        self._returned[key] += 1
        self._now += found.elapsed_seconds
        return replace(found, meter=replace(found.meter, replayed=True))

    def yardstick(
        self,
        seconds: float = 1.0,
        threads: int = 1,
        runtime: str = "torch",
        power: bool = False,
        count: bool = True,
    ) -> Yardstick:
        nominal = self.recorded.yardstick_seconds
        return Yardstick(nominal, nominal, 1, self.recorded.yardstick_joules if count else None)

    def close(self) -> None:
        """Do nothing: no process runs."""

    def __enter__(self) -> ReplayedWorker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _recorded_network(self, workload: Mapping[str, Any], stage: str) -> Network:
        """The network of a workload: described layers as they are if recorded so, else with the loss a worker adds."""
        if "layers" in workload and _key(as_it_is := described(workload["layers"]), stage) in self._measurements:
            return as_it_is
        return network_of(workload)


def _key(network: Network, stage: str) -> Key:
    return network.layers, network.batch, stage
