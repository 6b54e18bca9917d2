"""Networks whose true cost is known, without a device: convolutions with steps at the vector width."""

from itertools import pairwise
from random import Random

import numpy as np

from ampere.core import Layer, Measurement, Meter, Network, work
from ampere.estimation.additive import Data
from ampere.evaluation import layers
from ampere.storage.profile import Observation


def conv(channels_in: int, channels_out: int, size: int = 14, batch: int = 10) -> Layer:
    return layers.conv(channels_in, channels_out, size, batch)


def linear(channels_in: int, channels_out: int, rows: int = 10) -> Layer:
    return layers.linear(channels_in, channels_out, rows)


def chain(*widths: int) -> Network:
    convs = [conv(a, b) for a, b in pairwise(widths)]
    return Network((*convs, linear(widths[-1] * 196, 10)), 10)


def random_chains(seed: int, count: int, depth: int = 3, largest: int = 64) -> list[Network]:
    rng = Random(seed)
    return [chain(*(rng.randint(1, largest) for _ in range(depth + 1))) for _ in range(count)]


def true_seconds(network: Network) -> float:
    """A device that the physics mean does not describe: efficiency grows with width."""
    total = 2e-4
    for layer in network.layers:
        asked = work(layer)
        efficiency = 0.4 + 0.6 * layer.channels_out / (layer.channels_out + 16)
        total += asked.padded_flops / 4e10 / efficiency + asked.values * 3e-10 + asked.parameters * 1e-9 + 2e-5
    return total


def measured(networks: list[Network], noise: float = 0.01, seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    costs = np.array([true_seconds(n) for n in networks]) * np.exp(noise * rng.standard_normal(len(networks)))
    return Data(tuple(networks), costs, np.full(len(networks), noise**2), np.zeros(len(networks)))


def observed(network: Network, seconds: float, purpose: str = "network", stage: str = "step") -> Observation:
    """As a device would have been seen whose yardstick step costs a millisecond."""
    ratio = float(seconds) / 1e-3
    measurement = Measurement(
        joules=5.0 * float(seconds),
        seconds=float(seconds),
        cpu_seconds=float(seconds),
        ratio=ratio,
        iterations=8,
        rounds=(ratio,),
        meter=Meter("synthetic", False),
        yardsticks=(1e-3,),
    )
    return Observation(network, measurement, purpose, stage)
