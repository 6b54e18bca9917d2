"""Where joules come from, in words."""

from __future__ import annotations

from ampere.network import Meter
from ampere.worker.meters import DEFAULT_WATTS_PER_CORE, watts_in

DEFAULT = "the default, between a phone's big core (2-4 W) and a server's (5-10 W)"


def in_words(meter: Meter) -> str:
    if meter.measured:
        return f"measured by {meter.name}, {meter.scope}"
    watts = watts_in(meter.scope)
    if watts is None:
        return f"modelled by {meter.name}, not measured: {meter.scope}"
    whose = DEFAULT if watts == DEFAULT_WATTS_PER_CORE else "as given"
    model = f"{meter.name}: modelled, not measured, as CPU seconds x {meter.scope}"
    return f"{model}. {watts:g} W is {whose}; --watts-per-core changes it"


def label(meter: Meter) -> str:
    return "joules" if meter.measured else "modelled joules"
