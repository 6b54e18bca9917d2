"""Profile, networks and a validation -> what the report says, in the order in which people ask."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from ampere.estimation import Estimator
from ampere.network import Network
from ampere.profiles.profile import Profile

from .accuracy import accuracy_section, left_out
from .device_part import cost_section, device_name, facts, flags_section, more_facts
from .layers import kind_colours
from .methods import methods_section
from .model_part import Run, model_section
from .models_part import side_by_side
from .origin import origin
from .record import Report, Section
from .surfaces import surfaces_section
from .validation_file import Validated


def make_report(
    profile: Profile,
    networks: Sequence[Network],
    runs: Sequence[Run],
    validated: Validated | None = None,
    allocator: str = "system",
    watts_per_core: float | None = None,
) -> Report:
    """One run for each network."""
    estimator = Estimator(profile, watts_per_core)
    estimates = [estimator.estimate(network, allocator) for network in networks]
    colours = kind_colours(estimates)
    sections: list[Section | None] = [side_by_side(estimates)] if len(estimates) > 1 else []
    sections += [
        model_section(f"model-{i}", network, estimate, estimator, run, colours)
        for i, (network, estimate, run) in enumerate(zip(networks, estimates, runs, strict=True), 1)
    ]
    sections.append(surfaces_section(profile, estimator))
    sections.append(accuracy_section(profile, estimator, validated))
    sections.append(methods_section(validated) if validated else None)
    sections.append(cost_section(profile, _expected_error(profile, estimator)))
    sections.append(flags_section(profile))
    names = ", ".join(network.name or "a network" for network in networks)
    return Report(
        f"Energy of training {names}" if names else "Energy of training on this device",
        f"on {device_name(profile)}",
        origin(estimator.meter),
        facts(profile, estimator),
        more_facts(profile),
        tuple(section for section in sections if section),
    )


def _expected_error(profile: Profile, estimator: Estimator) -> float | None:
    """Of whole networks, which is what estimates are made for; of all measurements where there are none."""
    found = left_out(profile, estimator)
    spots = found.get("network") or [spot for of_purpose in found.values() for spot in of_purpose]
    return mean(abs(s.estimated / s.measured - 1) for s in spots) if spots else None
