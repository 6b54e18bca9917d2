"""Numbers with units, as people read them (three digits and a unit that fits) and as people write them (`15 Wh`)."""

from __future__ import annotations

import math
import re

from .errors import UsageError

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


def significant(value: float, digits: int = 3) -> str:
    """So many digits, wherever the point is: for columns that share a unit."""
    rounded = float(f"{value:.{digits}g}")
    if abs(rounded) >= 10 ** (digits - 1):
        return f"{rounded:,.0f}"
    return "0" if value == 0 else f"{value:#.{digits}g}"


def seconds(value: float) -> str:
    if value >= 2 * DAY:
        return f"{three(value / DAY)} days"
    if value >= 2 * HOUR:
        return f"{three(value / HOUR)} h"
    if value >= 3 * MINUTE:
        return f"{three(value / MINUTE)} min"
    if value == 0:
        return "0 s"
    scale, unit = (1.0, "s") if value >= 1 else (1e-3, "ms") if value >= 1e-3 else (1e-6, "µs")
    return f"{three(value / scale)} {unit}"


def watts(value: float) -> str:
    return f"{three(value)} W" if value >= 1 else f"{significant(1e3 * value)} mW"


def percent(share: float) -> str:
    value = 100 * share
    return f"{value:.0f} %" if value >= 10 else f"{value:.1f} %" if value >= 0.1 or value == 0 else f"{value:.2g} %"


def counted(number: int, thing: str, things: str = "") -> str:
    """`1 layer`, `1,200 layers`; `things` is the plural where that is not an s more."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def signed_percent(share: float) -> str:
    """A difference: its sign says which way."""
    return f"{100 * share:+.1f} %"


def probability(value: float) -> str:
    """Never more certain than an estimate can be."""
    if value > 0.999 or value < 0.001:
        return "over 99.9 %" if value > 0.5 else "under 0.1 %"
    return f"{100 * value:.{1 if value > 0.99 or value < 0.01 else 0}f} %"


def watt_hours(value: float) -> str:
    hours = value / JOULES_PER_WATT_HOUR
    return f"{three(hours)} Wh" if hours >= 1 else f"{significant(1e3 * hours)} mWh"


def bytes(value: float) -> str:
    """`1.25 GB`: thousands, as memory and disks are sold."""
    for scale, prefix in PREFIXES[:3]:
        if value >= scale:
            return f"{three(value / scale)} {prefix}B"
    return f"{value:.0f} B"


def number(value: float) -> str:
    """Large counts, such as FLOPs and parameters."""
    for scale, prefix in PREFIXES[:3]:
        if value >= scale:
            return f"{three(value / scale)} {prefix}"
    return f"{value:,.0f}"


def flops(value: float) -> str:
    return f"{number(value)}FLOP" if value >= PREFIXES[2][0] else f"{number(value)} FLOP"


# What people write: a number, and a unit after it with or without a space.

ENERGY = {"J": 1.0, "mJ": 1e-3, "uJ": 1e-6, "µJ": 1e-6, "kJ": 1e3, "MJ": 1e6, "Wh": 3600.0, "mWh": 3.6, "kWh": 3.6e6}
POWER = {"W": 1.0, "mW": 1e-3, "kW": 1e3}
TIME = {"s": 1.0, "ms": 1e-3, "min": MINUTE, "h": HOUR}
MEMORY = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
CHARGE = {"mAh": 3.6, "Ah": 3600.0}  # in ampere seconds
_QUANTITY = re.compile(r"(?P<number>[-+]?[0-9._]*[0-9.](?:[eE][-+]?[0-9]+)?)\s*(?P<unit>[a-zA-Zµ]*)")


def parse_energy(text: str, what: str = "battery") -> float:
    """Joules of `15Wh`, `54 kJ` or `5000mAh@3.85V`; `what` names the amount in an error message."""
    charge, at, volts = text.partition("@")
    number, unit = _quantity(charge)
    if _spelled(unit, CHARGE):
        return _parse_charge(text, number, CHARGE[_spelled(unit, CHARGE)], volts)
    if unit in POWER:
        raise UsageError(
            f"{what} {text!r} is a power, not an amount of energy: write {text.strip()}h, or joules as 54kJ"
        )
    known = _spelled(unit, ENERGY)
    if at or not known or not number > 0:
        raise UsageError(f"{what} {text!r} is not a positive amount of energy: write 15Wh, 54kJ or 5000mAh@3.85V")
    return number * ENERGY[known]


def _parse_charge(text: str, number: float, seconds: float, volts: str) -> float:
    """Joules of a charge, which needs the voltage at which it is given off."""
    volt, unit = _quantity(volts)
    if not (volt > 0 and unit in ("V", "v")):
        charge = text.partition("@")[0].strip()
        raise UsageError(f"{charge} is a charge, and needs the battery's voltage to be energy: write {charge}@3.85V")
    if not number > 0:
        raise UsageError(f"{text!r} is not a positive charge: write 5000mAh@3.85V")
    return number * seconds * volt


def parse_power(text: str) -> float:
    """Watts of `8W`, `500 mW` or a bare `8`."""
    number, unit = _quantity(text)
    if _spelled(unit, ENERGY):
        raise UsageError(f"{text!r} is an amount of energy, not a power: write it in watts, such as 8W")
    known = _spelled(unit, POWER) if unit else "W"
    if not known or not number > 0:
        raise UsageError(f"{text!r} is not a positive number of watts, such as 5")
    return number * POWER[known]


def parse_memory(text: str) -> float:
    """Bytes of `4GB`, `512 MiB` or `1.5e9B`."""
    number, unit = _quantity(text)
    known = _spelled(unit, MEMORY)
    if not known or not number > 0:
        raise UsageError(f"{text!r} is not a positive amount of memory: write 4GB, 512MB or 2GiB")
    return number * MEMORY[known]


def parse_seconds(text: str) -> float:
    """Seconds of `15`, `15s`, `2min` or `1h`."""
    number, unit = _quantity(text)
    known = _spelled(unit, TIME) if unit else "s"
    if not known or not number > 0:
        raise UsageError(f"{text!r} is not a positive number of seconds, such as 15")
    return number * TIME[known]


def _quantity(text: str) -> tuple[float, str]:
    """A number and its unit; nan where the text is something else."""
    match = _QUANTITY.fullmatch(text.strip())
    try:
        number = float(match["number"]) if match else math.nan
    except ValueError:
        number = math.nan
    return (number if math.isfinite(number) else math.nan), match["unit"] if match else ""


def _spelled(unit: str, known: dict[str, float]) -> str:
    """The unit as it is spelled here; its case only matters between `mJ` and `MJ`. "" where it is not known."""
    alike = [name for name in known if name.lower() == unit.lower()]
    return unit if unit in known else alike[0] if len(alike) == 1 else ""
