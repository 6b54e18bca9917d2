"""RAPL through powercap: a processor's own count of its joules, package by package, and of its memory.

class/powercap/intel-rapl:0      name: package-0    energy_uj, counted up to max_energy_range_uj
               intel-rapl:0:0    name: core         a part of the package: not added
               intel-rapl:0:1    name: dram         not part of the package: added
               intel-rapl:1      name: psys         the platform around the packages: not added
"""

import re
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional

from .meter import meter_failed
from .sensors import folders_in, number_in, text_in

NAME = "powercap"
UPDATES_IN_WINDOW = 100
MOST_WATTS = 1000.0  # of one zone; a counter that seems to show more was reset
ZONE = re.compile(r"intel-rapl:\d+(:\d+)?$")  # also AMD's; intel-rapl-mmio counts the same joules again


class Zone(NamedTuple):
    label: str
    path: Path
    range_uj: int  # from here it begins at 0 again


class PowercapMeter:
    """Reads the energy counters of packages and their memory."""

    update_seconds = 0.001
    reading_unit = "J"

    def __init__(self, zones: List[Zone]) -> None:
        self._zones = zones
        self._began, self._before = 0.0, self._read()

    def describe(self) -> Dict[str, Any]:
        scope = " + ".join(zone.label for zone in self._zones)
        seconds = UPDATES_IN_WINDOW * self.update_seconds
        return {"name": NAME, "measured": True, "scope": scope, "window_seconds": seconds}

    def start(self) -> None:
        self._began, self._before = time.monotonic(), self._read()

    def stop(self) -> float:
        now, seconds = self._read(), time.monotonic() - self._began
        return sum(spent_uj(*counts, seconds) for counts in zip(self._zones, self._before, now)) * 1e-6

    def reading(self) -> float:
        return sum(self._read()) * 1e-6

    def _read(self) -> List[int]:
        return [number_in(zone.path / "energy_uj") for zone in self._zones]


def spent_uj(zone: Zone, before: int, now: int, seconds: float) -> int:
    """Microjoules between two readings. A counter that fell either overflowed once or was reset: its power decides."""
    if seconds * MOST_WATTS * 1e6 >= zone.range_uj:
        raise meter_failed(
            f"{zone.label} was not read for {seconds:.0f} s and may have overflowed twice: measure for less time"
        )
    spent = now - before if now >= before else now - before + zone.range_uj
    # The counter may be a few updates behind the clock.
    if not 0 <= spent <= MOST_WATTS * 1e6 * (seconds + 0.1):
        raise meter_failed(f"the counter of {zone.label} was reset from {before} to {now} uJ: measure again")
    return spent


def find(root: str) -> Optional[PowercapMeter]:
    """The meter of this machine's processor packages; None where powercap has none."""
    zones = [_zone(path) for path in folders_in(Path(root) / "class" / "powercap") if ZONE.match(path.name)]
    counted = [zone for zone in zones if zone]
    return PowercapMeter(counted) if counted else None


def _zone(path: Path) -> Optional[Zone]:
    name, label = text_in(path / "name"), ""
    if name.startswith("package"):
        label = name
    elif name == "dram":
        parent = path.with_name(path.name.rsplit(":", 1)[0])
        label = text_in(parent / "name") + " dram"
    return Zone(label, path, number_in(path / "max_energy_range_uj")) if label else None
