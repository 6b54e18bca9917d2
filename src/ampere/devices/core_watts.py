"""Watts of a busy core, where joules are modelled: calibrated, from what is published of this CPU, or a default.

    calibration of this device  -->  CPU in the shipped table  -->  default
    (b - i) / n  as read             TDP / cores, a guess           5 W, a guess

i, b    watts of the whole device at rest, and with n busy cores

A guess is true within a factor of two either way; a calibration within what its readings leave open.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from ampere.core import Meter
from ampere.core.errors import ProfileError, StorageError, UsageError
from ampere.meters import CARD_SCOPE, DEFAULT_ORIGIN, DEFAULT_WATTS_PER_CORE, CpuTimeMeter, watts_in
from ampere.storage.files import read_document, write_document
from ampere.storage.places import calibration_path

KIND, FORMAT = "calibration", 1
GUESS_FACTOR = 2.0
MODELLED = Meter("cpu-time", False)
_NOISE = re.compile(
    r"\((?:r|tm|c)\)|\bcpu\b|\bprocessor\b|\b[0-9]+-core\b|@.*|\bwith\b.*|\b(?:intel|amd)\b", re.IGNORECASE
)


@dataclass(frozen=True)
class CoreWatts:
    """Watts of a busy core, and how far they can be relied on."""

    watts: float
    origin: str  # where the figure comes from, in words
    factor: float = GUESS_FACTOR  # the truth lies within this factor either way
    watts_idle: float | None = None  # of the whole device, where a calibration read it

    def meter(self, like: Meter = MODELLED) -> Meter:
        """A meter of modelled joules, with these watts."""
        scope = str(CpuTimeMeter(self.watts).describe()["scope"])
        return replace(like, scope=scope, origin=self.origin, factor=self.factor)


def core_watts(device: Mapping[str, Any]) -> CoreWatts:
    """What is known of a device's cores, by its identity."""
    with suppress(StorageError):  # without a home folder nothing was kept
        path = calibration_path(device)
        if path.exists():
            return _stored(path)
    return published(str(device.get("cpu", ""))) or CoreWatts(DEFAULT_WATTS_PER_CORE, DEFAULT_ORIGIN)


def of_profile(device: Mapping[str, Any], meter: Meter) -> CoreWatts | None:
    """What is known of the cores of a profile's device; None where its joules were read, or its watts named."""
    if meter.scope.endswith(CARD_SCOPE):
        return None
    if watts_in(meter.scope) != DEFAULT_WATTS_PER_CORE or meter.simulated or meter.measured:
        return None
    return core_watts(device)


# What is published.


def published(cpu: str) -> CoreWatts | None:
    """TDP over cores of the CPU with this name; None where the table does not have it."""
    words = _words(cpu)
    found = [(name, row) for name, row in _table().items() if f" {name} " in f" {words} "]
    if not found:
        return None
    row = max(found, key=lambda pair: len(pair[0]))[1]
    tdp, cores = float(row["tdp_watts"]), int(row["cores"])
    origin = f"a guess for {row['model']}: its TDP of {tdp:g} W over {cores} cores ({row['source']})"
    return CoreWatts(round(tdp / cores, 2), origin)


def _words(name: str) -> str:
    """A model's name as the table has it: `Intel(R) Core(TM) i7-8565U CPU @ 1.80GHz` is `core i7-8565u`."""
    return " ".join(_NOISE.sub(" ", name).lower().split())


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, str]]:
    text = files(__package__).joinpath("cpu_power.csv").read_text(encoding="utf-8")
    return {_words(row["model"]): row for row in csv.DictReader(text.splitlines())}


# Calibrations.


def calibrated(idle: float, busy: float, cores: int, uncertainty: float, how: str) -> CoreWatts:
    """From watts of the whole device at rest and with `cores` busy; `uncertainty` is that of their difference."""
    rise = busy - idle
    if not rise > 2 * uncertainty:
        raise UsageError(
            f"{busy:g} W under load and {idle:g} W at rest do not differ clearly: read again, with all cores busy"
        )
    origin = f"calibrated {how}: {busy:.4g} W with {cores} busy cores, {idle:.4g} W at rest"
    return CoreWatts(rise / cores, origin, rise / (rise - uncertainty), idle)


def save_calibration(device: Mapping[str, Any], known: CoreWatts) -> Path:
    path = calibration_path(device)
    write_document(path, KIND, FORMAT, asdict(known))
    return path


def _stored(path: Path) -> CoreWatts:
    record = read_document(path, KIND, FORMAT)
    try:
        idle = record["watts_idle"]
        known = CoreWatts(
            float(record["watts"]),
            str(record["origin"]),
            float(record["factor"]),
            None if idle is None else float(idle),
        )
    except (KeyError, TypeError, ValueError):
        known = CoreWatts(0.0, "")
    if not (0 < known.watts < 1e5 and 1 <= known.factor < 100):
        raise ProfileError(f"{path} holds no calibration: delete it, or calibrate again with `ampere calibrate`")
    return known
