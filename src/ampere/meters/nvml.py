"""The energy counter of NVIDIA cards, read through NVML, the library of their driver.

A card is found by its UUID: CUDA numbers the cards that CUDA_VISIBLE_DEVICES leaves, NVML numbers all of them.

    energy counter   mJ since the driver was loaded (Volta and later); moves every 20 to 100 ms
    power            mW, where there is no counter; the average of a second on some cards, a sample on others

Some cards (A100, H100) look at their power a quarter of the time only. A window that always begins at the same moment
of that rhythm would always miss the same part, so each begins a little later in it than the one before.
"""

import contextlib
import importlib
import time
from typing import Any, Dict, List, Optional

from .meter import meter_failed
from .sensors import SampledMeter

NAME = "nvml"
LIBRARY = "pynvml"  # of the package nvidia-ml-py
UPDATE_SECONDS = 0.1
UPDATES_IN_WINDOW, SAMPLES_IN_WINDOW = 100, 60
GOLDEN = 0.618  # of an update, later each time: so many windows are spread evenly over it
JOULES_PER_MJ, WATTS_PER_MW = 1e-3, 1e-3

_card = ""  # the UUID of the card that trains; "" where none does
_shift = GOLDEN


def use_card(uuid: str, shifted: bool = True) -> None:
    """Read this card from now on, and no other; with windows `shifted`, or one after the other without a gap."""
    global _card, _shift
    _card, _shift = uuid, GOLDEN if shifted else 0.0


def card() -> str:
    return _card


class NvmlCounter:
    """Adds the energy counters of cards."""

    update_seconds = UPDATE_SECONDS
    reading_unit = "J"

    def __init__(self, library: Any, cards: List[Any], scope: str) -> None:
        self._library, self._cards, self._scope, self._shift = library, cards, scope, _shift
        self._before = self._read()

    def describe(self) -> Dict[str, Any]:
        seconds = UPDATES_IN_WINDOW * self.update_seconds
        return {"name": NAME, "measured": True, "scope": self._scope, "window_seconds": seconds}

    def start(self) -> None:
        time.sleep(self._shift * self.update_seconds)
        self._before = self._read()

    def stop(self) -> float:
        spent = [now - before for now, before in zip(self._read(), self._before)]
        if min(spent) < 0:
            raise meter_failed("the card's energy counter was reset: its driver was loaded again; measure again")
        return sum(spent) * JOULES_PER_MJ

    def reading(self) -> float:
        return sum(self._read()) * JOULES_PER_MJ

    def _read(self) -> List[float]:
        return [float(self._library.nvmlDeviceGetTotalEnergyConsumption(card)) for card in self._cards]


class NvmlPower(SampledMeter):
    """Samples the power of cards that count no energy."""

    update_seconds = UPDATE_SECONDS

    def __init__(self, library: Any, cards: List[Any], scope: str) -> None:
        super().__init__(self.update_seconds / 4)
        self._library, self._cards, self._scope = library, cards, scope
        self.reading()

    def describe(self) -> Dict[str, Any]:
        described = {"name": NAME, "measured": True, "scope": f"{self._scope}, from samples of its power"}
        return {
            **described,
            "window_seconds": SAMPLES_IN_WINDOW * self.update_seconds,
            "update_seconds": self.update_seconds,
        }

    def reading(self) -> float:
        return sum(self._library.nvmlDeviceGetPowerUsage(card) for card in self._cards) * WATTS_PER_MW


def find(root: str) -> "Optional[NvmlCounter | NvmlPower]":
    """The meter of the card that trains, or of all cards where none does; None where there is no NVIDIA card."""
    library = open_library()
    if library is None:
        return None
    cards = [handle_of(library, _card)] if _card else _all(library)
    if not cards:
        return None
    names = " + ".join(_text(library.nvmlDeviceGetName(each)) for each in cards)
    scope = f"{names}, {'the whole board' if len(cards) == 1 else 'whole boards'}"
    try:
        return NvmlCounter(library, cards, scope)
    except library.NVMLError:
        return NvmlPower(library, cards, scope)


def open_library() -> Any:
    """NVML's functions; None where its package or a driver is missing."""
    try:
        library = importlib.import_module(LIBRARY)
    except ImportError:
        return None
    try:
        library.nvmlInit()
    except library.NVMLError:
        return None
    return library


def handle_of(library: Any, uuid: str) -> Any:
    try:
        return library.nvmlDeviceGetHandleByUUID(uuid)
    except library.NVMLError:
        raise meter_failed(
            f"NVML knows no card {uuid:.60}: the card that trains cannot be metered; use another --meter"
        ) from None


def stated(uuid: str) -> Dict[str, Any]:
    """What NVML says of a card that decides costs: driver, power limit, clocks, compute mode."""
    library = open_library() if uuid else None
    if library is None:
        return {}
    found: Dict[str, Any] = {}
    with contextlib.suppress(library.NVMLError):
        handle = library.nvmlDeviceGetHandleByUUID(uuid)
        with contextlib.suppress(library.NVMLError):
            found["driver"] = _text(library.nvmlSystemGetDriverVersion())
        with contextlib.suppress(library.NVMLError):
            found["power_limit_watts"] = round(library.nvmlDeviceGetEnforcedPowerLimit(handle) * WATTS_PER_MW)
        with contextlib.suppress(library.NVMLError):
            found["most_clock_mhz"] = int(library.nvmlDeviceGetMaxClockInfo(handle, library.NVML_CLOCK_SM))
        with contextlib.suppress(library.NVMLError):
            found["compute_mode"] = int(library.nvmlDeviceGetComputeMode(handle))
    return found


def conditions() -> Dict[str, float]:
    """Temperature and clock of the card that trains; nothing where they cannot be read."""
    library = open_library() if _card else None
    if library is None:
        return {}
    found: Dict[str, float] = {}
    with contextlib.suppress(library.NVMLError):
        handle = library.nvmlDeviceGetHandleByUUID(_card)
        found["card_celsius"] = float(library.nvmlDeviceGetTemperature(handle, library.NVML_TEMPERATURE_GPU))
        found["card_clock_mhz"] = float(library.nvmlDeviceGetClockInfo(handle, library.NVML_CLOCK_SM))
    return found


def _all(library: Any) -> List[Any]:
    return [library.nvmlDeviceGetHandleByIndex(index) for index in range(library.nvmlDeviceGetCount())]


def _text(value: Any) -> str:
    """Older versions of the package answer in bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)
