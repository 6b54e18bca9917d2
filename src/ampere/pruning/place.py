"""Whether original and result can be trained on a device, and how they get there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from ampere.core import Network
from ampere.core.errors import UsageError
from ampere.devices import Device, allocator_on, check_same_meter
from ampere.meters import DEFAULT_WATTS_PER_CORE, watts_in
from ampere.models.loading import LoadedModel
from ampere.profiling.experiment import Experiment
from ampere.profiling.sources import source_of
from ampere.runtimes.table import lacking
from ampere.storage.profile import Profile

from .checking import Place
from .rebuilding import experiment_of
from .result import Pruned


def why_not(device: Device, profile: Profile, network: Network) -> str:
    """Why nothing can be measured there; "" where it can."""
    if device.spec.startswith("replayed:"):
        return f"{device.spec} is a recording, which can train nothing new"
    if device.identity["id"] != profile.device["id"]:
        return f"the profile is of another device than {device.spec}, which is not at hand"
    description = device.capabilities(profile.setup.runtime)
    if not _by_code(device, profile) and (lacks := lacking(network, description)):
        return f"{device.spec} cannot build {lacks[0]}"
    return ""


@contextmanager
def opened_place(
    loaded: LoadedModel, device: Device, profile: Profile, allocator: str, network: Network | None = None
) -> Iterator[Place]:
    """Here a pruned model is built by its own code; elsewhere, original and result from their layers."""
    original = source_of(loaded, network).original().under(allocator_on(profile.device, allocator))
    if reason := why_not(device, profile, original.network):
        raise UsageError(f"nothing can be measured: {reason}; leave out check=True")
    check_same_meter(device, profile.meter)
    watts, numbers = watts_in(profile.meter.scope) or DEFAULT_WATTS_PER_CORE, count()
    with device.fresh(watts, 1) as workers, TemporaryDirectory() as folder:

        def by_code(pruned: Pruned) -> Experiment:
            return experiment_of(pruned, loaded, original, Path(folder) / f"{next(numbers)}.json")

        def by_layers(pruned: Pruned) -> Experiment:
            return _described(replace(original, network=pruned.networks[1]))

        there = workers[original.allocator]
        if _by_code(device, profile) and loaded.factory:
            yield Place(there, original, by_code, there.clock)
        else:
            yield Place(there, _described(original), by_layers, there.clock)


def _by_code(device: Device, profile: Profile) -> bool:
    return device.is_local and device.capabilities(profile.setup.runtime).factories


def _described(experiment: Experiment) -> Experiment:
    return replace(experiment, subject={"layers": experiment.network.to_json()})
