"""Which of several networks is cheapest to train on a device, and the probability of that.

    a, b     joules of two networks, estimated together: the uncertainty of layers that both have cancels

    C_ab = cov(a, b) / (a b)        covariance of the logs of their costs, as ranking.py has it

As in an estimate, the variances are those of what a repeated measurement would show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ampere.core import Network, TrainingSetup
from ampere.core.display import frame, html_table
from ampere.core.errors import UsageError
from ampere.estimation.additive import Additive
from ampere.estimation.estimator import Estimator
from ampere.estimation.features import Array
from ampere.estimation.fitting import Surrogate
from ampere.estimation.sequential import Sequential

from .normalization import Normalized, device_of, names_of, normalize, on_one_device, unique_names
from .ranking import CONFIDENT, Ranked, RankedEntry, in_percent, ranked


@dataclass(frozen=True)
class DeviceRanking(Ranked):
    """Several models estimated from one profile, the cheapest first."""

    name: str  # the device, or what its profile differs in from the others: the runtime, say
    device: str
    setup: TrainingSetup
    normalized: Normalized  # to one condition of the device


@dataclass(frozen=True)
class Comparison:
    """Two or more models, ranked on every device and in every runtime that was given."""

    models: tuple[str, ...]  # in the order in which they were given
    per: str  # what joules are of: an iteration, or an example where batches differ
    devices: tuple[DeviceRanking, ...]
    one_device: bool = False  # all profiles are of one device, such as of several runtimes

    @property
    def one_meter(self) -> bool:
        """Whether joules of different devices mean the same: read from, or modelled with, the same kind of meter."""
        meters = [d.cheapest.estimate.meter for d in self.devices]
        return len({(m.name, m.measured) for m in meters}) == 1

    def sentence(self, device: DeviceRanking) -> str:
        """`lenet5 costs 0.62 of cnn5 (90 %: 0.60 to 0.64): it is cheaper (98 % probability)`."""
        if len(self.models) > 2:
            return _order(device)
        pair = device.pair(self.models[0], self.models[1])
        (low, high), probability = pair.interval, f"({in_percent(pair.probability)} probability)"
        times = "of" if pair.ratio < 1 else "times"
        ratio = f"{pair.first} costs {pair.ratio:.2f} {times} {pair.second} (90 %: {low:.2f} to {high:.2f})"
        if pair.probability < CONFIDENT:
            return f"{ratio}: too close to call, perhaps {pair.cheaper} is cheaper {probability}"
        return f"{ratio}: it is {'cheaper' if pair.cheaper == pair.first else 'more expensive'} {probability}"

    def to_json(self) -> dict[str, Any]:
        return {"models": list(self.models), "per": self.per, "devices": [self._record(d) for d in self.devices]}

    def _record(self, device: DeviceRanking) -> dict[str, Any]:
        return {
            "name": device.name,
            "device": device.device,
            "runtime": device.setup.runtime,
            "setup": device.setup.to_json(),
            **device.normalized.to_json(),
            **device.figures(),
            "meter": device.cheapest.estimate.meter.to_json(),
            "sentence": self.sentence(device),
            "ranking": [_entry(entry) for entry in device.entries],
            "pairwise": [device.pair(a, b).to_json() for a, b in combinations(self.models, 2)],
        }

    def rows(self) -> list[dict[str, Any]]:
        """One record for each model on each device, cheapest first."""
        return [{"device": d.name, "model": entry.name, **entry.row()} for d in self.devices for entry in d.entries]

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row for each model on each device, cheapest first."""
        return frame(self.rows())

    def _repr_html_(self) -> str:
        sentences = ". ".join(f"{d.name}: {self.sentence(d)}" for d in self.devices)
        return html_table(sentences if self.devices[1:] else self.sentence(self.devices[0]), self.rows())


def _order(device: DeviceRanking) -> str:
    """`a is cheapest (99 % probability), then b (1.30 times as much), c (2.10); this order: 93 % probability`."""
    cheapest, *others = device.entries
    probability = f"({in_percent(device.probability)} probability)"
    close = device.probability < CONFIDENT
    first = f"too close to call, perhaps {cheapest.name} {probability}" if close else f"{cheapest.name} {probability}"
    rest = ", ".join(f"{entry.name} ({entry.ratio:.2f} times as much)" for entry in others)
    return f"cheapest is {first}, then {rest}; this order has {in_percent(device.order_probability)} probability"


def _entry(entry: RankedEntry) -> dict[str, Any]:
    """What differs between models: the profile is the same for all of them."""
    keys = ("name", "joules", "ratio", "ratio_interval", "probability", "estimate")
    record = entry.to_json()
    return {key: record[key] for key in keys}


def compare(
    networks: Sequence[Network],
    estimators: Sequence[Estimator],
    allocator: str = "system",
    labels: Sequence[str] = (),
) -> Comparison:
    """Two or more networks, ranked with each profile.

    `labels` are further names of the profiles, such as their files', for those that are named alike.
    """
    if len(networks) < 2:
        raise UsageError("a comparison needs two models or more: give another model")
    per = "iteration" if len({network.batch for network in networks}) == 1 else "example"
    profiles = [estimator.profile for estimator in estimators]
    names = names_of(profiles, labels)
    models = unique_names([network.name or f"model {n}" for n, network in enumerate(networks, 1)])
    devices = [
        _on_device(estimator, name, normalized, dict(zip(models, networks, strict=True)), allocator, per)
        for estimator, name, normalized in zip(estimators, names, normalize(estimators, names), strict=True)
    ]
    return Comparison(tuple(models), per, tuple(devices), on_one_device(profiles))


def _on_device(
    estimator: Estimator, name: str, normalized: Normalized, networks: dict[str, Network], allocator: str, per: str
) -> DeviceRanking:
    device, setup = device_of(estimator.profile), estimator.profile.setup
    entries = []
    for model, network in networks.items():
        estimate = normalized.estimate(estimator, network, allocator)
        joules = estimate.joules / (network.batch if per == "example" else 1)
        entries.append(RankedEntry(model, device, setup, normalized, estimate, joules))
    covariance = _covariance(estimator.of_joules[0], [*networks.values()], entries[0].estimate.allocator == "system")
    return DeviceRanking(*ranked(entries, covariance), name, device, setup, normalized)


def _covariance(model: Surrogate, networks: Sequence[Network], system: bool) -> Array:
    """Of the logs of the networks' costs."""
    answers = [model.answer(network, system) for network in networks]
    means, variances = np.array([a.seconds for a in answers]), np.array([a.stddev**2 for a in answers])
    if isinstance(model, Additive):
        _, posterior = model.joint(networks, np.full(len(networks), float(system)))
        covariance = model.hyper.calibration**2 * np.array(posterior)
    else:
        assert isinstance(model, Sequential)  # the only other one that estimates layer by layer
        covariance = model.covariance(networks)
    np.fill_diagonal(covariance, variances)
    return np.asarray(covariance / np.outer(means, means))
