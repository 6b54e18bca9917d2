"""Watts of a busy core: calibrated, published, or a default."""

import csv
from importlib.resources import files

import pytest
from tests.sysfs_tree import add_battery

from ampere.core import Meter
from ampere.core.errors import MeterError, ProfileError, UsageError
from ampere.devices.calibrating import from_battery, from_readings
from ampere.devices.core_watts import core_watts, of_profile, published, save_calibration
from ampere.storage.places import calibration_path

DEVICE = {"id": "a-laptop", "cpu": "Intel(R) Core(TM) i7-8565U CPU @ 1.80GHz", "cores": 8}
MODELLED = Meter("cpu-time", False, "5 W per busy core")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("AMPERE_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize(
    ("name", "watts"),
    [
        (DEVICE["cpu"], 3.75),
        ("AMD Ryzen 7 5800X 8-Core Processor", 105 / 8),
        ("AMD Ryzen 7 5800X3D 8-Core Processor", 105 / 8),
        ("AMD EPYC 7763 64-Core Processor", 4.38),
        ("Intel(R) Xeon(R) CPU E5-2686 v4 @ 2.30GHz", 8.06),
        ("Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", 7.5),
        ("Intel(R) Xeon(R) Platinum 8480+", 6.25),
        ("12th Gen Intel(R) Core(TM) i7-12700K", 10.42),
        ("AMD Ryzen 7 5700U with Radeon Graphics", 1.88),
        ("Intel(R) N100", 1.5),
    ],
)
def test_names_as_systems_give_them_are_found_in_the_table(name, watts):
    assert published(name).watts == pytest.approx(watts, abs=0.01)
    assert published(name).factor == 2


@pytest.mark.parametrize("name", ["Intel(R) Xeon(R) Processor", "", "Cortex-A76", "Intel(R) Core(TM) i7-8565UX"])
def test_a_cpu_that_is_not_in_the_table_gets_the_default_and_says_so(name):
    assert published(name) is None
    known = core_watts({"id": "other", "cpu": name})
    assert (known.watts, known.factor) == (5.0, 2.0)
    assert "default" in known.origin


def test_each_row_of_the_table_is_possible_and_names_its_source():
    rows = list(csv.DictReader(files("ampere.devices").joinpath("cpu_power.csv").read_text().splitlines()))
    assert len({row["model"] for row in rows}) == len(rows) > 150
    for row in rows:
        assert 1 <= float(row["tdp_watts"]) / int(row["cores"]) <= 30, row
        assert row["source"]


def test_a_calibration_is_kept_with_the_device_and_counts_more_than_the_table():
    path = save_calibration(DEVICE, from_readings("12W", "31W", 4))
    assert path == calibration_path(DEVICE)
    known = core_watts(DEVICE)
    assert known.watts == pytest.approx(19 / 4)
    assert known.factor == pytest.approx(19 / 18)
    assert known.watts_idle == 12
    assert "calibrated" in known.origin
    assert core_watts({**DEVICE, "id": "another"}).watts == 3.75


def test_more_digits_leave_less_open():
    assert from_readings("12.0W", "31.0W", 4).factor < from_readings("12W", "31W", 4).factor < 1.06


@pytest.mark.parametrize(("idle", "busy"), [("31W", "12W"), ("12W", "12W"), ("12W", "13W")])
def test_readings_that_do_not_differ_clearly_are_refused(idle, busy):
    with pytest.raises(UsageError, match="read"):
        from_readings(idle, busy, 4)


def test_a_damaged_calibration_is_one_line():
    path = save_calibration(DEVICE, from_readings("12W", "31W", 4))
    path.write_text(path.read_text().replace("31", "13"))
    with pytest.raises(ProfileError, match=str(path)):
        core_watts(DEVICE)


def test_only_modelled_joules_of_the_default_watts_are_replaced():
    assert of_profile(DEVICE, MODELLED).watts == 3.75
    assert of_profile(DEVICE, Meter("cpu-time", False, "7 W per busy core")) is None
    assert of_profile(DEVICE, Meter("powercap", True, "the package")) is None


def test_a_battery_is_read_at_rest_and_under_load(tmp_path, monkeypatch):
    folder = add_battery(tmp_path, power_now=6_000_000)
    monkeypatch.setenv("AMPERE_SYSFS", str(tmp_path))
    monkeypatch.setattr("ampere.meters.battery.BatteryMeter.update_seconds", 0.02)
    gauge = folder / "power_now"  # read once a window: how long a busy machine takes for one is not what is tested
    monkeypatch.setattr("ampere.devices.calibrating._watts", lambda meter, seconds: int(gauge.read_text()) / 1e6)

    def shown(what):
        gauge.write_text("6000000" if "rest" in what else "16000000")

    known = from_battery(0.4, 1, shown)
    assert known.watts == pytest.approx(10, rel=0.01)
    assert known.factor == pytest.approx(1.02, abs=0.01)


def test_a_device_that_is_plugged_in_or_has_no_battery_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("AMPERE_SYSFS", str(tmp_path))
    with pytest.raises(MeterError, match="--idle 12W --busy 31W"):
        from_battery(0.4, 1)
    add_battery(tmp_path, status="Charging", power_now=6_000_000)
    with pytest.raises(MeterError, match="unplug"):
        from_battery(0.4, 1)
