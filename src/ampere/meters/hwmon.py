"""Power rails of a board: INA3221 on Jetson, other INA monitors, ACPI power meters.

    class/hwmon/hwmon3                          name: ina3221
      in1_label VDD_GPU_SOC   in1_input mV      curr1_input mA      (mainline drivers; JetPack 5 and later)
      in4..in6_input uV of the shunts, curr4_input mA of all three: not rails
      power1_input uW         power1_label
    bus/i2c/drivers/ina3221x/1-0040/iio:device0
      rail_name_0 VDD_IN      in_power0_input mW                    (JetPack 4)

A rail that feeds the whole board is read alone; without one, all rails are added.
"""

import re
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

from .sensors import SampledMeter, folders_in, has_data, number_in, text_if_there

NAME = "hwmon"
SAMPLES_IN_WINDOW = 60
CHIPS = re.compile(r"ina(2\d\d|3221)$|power_meter$")
RAILS_OF_INA3221 = (1, 2, 3)
WHOLE_BOARD = ("VDD_IN", "POM_5V_IN", "VIN_SYS")


class Rail(NamedTuple):
    label: str
    watts: Callable[[], float]


class HwmonMeter(SampledMeter):
    """Samples the power of a board's rails."""

    update_seconds = 0.05

    def __init__(self, rails: List[Rail]) -> None:
        super().__init__(self.update_seconds)
        whole = [rail for rail in rails if rail.label in WHOLE_BOARD]
        self._rails = whole[:1] or rails

    def describe(self) -> Dict[str, Any]:
        scope = " + ".join(rail.label for rail in self._rails)
        seconds = SAMPLES_IN_WINDOW * self.update_seconds
        described = {"name": NAME, "measured": True, "scope": scope, "window_seconds": seconds}
        return {**described, "update_seconds": self.update_seconds}

    def reading(self) -> float:
        return sum(rail.watts() for rail in self._rails)


def find(root: str) -> Optional[HwmonMeter]:
    """The meter of this board's power rails; None where it has no known sensor."""
    rails: List[Rail] = []
    for chip in folders_in(Path(root) / "class" / "hwmon"):
        if CHIPS.match(text_if_there(chip / "name") or ""):
            rails += _rails_of(chip)
    for bus in folders_in(Path(root) / "bus" / "i2c" / "drivers" / "ina3221x"):
        for chip in folders_in(bus):
            rails += _rails_of_jetpack_4(chip)
    return HwmonMeter(rails) if rails else None


def _rails_of(chip: Path) -> Iterator[Rail]:
    """Rails of a chip: channels that report power, or else those with a voltage and a current."""
    named, three = chip.name, text_if_there(chip / "name") == "ina3221"
    powers = _channels(chip, r"power(\d+)_(input|average)$")
    for number, path in powers.items():
        label = text_if_there(chip / f"power{number}_label")
        yield Rail(label or f"{named} power{number}", _scaled(path, 1e-6))
    if powers:
        return
    currents = _channels(chip, r"curr(\d+)_input$")
    for number, volts in _channels(chip, r"in(\d+)_input$").items():
        if number not in currents or (three and number not in RAILS_OF_INA3221):
            continue
        if text_if_there(chip / f"in{number}_enable") != "0" and has_data(volts) and has_data(currents[number]):
            label = text_if_there(chip / f"in{number}_label")
            yield Rail(label or f"{named} rail {number}", _product(volts, currents[number]))


def _rails_of_jetpack_4(chip: Path) -> Iterator[Rail]:
    for number, path in _channels(chip, r"in_power(\d+)_input$").items():
        label = text_if_there(chip / f"rail_name_{number}")
        yield Rail(label or f"{chip.name} rail {number}", _scaled(path, 1e-3))


def _channels(chip: Path, pattern: str) -> Dict[int, Path]:
    found = ((re.match(pattern, path.name), path) for path in folders_in(chip))
    return {int(match.group(1)): path for match, path in found if match}


def _scaled(path: Path, watts: float) -> Callable[[], float]:
    return lambda: number_in(path) * watts


def _product(millivolts: Path, milliamperes: Path) -> Callable[[], float]:
    return lambda: number_in(millivolts) * number_in(milliamperes) * 1e-6
