"""Meters: each reads, or models, the joules of a span of time. A new one is a file here and a line in `selection`."""

from typing import Any, Dict

from ampere.core.errors import bad_request

from .checking import at_rest
from .cpu_time import CARD_SCOPE, DEFAULT_ORIGIN, DEFAULT_WATTS_PER_CORE, CpuTimeMeter, scope_at, watts_in
from .device_time import DeviceTimeMeter
from .external import load
from .meter import METER_FAILED, Meter, meter_failed
from .selection import choose_meter, counters, meter_asked_for, unusable_counters, use_card, use_meter


def watts_of(request: Dict[str, Any]) -> float:
    """The watts of a busy core that a request asks for, or the default."""
    watts = request.get("watts_per_core", DEFAULT_WATTS_PER_CORE)
    if type(watts) not in (int, float) or not 0 < watts < 1e6:
        raise bad_request(f"watts_per_core is {watts!r:.60}, but must be a number greater than 0")
    return float(watts)


__all__ = [
    "CARD_SCOPE",
    "DEFAULT_ORIGIN",
    "DEFAULT_WATTS_PER_CORE",
    "METER_FAILED",
    "CpuTimeMeter",
    "DeviceTimeMeter",
    "Meter",
    "at_rest",
    "choose_meter",
    "counters",
    "load",
    "meter_asked_for",
    "meter_failed",
    "scope_at",
    "unusable_counters",
    "use_card",
    "use_meter",
    "watts_in",
    "watts_of",
]
