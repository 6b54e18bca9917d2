"""Where experiments come from on a replayed device: from what was recorded, and from nothing else."""

from __future__ import annotations

from random import Random

from ampere.devices.replayed import ReplayedDevice
from ampere.errors import ProfileError
from ampere.profiles.profile import Observation

from .experiment import Experiment


class RecordedSource:
    def __init__(self, name: str, device: ReplayedDevice) -> None:
        self.name, observations = name, device.recorded.observations
        self._whole = [_experiment(o) for o in observations if o.purpose == "network"]
        self._parts = [_experiment(o) for o in observations if o.purpose in ("layer", "variant", "opaque")]
        if not self._whole:
            raise ProfileError(
                f"{device.path} holds no whole network, so a profile cannot be made from it: name another"
            )

    def original(self) -> Experiment:
        return self._whole[0]

    def sample(self, rng: Random) -> Experiment:
        return rng.choice(self._whole)

    def opaque(self) -> list[Experiment]:
        """What can be trained besides whole networks."""
        return self._parts


def _experiment(observation: Observation) -> Experiment:
    network = observation.network
    return Experiment(network, {"layers": network.to_json()}, observation.purpose, observation.measurement.allocator)
