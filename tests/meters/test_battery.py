"""Batteries: signs and units as drivers like them, and no joules while something else feeds the device."""

import pytest
from tests.sysfs_tree import add_battery, put

from ampere.core.errors import WorkerError
from ampere.meters import battery


def test_a_quiet_moment_after_a_load_keeps_the_unit(tmp_path):
    folder = add_battery(tmp_path, current_now=900_000, voltage_now=4_000_000)
    meter = battery.find(str(tmp_path))
    assert meter.reading() == pytest.approx(3.6)
    put(folder / "current_now", 15_000)
    assert meter.reading() == pytest.approx(0.06)


def test_power_is_taken_before_current(tmp_path):
    add_battery(tmp_path, power_now=7_000_000, current_now=1, voltage_now=1)
    assert battery.find(str(tmp_path)).reading() == pytest.approx(7.0)


def test_two_batteries_are_added_and_a_mouse_is_not(tmp_path):
    add_battery(tmp_path, power_now=7_000_000)
    for name, watts in (("BAT1", 2), ("hid-mouse", 1)):
        folder = tmp_path / "class/power_supply" / name
        for file, value in {"type": "Battery", "status": "Discharging", "power_now": watts * 10**6}.items():
            put(folder / file, value)
    put(tmp_path / "class/power_supply/hid-mouse/scope", "Device")
    meter = battery.find(str(tmp_path))
    assert meter.reading() == pytest.approx(9.0)
    assert meter.describe()["scope"] == "the whole device, from BAT0 + BAT1"


@pytest.mark.parametrize("online", [1, 2])
def test_a_supply_is_online_also_where_its_voltage_can_be_set(tmp_path, online):
    add_battery(tmp_path, power_now=7_000_000)
    put(tmp_path / "class/power_supply/ucsi/type", "USB")
    put(tmp_path / "class/power_supply/ucsi/online", online)
    with pytest.raises(WorkerError, match="ucsi powers the device"):
        battery.find(str(tmp_path))


@pytest.mark.parametrize("status", ["Charging", "Full", "Not charging", "Unknown"])
def test_a_battery_that_does_not_discharge_is_refused(tmp_path, status):
    add_battery(tmp_path, status, power_now=7_000_000)
    with pytest.raises(WorkerError, match=f"is {status}, not Discharging"):
        battery.find(str(tmp_path))


def test_where_only_the_energy_left_is_reported_it_is_counted(tmp_path):
    folder = add_battery(tmp_path, energy_now=50_000_000)
    meter = battery.find(str(tmp_path))
    meter.start()
    put(folder / "energy_now", 49_990_000)
    assert meter.stop() == pytest.approx(36.0)
    put(folder / "energy_now", 49_995_000)
    meter.start()
    put(folder / "energy_now", 50_000_000)
    with pytest.raises(WorkerError, match="holds more energy than before"):
        meter.stop()


def test_a_battery_that_reports_nothing_is_refused(tmp_path):
    add_battery(tmp_path, capacity=80)
    with pytest.raises(WorkerError, match="reports neither"):
        battery.find(str(tmp_path))
