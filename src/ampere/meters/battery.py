"""The battery as the meter of the whole device, as long as nothing charges it.

class/power_supply/BAT0   type Battery   status Discharging
    power_now uW                                  used first
    current_now uA or mA x voltage_now uV or mV   else; drivers disagree on units, and on the sign of discharging
    energy_now uWh                                else: a counter, in coarse steps
class/power_supply/AC     type Mains     online 1, or 2 of a programmable supply: the battery does not feed the device
"""

from pathlib import Path
from typing import Any, Dict, List, Optional

from .meter import meter_failed
from .sensors import SampledMeter, folders_in, number_in, text_if_there, text_in

NAME = "battery"
SAMPLES_IN_WINDOW, UPDATES_IN_WINDOW = 60, 100
LEAST_UA = 20000  # no device trains on less than 20 mA, and none on more than 20 A: so uA and mA cannot be confused
LEAST_UV = 100000  # likewise between 100 V in mV and 0.1 V in uV
JOULES_PER_UWH = 3.6e-3


class Driver:
    """Converts what one battery driver reports to watts; drivers use uA or mA."""

    def __init__(self) -> None:
        self._in_microamperes = False  # True as soon as one reading proves it

    def watts(self, current: int, voltage: int) -> float:
        self._in_microamperes = self._in_microamperes or current >= LEAST_UA
        amperes = current * (1e-6 if self._in_microamperes else 1e-3)
        return amperes * voltage * (1e-6 if voltage >= LEAST_UV else 1e-3)


class Cell:
    """One battery of this device."""

    def __init__(self, path: Path) -> None:
        self.path, self._driver = path, Driver()

    def has(self, *files: str) -> bool:
        return all((self.path / file).exists() for file in files)

    def watts(self) -> float:
        if self.has("power_now"):
            return abs(self.number("power_now")) * 1e-6
        return self._driver.watts(abs(self.number("current_now")), abs(self.number("voltage_now")))

    def number(self, file: str) -> int:
        return number_in(self.path / file)


class BatteryMeter(SampledMeter):
    """Samples the power that batteries deliver."""

    update_seconds = 1.0

    def __init__(self, root: str, cells: List[Cell]) -> None:
        super().__init__(self.update_seconds / 4)
        self._root, self._cells = root, cells
        self.reading()

    def describe(self) -> Dict[str, Any]:
        described = _described(self._cells, SAMPLES_IN_WINDOW * self.update_seconds)
        return {**described, "update_seconds": self.update_seconds}

    def reading(self) -> float:
        refuse_unless_discharging(self._root, self._cells)
        return sum(cell.watts() for cell in self._cells)


class CoarseBatteryMeter:
    """Reads the energy left in batteries that do not report power: a window is the difference."""

    update_seconds = 4.0  # 10 mWh at 9 W
    reading_unit = "J"

    def __init__(self, root: str, cells: List[Cell]) -> None:
        self._root, self._cells = root, cells
        self._before = self.reading()

    def describe(self) -> Dict[str, Any]:
        return _described(self._cells, UPDATES_IN_WINDOW * self.update_seconds)

    def start(self) -> None:
        self._before = self.reading()

    def stop(self) -> float:
        joules = self.reading() - self._before
        if joules < 0:
            raise meter_failed("the battery holds more energy than before: it was charged or calibrated; measure again")
        return joules

    def reading(self) -> float:
        """The energy left, as a negative number that grows towards 0."""
        refuse_unless_discharging(self._root, self._cells)
        return -sum(cell.number("energy_now") for cell in self._cells) * JOULES_PER_UWH


def find(root: str) -> "Optional[BatteryMeter | CoarseBatteryMeter]":
    """The meter of this device's batteries; None where there are none."""
    cells = [Cell(path) for path in _supplies(root, "Battery")]
    if not cells:
        return None
    if all(cell.has("power_now") or cell.has("current_now", "voltage_now") for cell in cells):
        return BatteryMeter(root, cells)
    if all(cell.has("energy_now") for cell in cells):
        return CoarseBatteryMeter(root, cells)
    raise meter_failed(f"{cells[0].path} reports neither power nor current nor energy: use another meter")


def refuse_unless_discharging(root: str, cells: List[Cell]) -> None:
    """Raise unless batteries alone feed the device. Checked at every sample: a plug may go in during a window."""
    for path in folders_in(Path(root) / "class" / "power_supply"):
        if text_if_there(path / "online") not in (None, "0") and text_in(path / "type") != "Battery":
            raise meter_failed(f"{path.name} powers the device instead of the battery: unplug it")
    for cell in cells:
        status = text_if_there(cell.path / "status")
        if status != "Discharging":
            name = cell.path.name
            raise meter_failed(
                f"the status of battery {name} is {status or 'missing'}, not Discharging: unplug the device"
            )


def _supplies(root: str, kind: str) -> List[Path]:
    """Power supplies of this device, without those of a mouse or headset, whose scope is Device."""
    paths = folders_in(Path(root) / "class" / "power_supply")
    own = [path for path in paths if text_if_there(path / "scope") != "Device"]
    return [path for path in own if text_if_there(path / "type") == kind]


def _described(cells: List[Cell], window_seconds: float) -> Dict[str, Any]:
    scope = "the whole device, from " + " + ".join(cell.path.name for cell in cells)
    return {"name": NAME, "measured": True, "scope": scope, "window_seconds": window_seconds}
