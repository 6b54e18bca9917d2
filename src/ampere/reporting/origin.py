"""Where joules come from, in a word, in a sentence, and beneath every chart."""

from __future__ import annotations

from ampere.network import Meter


def origin(meter: Meter) -> str:
    if getattr(meter, "simulated", False):
        return "simulated"
    return "measured" if meter.measured else "modelled"


def sentence(meter: Meter) -> str:
    how = {
        "measured": f"measured by {meter.name}",
        "modelled": f"modelled, not measured, by {meter.name}",
        "simulated": f"simulated, not measured on any device, by {meter.name}",
    }[origin(meter)]
    return f"{how}: {meter.scope}" if meter.scope else how


def beneath(meter: Meter) -> str:
    """Short enough to stand under every chart."""
    scope = f", {meter.scope}" if meter.scope else ""
    return f"{origin(meter).capitalize()} joules ({meter.name}{scope})."
