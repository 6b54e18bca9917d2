"""What is known of a device: learnt now, or stored before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ampere.devices import describe, setup_on
from ampere.devices.opening import LOCAL
from ampere.errors import UsageError
from ampere.models.loading import LoadedModel
from ampere.network import TrainingSetup
from ampere.network.setup import PROTOCOLS
from ampere.profiles.places import default_path
from ampere.profiles.profile import Profile, check_device
from ampere.profiling.abilities import known
from ampere.profiling.campaigns.campaign import Goal, Progress
from ampere.profiling.running import Made, make_profile, usual_seconds
from ampere.profiling.slowness import steady_power
from ampere.worker.meters import DEFAULT_WATTS_PER_CORE, watts_in

from .models import source_for


def profile(
    model: str | LoadedModel,
    *,
    seconds: float | None = None,
    target: float = 0.0,
    out: Path | str | None = None,
    setup: TrainingSetup | None = None,
    watts_per_core: float | None = None,
    input: str | None = None,
    seed: int = 0,
    foreign: bool = False,
    method: str = "additive",
    protocol: str = "yardstick",
    device: str = LOCAL,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Made:
    """Trains small variants and networks like the model on a device, and keeps what was learnt.

    `seconds` are the device's own, simulated ones where it is. None means 15 (120 where the
    runtime compiles), and what a slow counter needs besides.
    `method` names the campaign (profiling/campaigns/), `protocol` how each block is timed.
    """
    if protocol not in PROTOCOLS:
        raise UsageError(f"protocol {protocol!r} is none of {', '.join(PROTOCOLS)}")
    meter = describe(device, watts_per_core or DEFAULT_WATTS_PER_CORE).meter
    setup = setup_on(device, setup)
    if seconds is None:
        seconds = usual_seconds(meter, known(device, setup.runtime).compiles, steady_power(meter, method, protocol))
    if not seconds > 0:
        raise UsageError(f"{seconds:g} seconds are no time to profile in: give a positive number, such as 15")
    if not 0 <= target < 1:
        raise UsageError(f"a target error of {target:g} makes no sense: give something like 3%")
    if watts_per_core is not None and not watts_per_core > 0:
        raise UsageError(f"{watts_per_core:g} watts a core make no sense: give a positive number")
    if watts_per_core is not None and watts_in(meter.scope) is None:
        raise UsageError(f"joules of {device} come from a counter: leave out --watts-per-core")
    path = Path(out) if out else None
    goal = Goal(seconds, target)
    source = source_for(model, input)
    return make_profile(source, setup, goal, watts_per_core, path, seed, foreign, on_progress, method, protocol, device)


def stored_profile(
    path: Path | str | None = None,
    setup: TrainingSetup | None = None,
    foreign: bool = False,
    method: str = "additive",
    protocol: str = "yardstick",
    device: str = LOCAL,
) -> Profile | None:
    """The profile at a path, or the device's own; None where there is none of its own yet."""
    identity = describe(device, DEFAULT_WATTS_PER_CORE).identity
    if path is None:
        place = default_path(identity, setup_on(device, setup), method, protocol)
        return Profile.load(place) if place.exists() else None
    found = Profile.load(Path(path))
    check_device(found, identity, foreign)
    return found
