"""Where joules come from, in a word, in a sentence, and beneath every chart."""

from __future__ import annotations

from ampere.core import Meter


def origin(meter: Meter) -> str:
    sort = "simulated" if meter.simulated else "measured" if meter.measured else "modelled"
    return f"replayed {sort}" if meter.replayed else sort


def sentence(meter: Meter) -> str:
    how = "measured by"
    if not meter.measured:
        how = "modelled, not measured, by"
    if meter.simulated:
        how = "simulated, not measured on any device, by"
    again = "replayed from a recording, not read now: " if meter.replayed else ""
    scope = f": {meter.scope}" if meter.scope else ""
    return f"{again}{how} {meter.name}{scope}"


def beneath(meter: Meter) -> str:
    """Short enough to stand under every chart."""
    scope = f", {meter.scope}" if meter.scope else ""
    return f"{origin(meter).capitalize()} joules ({meter.name}{scope})."
