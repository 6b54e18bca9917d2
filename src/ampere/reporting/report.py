"""Profiles, networks and a validation -> what the report says, in the order in which people ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean

from ampere.core import Meter, Network
from ampere.core.errors import UsageError
from ampere.estimation.estimate import Estimator
from ampere.estimation.fitting import BY_LAYER
from ampere.storage.profile import Profile

from .accuracy import accuracy_section, left_out
from .device_part import cost_section, device_name, facts, flags_section, more_facts
from .devices_part import devices_section
from .layers import kind_colours
from .methods import methods_section
from .model_part import Run, model_section
from .models_part import side_by_side
from .origin import origin
from .record import Report, Section
from .surfaces import surfaces_section
from .validation_file import Validated
from .whole_part import whole_section


def make_report(
    profile: Profile,
    networks: Sequence[Network],
    runs: Sequence[Run],
    validated: Validated | None = None,
    allocator: str = "system",
    watts_per_core: float | None = None,
    others: Sequence[Profile] = (),
) -> Report:
    """One run for each network. The other profiles are only compared with the first, which the report is about."""
    if profile.method not in BY_LAYER:
        return _of_wholes(profile, networks, validated, watts_per_core, others)
    estimators = [Estimator(known, watts_per_core) for known in (profile, *others)]
    estimator = estimators[0]
    sections = [
        *([devices_section(networks, estimators, allocator)] if others else []),
        *_models(networks, runs, estimator, allocator),
        surfaces_section(profile, estimator),
        accuracy_section(profile, estimator, validated),
        methods_section(validated) if validated else None,
        cost_section(profile, _expected_error(profile, estimator)),
        flags_section(profile),
    ]
    return _report(profile, networks, estimator.meter, sections)


def _of_wholes(
    profile: Profile,
    networks: Sequence[Network],
    validated: Validated | None,
    watts_per_core: float | None,
    others: Sequence[Profile],
) -> Report:
    """Of a profile that tells nothing about layers in a network."""
    if watts_per_core is not None or others:
        what = "--watts-per-core" if watts_per_core is not None else "the other profiles"
        raise UsageError(f"a profile made with --method {profile.method} is shown alone, as it is: leave out {what}")
    sections = [
        whole_section(profile, networks),
        methods_section(validated) if validated else None,
        cost_section(profile, None),
        flags_section(profile),
    ]
    return _report(profile, networks, profile.meter, sections)


def _models(
    networks: Sequence[Network], runs: Sequence[Run], estimator: Estimator, allocator: str
) -> Iterator[Section]:
    estimates = [estimator.estimate(network, allocator) for network in networks]
    if len(networks) > 1:
        yield side_by_side(networks, estimates, estimator)
    colours = kind_colours(estimates)
    for i, (network, estimate, run) in enumerate(zip(networks, estimates, runs, strict=True), 1):
        yield model_section(f"model-{i}", network, estimate, estimator, run, colours)


def _report(profile: Profile, networks: Sequence[Network], meter: Meter, sections: Sequence[Section | None]) -> Report:
    names = ", ".join(network.name or "a network" for network in networks)
    return Report(
        f"Energy of training {names}" if names else "Energy of training on this device",
        f"on {device_name(profile)}",
        origin(meter),
        facts(profile, meter),
        more_facts(profile),
        tuple(section for section in sections if section),
    )


def _expected_error(profile: Profile, estimator: Estimator) -> float | None:
    """Of whole networks, which is what estimates are made for; of all measurements where there are none."""
    found = left_out(profile, estimator)
    spots = found.get("network") or [spot for of_purpose in found.values() for spot in of_purpose]
    return mean(abs(s.estimated / s.measured - 1) for s in spots) if spots else None
