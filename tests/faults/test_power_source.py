"""Mains plugged in or out in the middle of a window: no joules of it, and the source is part of the identity."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.sysfs_tree import add_battery, put

from ampere.core import TrainingSetup
from ampere.core.errors import ProfileError, WorkerError
from ampere.devices.device import fingerprint
from ampere.meters import battery, system_state
from ampere.storage.places import default_path
from ampere.storage.profile import Profile, check_device
from ampere.worker import block
from ampere.worker.machine import hello

pytestmark = pytest.mark.fault(10)
FIXTURE = Path(__file__).parents[1] / "fixtures" / "profile-format-2.json"


def test_a_plug_in_the_middle_of_a_window_spoils_it(tmp_path):
    add_battery(tmp_path, power_now=7_000_000)
    put(tmp_path / "class/power_supply/AC/type", "Mains")
    put(tmp_path / "class/power_supply/AC/online", 0)
    meter = battery.find(str(tmp_path))
    meter.start()
    put(tmp_path / "class/power_supply/AC/online", 1)
    time.sleep(0.4)
    put(tmp_path / "class/power_supply/AC/online", 0)
    with pytest.raises(WorkerError, match="AC powers the device"):
        meter.stop()


@pytest.fixture(name="plug")
def a_laptop(tmp_path, monkeypatch):
    monkeypatch.setenv("AMPERE_SYSFS", str(tmp_path))
    monkeypatch.setenv("AMPERE_METER", "cpu-time")
    add_battery(tmp_path, power_now=7_000_000)
    put(tmp_path / "class/power_supply/AC/type", "Mains")

    def plug(online):
        put(tmp_path / "class/power_supply/AC/online", online)

    plug(0)
    return plug


def test_the_source_is_part_of_the_identity(plug, monkeypatch, tmp_path):
    monkeypatch.setenv("AMPERE_HOME", str(tmp_path / "home"))
    unplugged = fingerprint(hello({}))
    for online in (1, 2):  # 2: a USB-C supply whose voltage can be set
        plug(online)
        plugged = fingerprint(hello({}))
        assert (unplugged["power_source"], plugged["power_source"]) == ("battery", "mains")
        assert unplugged["id"] == f"{plugged['id']}_battery"
        assert default_path(unplugged, TrainingSetup()) != default_path(plugged, TrainingSetup())
        profile = replace(Profile.load(FIXTURE), device=plugged)
        check_device(profile, plugged)
        with pytest.raises(ProfileError, match=r"on mains, and it runs on battery now: .*ampere profile"):
            check_device(profile, unplugged)


@pytest.mark.parametrize("before", [0, 1])
def test_with_another_meter_the_block_is_flagged(plug, monkeypatch, before):
    plug(before)

    def trained(request, tell):
        plug(1 - before)
        return {"flags": []}

    monkeypatch.setattr(block, "_isolated", trained)
    request = {"workload": {"factory": "a:b"}}
    assert block.block(request)["flags"] == ["source_switched"]
    monkeypatch.setattr(block, "_isolated", lambda request, tell: {"flags": []})
    assert block.block(request)["flags"] == []


def test_the_system_state_is_reported_where_it_can_be_read(tmp_path, monkeypatch):
    monkeypatch.setenv("AMPERE_SYSFS", str(tmp_path))
    assert not {"celsius", "clock_mhz", "battery_percent"} & set(system_state.conditions())
    put(tmp_path / "class/thermal/thermal_zone0/temp", 41500)
    put(tmp_path / "class/thermal/thermal_zone1/temp", 55000)
    put(tmp_path / "class/thermal/cooling_device0/temp", 99000)
    put(tmp_path / "devices/system/cpu/cpufreq/policy0/scaling_cur_freq", 1_800_000)
    put(tmp_path / "devices/system/cpu/cpufreq/policy0/scaling_governor", "schedutil")
    put(tmp_path / "class/power_supply/BAT0/capacity", 83)
    found = system_state.conditions()
    assert (found["celsius"], found["clock_mhz"], found["battery_percent"]) == (55.0, 1800.0, 83.0)
    assert system_state.governor() == "schedutil"
    monkeypatch.setattr(os, "getloadavg", lambda: (2.5, 1.0, 0.5))
    assert system_state.conditions()["load_1min"] == 2.5
