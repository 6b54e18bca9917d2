"""Where joules come from, in words."""

from __future__ import annotations

from dataclasses import replace

from ampere.core import Meter
from ampere.meters import DEFAULT_WATTS_PER_CORE, watts_in

DEFAULT = "the default, between a phone's big core (2-4 W) and a server's (5-10 W)"


def in_words(meter: Meter) -> str:
    if meter.replayed:
        return f"replayed from a recording, not read now: {in_words(replace(meter, replayed=False))}"
    if meter.simulated:
        return f"simulated, not measured: {meter.name}, {meter.scope}"
    if meter.measured:
        return f"measured by {meter.name}, {meter.scope}"
    watts = watts_in(meter.scope)
    if watts is None:
        return f"modelled by {meter.name}, not measured: {meter.scope}"
    whose = DEFAULT if watts == DEFAULT_WATTS_PER_CORE else "as given"
    model = f"{meter.name}: modelled, not measured, as CPU seconds x {meter.scope}"
    return f"{model}. {watts:g} W is {whose}; --watts-per-core changes it"


def label(meter: Meter) -> str:
    sort = "simulated " if meter.simulated else "" if meter.measured else "modelled "
    return f"{'replayed ' if meter.replayed else ''}{sort}joules"
