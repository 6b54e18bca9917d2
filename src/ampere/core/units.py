"""Numbers as people read them: three digits and a unit that fits."""

from __future__ import annotations

PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
JOULES_PER_WATT_HOUR = 3600.0
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


def joules(value: float) -> str:
    scale, unit = joules_unit(value)
    return f"{three(value / scale)} {unit}"


def joules_unit(value: float) -> tuple[float, str]:
    """The unit in which a value has one to three digits before its point."""
    for scale, prefix in PREFIXES:
        if abs(value) >= scale:
            return scale, f"{prefix}J"
    return (1.0, "J") if value == 0 else (1e-9, "nJ")


def three(value: float) -> str:
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def significant(value: float) -> str:
    """Three digits, wherever the point is: for columns that share a unit."""
    return "0" if value == 0 else f"{value:#.3g}".rstrip(".")


def seconds(value: float) -> str:
    if value >= 2 * DAY:
        return f"{three(value / DAY)} days"
    if value >= 2 * HOUR:
        return f"{three(value / HOUR)} h"
    if value >= 3 * MINUTE:
        return f"{three(value / MINUTE)} min"
    scale, unit = (1.0, "s") if value >= 1 else (1e-3, "ms") if value >= 1e-3 else (1e-6, "µs")
    return f"{three(value / scale)} {unit}"


def percent(share: float) -> str:
    value = 100 * share
    return f"{value:.0f} %" if value >= 10 else f"{value:.1f} %" if value >= 0.1 or value == 0 else f"{value:.2g} %"


def signed_percent(share: float) -> str:
    """A difference: its sign says which way."""
    return f"{100 * share:+.1f} %"


def watt_hours(value: float) -> str:
    hours = value / JOULES_PER_WATT_HOUR
    return f"{three(hours)} Wh" if hours >= 1 else f"{significant(1e3 * hours)} mWh"


def number(value: float) -> str:
    """Large counts, such as FLOPs and parameters."""
    for scale, prefix in PREFIXES[:3]:
        if value >= scale:
            return f"{three(value / scale)} {prefix}"
    return f"{value:,.0f}"


def flops(value: float) -> str:
    return f"{number(value)}FLOP" if value >= PREFIXES[2][0] else f"{number(value)} FLOP"
