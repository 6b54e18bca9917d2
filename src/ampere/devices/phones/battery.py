"""What a phone says of its battery, as text: watts, or why they tell nothing.

dumpsys battery         AC powered: false    USB powered: true    status: 2    voltage: 4012 (mV)
current_now: -412345    of sysfs, uA or mA as the driver likes; a shell may not read it on every phone
"""

from __future__ import annotations

from ampere.errors import MeterError
from ampere.worker.meters.battery import Driver

FOLDER = "/sys/class/power_supply/battery"
COMMAND = "dumpsys battery; " + "; ".join(
    f"echo {file}: $(cat {FOLDER}/{file} 2>/dev/null)" for file in ("current_now", "voltage_now")
)
FEEDERS = ("AC", "USB", "Wireless", "Dock")
DISCHARGING, STATUSES = "3", {"1": "unknown", "2": "charging", "4": "not charging", "5": "full"}
SET_BY_HAND = "UPDATES STOPPED"  # with `dumpsys battery unplug`, which leaves the charger on
CURRENTS, VOLTAGES = ("current_now", "current now"), ("voltage_now", "voltage")


def watts_in(text: str, driver: Driver) -> float:
    said = dict(_pairs(text))
    refuse_unless_discharging(said)
    current, voltage = _first(said, CURRENTS), _first(said, VOLTAGES)
    if current is None or voltage is None:
        raise MeterError("the phone tells no current of its battery over adb: take a meter on the bench")
    return driver.watts(abs(current), abs(voltage))


def refuse_unless_discharging(said: dict[str, str]) -> None:
    if any(SET_BY_HAND in name for name in said):
        raise MeterError("what the phone says of its charger was set by hand: adb shell dumpsys battery reset")
    feeders = [name for name in FEEDERS if said.get(f"{name} powered") == "true"]
    if feeders:
        raise MeterError(
            f"the phone is charged ({feeders[0]}), so its battery tells nothing of what it draws: pull the cable and "
            "reach it over Wi-Fi (adb tcpip 5555, then adb connect PHONE:5555)"
        )
    status = said.get("status", "")
    if status != DISCHARGING:
        raise MeterError(
            f"the phone's battery says it is {STATUSES.get(status, 'nothing')}, not discharging: unplug it"
        )


def _pairs(text: str) -> list[tuple[str, str]]:
    cut = (line.partition(":") for line in text.splitlines())
    return [(name.strip(), value.strip()) for name, _, value in cut]


def _first(said: dict[str, str], names: tuple[str, ...]) -> int | None:
    numbers = (said[name] for name in names if name in said)
    return next((int(text) for text in numbers if text.lstrip("-").isdigit()), None)
