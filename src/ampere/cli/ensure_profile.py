"""A profile that knows enough of a model: the stored one, or that one extended, or a new one.

stored? --no--> profile ----------------------------+
   | yes                                            v
   +--> estimate --> sure enough, or not ours to extend? --yes--> done
                            | no
                            +--> profile more --> estimate again --> done
"""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ampere.core.errors import ProfileError, UsageError

from .console import notice
from .model_argument import name_of
from .options import check_setup, how_of, same_again, setup_of
from .run_profiling import default_place, run_profiling, seconds_asked

if TYPE_CHECKING:
    from ampere.core import Network
    from ampere.estimation.estimate import Estimate, Estimator
    from ampere.models.loading import LoadedModel
    from ampere.storage.profile import Profile

    Model = str | LoadedModel | Network

SURE_ENOUGH = 0.10  # standard deviation over joules


@dataclass(frozen=True)
class Known:
    profile: Profile
    path: Path
    network: Network
    estimator: Estimator
    estimate: Estimate
    lacks: tuple[str, ...] = ()  # layers that the profile's runtime cannot train, each with the reason


def ensure_profile(model: Model, options: Namespace) -> Known:
    from ampere.api import network_of

    _need_layers(how_of(options)["method"])
    path = Path(options.profile) if options.profile else default_place(options)
    may_learn = not _is_network(model) and not options.profile and not options.no_profiling
    profile = stored(options)
    if profile is None:
        profile = _first(model, options, may_learn)
    else:
        _tell_other_version(profile, options)
    known = _known(profile, path, network_of(model), options)
    if may_learn and (why := _why_more(known, model)):
        notice(f"profiling {seconds_asked(options):g} s more: {why}", options.quiet)
        known = _known(_learnt(model, options), path, known.network, options)
    return known


def _tell_other_version(profile: Profile, options: Namespace) -> None:
    from ampere.devices import describe
    from ampere.meters import DEFAULT_WATTS_PER_CORE
    from ampere.storage.profile import other_version

    changed = other_version(profile, describe(options.device, DEFAULT_WATTS_PER_CORE).identity)
    if changed:
        notice(changed, options.quiet)


def _need_layers(method: str) -> None:
    """Said before any time is spent on profiling."""
    from ampere.estimation.fitting import BY_LAYER

    if method not in BY_LAYER:
        raise UsageError(
            f"--method {method} cannot estimate layer by layer: choose one of {', '.join(BY_LAYER)}; "
            "`ampere validate --methods` compares the others"
        )


def stored(options: Namespace) -> Profile | None:
    """None where there is none, or one that was stopped before it knew anything."""
    from ampere.api import stored_profile

    profile = stored_profile(
        options.profile, setup_of(options), options.foreign, device=options.device, **how_of(options)
    )
    if profile and options.profile:
        check_setup(options, profile.setup, options.profile)
        need_measurements(profile, options.profile)
    return profile if profile and profile.observations else None


def profile_in(path: Path) -> Profile:
    """A file's, of whichever device."""
    from ampere.storage.profile import Profile

    profile = Profile.load(path)
    need_measurements(profile, path)
    return profile


def need_measurements(profile: Profile, path: Path | str) -> None:
    if not profile.observations:
        raise ProfileError(f"{path} holds no measurement: profile again, for longer")


def _known(profile: Profile, path: Path, network: Network, options: Namespace) -> Known:
    from ampere.estimation.estimate import Estimator

    estimator = Estimator(profile, getattr(options, "watts_per_core", None))
    estimate = estimator.estimate(network, options.allocator)
    return Known(profile, path, network, estimator, estimate, lacking_in(network, profile.setup.runtime))


def lacking_in(network: Network, runtime: str) -> tuple[str, ...]:
    from ampere.core.errors import WorkerError
    from ampere.runtimes import description_of
    from ampere.runtimes.table import lacking

    try:
        description = description_of(runtime)
    except WorkerError:  # a device's own, of which nothing is known here
        return ()
    return () if description.factories else tuple(lacking(network, description))


def _first(model: Model, options: Namespace, may_learn: bool) -> Profile:
    if not may_learn:
        command = f"ampere profile MODEL{same_again(options, setup_of(options))}"
        raise ProfileError(
            f"this device has no profile of this setup yet: make one with `{command}`, or give --profile FILE"
        )
    which = f"{options.runtime} on this device" if options.runtime else "this device"
    notice(f"no profile of {which} yet: making one in {seconds_asked(options):g} s, this once", options.quiet)
    return _learnt(model, options)


def _learnt(model: Model, options: Namespace) -> Profile:
    unmetered = Namespace(**{**vars(options), "watts_per_core": None})  # other watts are the estimate's business
    return run_profiling(model, unmetered).profile  # type: ignore[arg-type]


def _why_more(known: Known, model: Model) -> str:
    estimate = known.estimate
    if estimate.unprofiled or estimate.extrapolated:
        strange = [*estimate.unprofiled, *estimate.extrapolated]
        return f"the profile does not know layers like {', '.join(strange[:3])}{' ...' if strange[3:] else ''}"
    new = name_of(model) not in known.profile.spaces  # type: ignore[arg-type]
    if new and estimate.stddev > SURE_ENOUGH * estimate.joules:
        return f"the profile was made for {', '.join(known.profile.spaces)} and is not sure of this model"
    return ""


def _is_network(model: Model) -> bool:
    from ampere.core import Network

    return isinstance(model, Network)
