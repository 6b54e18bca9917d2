"""Meters: each reads, or models, the joules of a span of time. A new one is a file here, chosen in `choose_meter`."""

from typing import Any, Dict

from ..errors import bad_request
from .cpu_time import DEFAULT_WATTS_PER_CORE, CpuTimeMeter, watts_in
from .meter import Meter


def choose_meter(watts_per_core: float) -> Meter:
    """The best meter of this machine."""
    return CpuTimeMeter(watts_per_core)


def watts_of(request: Dict[str, Any]) -> float:
    try:
        watts = float(request.get("watts_per_core", DEFAULT_WATTS_PER_CORE))
    except (TypeError, ValueError):
        raise bad_request("watts_per_core is not a number") from None
    if not 0 < watts < 1e6:
        raise bad_request(f"watts_per_core is {watts}, but must be positive")
    return watts


__all__ = ["DEFAULT_WATTS_PER_CORE", "Meter", "choose_meter", "watts_in", "watts_of"]
