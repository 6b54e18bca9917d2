"""The state of the machine around a measurement: temperature, clock, load, power source, time asleep."""

import os
import time
from pathlib import Path
from typing import Dict, List, Optional

from . import nvml
from .selection import sysfs
from .sensors import folders_in, text_if_there

SLEPT_SECONDS = 1.0  # a block during which the machine slept longer is not a measurement


def conditions() -> Dict[str, float]:
    """What can be read of load, cores, temperature, clock and battery."""
    found: Dict[str, Optional[float]] = {
        "load_1min": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "cores": float(os.cpu_count() or 1),
        "celsius": _most(_numbers("class/thermal", "thermal_zone", "temp", 1e-3)),
        "clock_mhz": _mean(_numbers("devices/system/cpu/cpufreq", "policy", "scaling_cur_freq", 1e-3)),
        "battery_percent": _mean(_numbers("class/power_supply", "", "capacity")),
    }
    return {**{name: value for name, value in found.items() if value is not None}, **nvml.conditions()}


def governor() -> Optional[str]:
    """The governor that chooses the clock; several where kinds of cores differ, None where unknown."""
    policies = folders_in(Path(sysfs()) / "devices" / "system" / "cpu" / "cpufreq")
    named = {_text(policy / "scaling_governor") for policy in policies}
    return " + ".join(sorted(name for name in named if name)) or None


def power_source() -> Optional[str]:
    """`mains` or `battery`; None where the system does not report it."""
    supplies = folders_in(Path(sysfs()) / "class" / "power_supply")
    own = [path for path in supplies if _text(path / "scope") != "Device"]
    if any(_text(path / "online") not in (None, "0") and _text(path / "type") != "Battery" for path in own):
        return "mains"
    return "battery" if any(_text(path / "type") == "Battery" for path in own) else None


def slept_seconds() -> float:
    """Seconds asleep since the machine was started; 0 where the system does not report it."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


def _numbers(place: str, prefix: str, file: str, scale: float = 1.0) -> List[float]:
    folders = [path for path in folders_in(Path(sysfs()) / place) if path.name.startswith(prefix)]
    texts = [_text(path / file) for path in folders]
    return [int(text) * scale for text in texts if text and text.lstrip("-").isdigit()]


def _text(path: Path) -> Optional[str]:
    """The text of a file; None also where it may not be read, since nothing here is worth an error."""
    try:
        return text_if_there(path)
    except Exception:
        return None


def _mean(values: List[float]) -> Optional[float]:
    return sum(values) / len(values) if values else None


def _most(values: List[float]) -> Optional[float]:
    return max(values) if values else None
