"""Profiles that are there: the device's own, one that a user named or gave, or an entry of the catalogue."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ampere.core import TrainingSetup
from ampere.core.errors import ProfileError, UsageError
from ampere.devices import Device
from ampere.estimation.estimator import Estimator, estimator_for
from ampere.profiling.running import ProfilingResult
from ampere.storage.catalogue import Catalogue, alikeness
from ampere.storage.places import default_path
from ampere.storage.profile import Profile, check_device

from .models import ResolvedModel
from .options import AnyProfile, Options

FROM_CATALOGUE = "catalogue:"  # before the name of an entry, in the place of a profile's file


def stored_profile(options: Options) -> Profile | None:
    """The profile that the options name, or the device's own; None where it has none with measurements yet."""
    if isinstance(options.profile, (Profile, Estimator)):
        given = on_named_threads(options.profile, options)
        return given if isinstance(given, Profile) else given.profile
    with options.opened_device() as device:
        path = Path(str(options.profile)) if options.profile else profile_path(device, options)
        return profile_at(device, path, options)


def estimator_of(options: Options) -> Estimator:
    """The estimator of a stored profile: nothing is profiled."""
    if isinstance(options.profile, Estimator):
        return options.profile
    profile = stored_profile(options)
    if profile is None:
        raise ProfileError(
            "this device has no profile yet: make one with `ampere profile MODEL` or ampere.profile(...)"
        )
    return estimator_for(profile, options.watts_per_core)


def profile_path(device: Device, options: Options) -> Path:
    """Where the device's own profile of this setup is kept."""
    return default_path(device.identity, options.setup_on(device), *options.how)


def profile_at(device: Device, path: Path, options: Options) -> Profile | None:
    """The device's own profile in this file, None where it has none; or the one that the options name, checked."""
    if not options.profile:
        profile = Profile.load(path).on_threads(options.setup_on(device).threads) if path.exists() else None
        return profile if profile and profile.observations else None
    if str(path).startswith(FROM_CATALOGUE):
        entry = Catalogue().entry(str(path).removeprefix(FROM_CATALOGUE))
        origin = f"{entry.origin}; {alikeness(entry.profile.device, device.identity)}"
        options.say(f"from the catalogue: {origin}")
        check_same_setup(entry.profile.setup, options, str(path))
        return replace(entry.profile, device={**entry.profile.device, "origin": origin})
    profile = load_profile(path)
    profile = profile.on_threads(options.threads or profile.setup.threads) or profile
    check_device(profile, device.identity, options.allow_other_device)
    check_same_setup(profile.setup, options, str(path))
    return profile


def load_profile(path: Path | str) -> Profile:
    """The profile in a file, of whichever device."""
    profile = Profile.load(Path(path))
    if not profile.observations:
        raise ProfileError(f"{path} holds no measurement: profile again, for longer")
    return profile


def given_profile(given: AnyProfile) -> Profile:
    """The profile that a user named by its file, or gave as it is or in what it was used for."""
    if isinstance(given, Profile):
        return given
    return given.profile if isinstance(given, (Estimator, ProfilingResult)) else load_profile(given)


def profile_like(named: str | Path | Profile, setup: TrainingSetup) -> Profile:
    """The profile of a device like another one: a file, an entry of the catalogue, or a device's own of this setup."""
    if isinstance(named, Profile):
        return named
    if Path(named).is_file():
        return load_profile(named)
    text, entries = str(named), Catalogue()
    if (entry := text.removeprefix("catalogue:")) in entries.names():
        return entries.profile(entry)
    try:
        with Device(text) as device:
            path = default_path(device.identity, setup)
    except UsageError:
        raise UsageError(
            f"there is no profile like {text!r:.80}: give a file, a device such as simulated:tx2, or a name that "
            "`ampere catalogue list` shows"
        ) from None
    if not path.exists():
        raise ProfileError(f"{text} has no profile with {setup.name} yet: make one with `ampere profile`")
    return load_profile(path)


def check_same_setup(made_with: TrainingSetup, options: Options, where: str) -> None:
    """Refuses options that contradict the setup that a profile was made with."""
    for name, asked in options.named_setup.items():
        known = getattr(made_with, name)
        if asked != known:
            raise UsageError(f"{where} was made with {name} {known}, not {asked}: leave out --{name}, or profile again")


def on_named_threads(given: Profile | Estimator, options: Options) -> Profile | Estimator:
    """A profile with the part on the threads that the options name in front, where it has one."""
    if isinstance(given, Estimator) or options.threads is None:
        return given
    return given.on_threads(options.threads) or given


def already_profiled(
    device: Device, subject: ResolvedModel, options: Options, out: Path | str | None
) -> ProfilingResult | None:
    """What an earlier run made for the same subject, threads and setup; None where there was none."""
    path = Path(out) if out else profile_path(device, options)
    profile = Profile.load(path).on_threads(options.setup_on(device).threads) if path.exists() else None
    if profile is None or not profile.observations or subject.name not in profile.spaces:
        return None
    return ProfilingResult(profile, path, None, 0.0, (), resumed=False)
