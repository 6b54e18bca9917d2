"""Which of two networks is cheaper to train, on which device, and how sure that is.

    a, b     joules of the two, estimated together: what is not known of layers that both have cancels

    s^2 = var(a) / a^2 + var(b) / b^2 - 2 cov(a, b) / (a b)        of log(a / b), as sureness.py has it

As in an estimate, the variances are those of what a careful measurement would show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from ampere.core import Network, TrainingSetup
from ampere.estimation.additive import Additive
from ampere.estimation.estimate import Estimate, Estimator
from ampere.estimation.fitting import Surrogate

from .normalization import Normalized, at_one_condition
from .probability import SURE, chance_below_one, device_of, in_percent, interval90, names_of, on_one_device


@dataclass(frozen=True)
class DeviceComparison:
    """Two networks on one device. Costs are those of an iteration, or of an example where the batches differ."""

    name: str  # what tells it from the others: the device, or the runtime on it
    device: str
    setup: TrainingSetup
    moved: Normalized  # to one condition of the device
    estimates: tuple[Estimate, Estimate]  # of an iteration each
    joules: tuple[float, float]  # of what is compared
    relative_stddev: float  # of the ratio

    @property
    def ratio(self) -> float:
        """What the first costs of the second."""
        return self.joules[0] / self.joules[1]

    @property
    def ratio_interval90(self) -> tuple[float, float]:
        return interval90(self.ratio, self.relative_stddev)

    @property
    def first_is_cheaper(self) -> float:
        """The probability that it is."""
        return chance_below_one(self.ratio, self.relative_stddev)

    @property
    def cheaper(self) -> int:
        return int(self.first_is_cheaper < 0.5)

    @property
    def sure(self) -> float:
        """The probability that the one called cheaper is."""
        return max(self.first_is_cheaper, 1 - self.first_is_cheaper)


@dataclass(frozen=True)
class Comparison:
    """Two models, on every device and in every runtime that was asked about."""

    names: tuple[str, str]
    per: str  # iteration, or example
    devices: tuple[DeviceComparison, ...]
    one_device: bool = False  # in several runtimes of it, say

    @property
    def one_meter(self) -> bool:
        """Whether joules of different devices mean the same: read from, or modelled with, the same sort of meter."""
        meters = [d.estimates[0].meter for d in self.devices]
        return len({(m.name, m.measured) for m in meters}) == 1

    def sentence(self, device: DeviceComparison) -> str:
        """`lenet5 costs 0.62 of cnn5 (90 %: 0.60 to 0.64): it is cheaper, 98 % sure`."""
        low, high = device.ratio_interval90
        first, second = self.names
        times = "of" if device.ratio < 1 else "times"
        said = f"{first} costs {device.ratio:.2f} {times} {second} (90 %: {low:.2f} to {high:.2f})"
        if device.sure < SURE:
            return f"{said}: too close to call, {self.names[device.cheaper]} is cheaper with {in_percent(device.sure)}"
        return f"{said}: {('it is cheaper', 'it is dearer')[device.cheaper]}, {in_percent(device.sure)} sure"

    def to_json(self) -> dict[str, Any]:
        return {"models": list(self.names), "per": self.per, "devices": [self._of(d) for d in self.devices]}

    def _of(self, device: DeviceComparison) -> dict[str, Any]:
        return {
            "name": device.name,
            "device": device.device,
            "runtime": device.setup.runtime,
            "setup": device.setup.to_json(),
            **device.moved.to_json(),
            "cheaper": self.names[device.cheaper],
            "sure": device.sure,
            "ratio": device.ratio,
            "ratio_interval90": list(device.ratio_interval90),
            "joules": list(device.joules),
            "meter": device.estimates[0].meter.to_json(),
            "estimates": [estimate.to_json() for estimate in device.estimates],
            "sentence": self.sentence(device),
        }


def compare(
    first: Network,
    second: Network,
    estimators: Sequence[Estimator],
    allocator: str = "system",
    called: Sequence[str] = (),
) -> Comparison:
    """`called` are names of the profiles, such as their files', for those that nothing else tells apart."""
    per = "iteration" if first.batch == second.batch else "example"
    profiles = [estimator.profile for estimator in estimators]
    names = names_of(profiles, called)
    moved = at_one_condition(estimators, names)
    found = tuple(
        _on(estimator, name, told, (first, second), allocator, per)
        for estimator, name, told in zip(estimators, names, moved, strict=True)
    )
    models = told_apart(first.name or "first", second.name or "second")
    return Comparison(models, per, found, on_one_device(profiles))


def told_apart(first: str, second: str) -> tuple[str, str]:
    return (first, second) if first != second else (f"{first} (first)", f"{second} (second)")


def _on(
    estimator: Estimator, name: str, moved: Normalized, networks: tuple[Network, Network], allocator: str, per: str
) -> DeviceComparison:
    a, b = (moved.estimate(estimator, network, allocator) for network in networks)
    batches = [float(n.batch) if per == "example" else 1.0 for n in networks]
    relative = _relative_stddev(estimator.of_joules[0], networks, a.allocator == "system")
    joules, profile = (a.joules / batches[0], b.joules / batches[1]), estimator.profile
    return DeviceComparison(name, device_of(profile), profile.setup, moved, (a, b), joules, relative)


def _relative_stddev(model: Surrogate, networks: tuple[Network, Network], system: bool) -> float:
    answers = [model.answer(network, system) for network in networks]
    means, variances = np.array([a.seconds for a in answers]), np.array([a.stddev**2 for a in answers])
    together = _covariance(model, networks, system, variances) / float(np.prod(means))
    return sqrt(max(float(np.sum(variances / means**2)) - 2 * together, 0.0))


def _covariance(model: Surrogate, networks: tuple[Network, Network], system: bool, variances: Any) -> float:
    if isinstance(model, Additive):
        _, posterior = model.joint(networks, np.full(2, float(system)))
        return model.hyper.calibration**2 * float(posterior[0, 1])
    both = Network((*networks[0].layers, *networks[1].layers), networks[0].batch)  # var(a + b) holds cov(a, b) twice
    return 0.5 * (model.answer(both, system).stddev ** 2 - float(np.sum(variances)))
