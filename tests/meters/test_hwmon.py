"""Rails of a board: which are added, in which units, and what happens when one disappears."""

import errno
import time
from pathlib import Path

import pytest
from tests.sysfs_tree import add_rail, put

from ampere.core.errors import WorkerError
from ampere.meters import hwmon


def watts_of(root):
    return hwmon.find(str(root)).reading()


def add_shunts(chip):
    """What the kernel's driver of the INA3221 shows besides its three rails."""
    for number in (4, 5, 6):
        put(chip / f"in{number}_input", 40)  # uV of a shunt
    put(chip / "in7_label", "sum of shunt voltages")
    put(chip / "in7_input", 3)
    put(chip / "curr4_input", 150)  # the sum of the three


def scope_of(root):
    return hwmon.find(str(root)).describe()["scope"]


def test_a_rail_that_feeds_the_board_is_read_alone(tmp_path):
    add_rail(tmp_path, "hwmon3", 1, "VDD_IN", 5000, 2000)
    add_rail(tmp_path, "hwmon3", 2, "VDD_CPU_GPU_CV", 5000, 700)
    assert scope_of(tmp_path) == "VDD_IN"
    assert watts_of(tmp_path) == pytest.approx(10.0)


def test_without_one_the_rails_of_all_chips_are_added(tmp_path):
    """AGX Orin: two chips, and no total."""
    add_rail(tmp_path, "hwmon3", 1, "VDD_GPU_SOC", 19000, 100)
    add_rail(tmp_path, "hwmon3", 2, "VDD_CPU_CV", 19000, 50)
    add_rail(tmp_path, "hwmon4", 1, "VDDQ_VDD2_1V8AO", 19000, 10)
    add_shunts(tmp_path / "class/hwmon/hwmon3")
    assert scope_of(tmp_path) == "VDD_GPU_SOC + VDD_CPU_CV + VDDQ_VDD2_1V8AO"
    assert watts_of(tmp_path) == pytest.approx(19 * 0.16)


def test_a_channel_that_is_switched_off_is_left_out(tmp_path):
    add_rail(tmp_path, "hwmon3", 1, "VDD_A", 5000, 1000)
    add_rail(tmp_path, "hwmon3", 2, "VDD_B", 5000, 1000)
    put(tmp_path / "class/hwmon/hwmon3/in2_enable", 0)
    assert scope_of(tmp_path) == "VDD_A"


@pytest.mark.parametrize("file", ["in2_input", "curr2_input"])
def test_a_channel_that_has_no_data_is_left_out(tmp_path, monkeypatch, file):
    add_rail(tmp_path, "hwmon3", 1, "VDD_A", 5000, 1000)
    add_rail(tmp_path, "hwmon3", 2, "VDD_B", 5000, 1000)
    read = Path.read_text

    def as_the_driver(path, *how, **more):
        if path.name == file:
            raise OSError(errno.ENODATA, "No data available")
        return read(path, *how, **more)

    monkeypatch.setattr(Path, "read_text", as_the_driver)
    assert scope_of(tmp_path) == "VDD_A"
    assert watts_of(tmp_path) == pytest.approx(5.0)


def test_jetpack_4_reports_milliwatts(tmp_path):
    folder = tmp_path / "bus/i2c/drivers/ina3221x/0-0041/iio:device1"
    for number, (label, milliwatts) in enumerate([("VDD_IN", 7350), ("VDD_SYS_CPU", 1800)]):
        put(folder / f"rail_name_{number}", label)
        put(folder / f"in_power{number}_input", milliwatts)
    assert scope_of(tmp_path) == "VDD_IN"
    assert watts_of(tmp_path) == pytest.approx(7.35)


def test_a_chip_that_reports_power_is_used_and_other_sensors_are_not_power(tmp_path):
    put(tmp_path / "class/hwmon/hwmon0/name", "ina226")
    put(tmp_path / "class/hwmon/hwmon0/power1_input", 4_200_000)
    put(tmp_path / "class/hwmon/hwmon0/in1_input", 5000)
    put(tmp_path / "class/hwmon/hwmon0/curr1_input", 840)
    put(tmp_path / "class/hwmon/hwmon1/name", "nvme")
    put(tmp_path / "class/hwmon/hwmon1/power1_input", 9_000_000)
    assert watts_of(tmp_path) == pytest.approx(4.2)


@pytest.mark.alone
def test_power_is_integrated_over_time(tmp_path):
    rail = add_rail(tmp_path, "hwmon3", 1, "VDD_IN", 5000, 1000)
    meter = hwmon.find(str(tmp_path))
    meter.start()
    began = time.monotonic()
    time.sleep(0.4)
    put(rail, 3000)
    changed = time.monotonic()
    time.sleep(0.4)
    joules, ended = meter.stop(), time.monotonic()
    assert joules == pytest.approx(5 * (changed - began) + 15 * (ended - changed), rel=0.15)


@pytest.mark.alone
def test_a_rail_that_disappears_spoils_the_window(tmp_path):
    rail = add_rail(tmp_path, "hwmon3", 1, "VDD_IN", 5000, 1000)
    meter = hwmon.find(str(tmp_path))
    meter.start()
    rail.unlink()
    time.sleep(0.15)
    put(rail, 1000)  # back again, but nobody knows what was between
    with pytest.raises(WorkerError, match="cannot be read"):
        meter.stop()
    meter.start()
    began = time.monotonic()
    time.sleep(0.1)
    assert meter.stop() == pytest.approx(5 * (time.monotonic() - began), rel=0.3)
