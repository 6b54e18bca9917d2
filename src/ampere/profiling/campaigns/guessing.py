"""How long a step will take, before anything is fitted: prices of a slow laptop, at the speed seen so far."""

from __future__ import annotations

from statistics import median

from ampere.network import Network
from ampere.network.kinds import USUAL_WIDTH
from ampere.profiles.profile import Observation
from ampere.surrogate.features import PRIOR_PRICES, network_features


class Guess:
    def __init__(self, known: tuple[Observation, ...] = ()) -> None:
        self._speeds = [1.0]
        for observation in known:
            self.learn(observation)

    def seconds(self, network: Network) -> float:
        return median(self._speeds) * _by_prior(network)

    def learn(self, observation: Observation) -> None:
        if self._speeds == [1.0]:
            self._speeds.clear()
        self._speeds.append(observation.measurement.cpu_seconds / _by_prior(observation.network))


def _by_prior(network: Network) -> float:
    return float(network_features(network, USUAL_WIDTH).row @ PRIOR_PRICES)
