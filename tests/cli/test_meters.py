"""Meters from the command line, on a folder that looks like a machine's."""

import json
import os
from pathlib import Path

import pytest
from tests.processes import run_command
from tests.rounds import median_off
from tests.sysfs_tree import Machine, add_battery, add_powercap, add_zone


@pytest.fixture(name="ampere_there")
def on_that_tree(tmp_path):
    """`ampere(...)` on a machine whose sysfs is in a folder of the test."""

    def run(*words, **environment):
        places = {"AMPERE_SYSFS": str(tmp_path / "sys"), "AMPERE_HOME": str(tmp_path / "home"), "COLUMNS": "100"}
        return run_command([*map(str, words)], tmp_path, {**os.environ, **places, **environment})

    return run


@pytest.fixture(name="tree")
def its_folder(tmp_path):
    return tmp_path / "sys"


def test_a_machine_without_a_counter_is_as_it_was(ampere_there):
    record = json.loads(ampere_there("devices", "--json").out)
    assert record["counters"] == []
    assert [meter["name"] for meter in record["meters"]] == ["cpu-time"]


@pytest.mark.alone
def test_a_counter_is_listed_and_used(ampere_there, tree):
    with Machine(add_powercap(tree)):
        record = json.loads(ampere_there("devices", "--json").out)
        shown = ampere_there("devices").out
    assert record["meters"][0]["name"] == "powercap"
    assert record["meters"][0]["measured"] is True
    assert [counter["name"] for counter in record["counters"]] == ["powercap"]
    assert "measured by powercap, package-0 + package-0 dram" in " ".join(shown.split())


@pytest.mark.alone
def test_the_check_rejects_what_does_not_rise(ampere_there, tree):
    """The machine of this test draws the same whatever the command does: nothing that a load could raise."""
    with Machine(add_powercap(tree), idle=6.0, busy=0.0):
        for _ in range(4):  # where this process has to wait for others, what the machine shows comes late, and in jumps
            ran = ampere_there("devices", "--check", "--json")
            [counter] = json.loads(ran.out)["counters"]
            if counter["check"]["problem"]:
                break
    assert "does not rise under load" in counter["check"]["problem"]
    assert counter["check"]["watts_idle"] == pytest.approx(6.0, rel=0.2)
    assert "checking the meters" in ran.notices


def test_what_cannot_be_used_is_said_with_its_remedy(ampere_there, tree):
    add_battery(tree, "Charging", power_now=5_000_000)
    ran = ampere_there("devices")
    assert ran.code == 0
    assert "battery: cannot be used: the status of battery BAT0 is Charging" in " ".join(ran.out.split())


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("devices", "--meter", "powercap"), 9, "does not advance under load"),
        (("profile", "lenet5", "--meter", "battery", "--quiet"), 9, "there is no battery on this device"),
        (("devices", "--meter", "nosuch"), 2, "there is no meter 'nosuch'"),
        (("devices", "--check", "--device", "simulated:tx2"), 2, "leave it out"),
        (("profile", "lenet5", "--meter", "hwmon", "--device", "simulated:tx2"), 2, "leave out --meter"),
    ],
)
def test_refusals_are_one_line_with_a_code_of_their_own(ampere_there, tree, words, code, said):
    add_zone(tree, "intel-rapl:0", "package-0", 12345)  # stands still
    ran = ampere_there(*words)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert len(ran.err.strip().splitlines()) == 1


@pytest.mark.alone
def test_joules_of_two_meters_are_not_held_against_each_other(ampere_there, tree):
    profile = Path(__file__).parents[1] / "fixtures" / "profile-format-2.json"
    with Machine(add_powercap(tree)):
        ran = ampere_there("measure", "lenet5", "--profile", profile, "--allow-other-device", "--seconds", 1, "--quiet")
    assert ran.code == 9
    assert "the profile's joules come from modelled-cpu, those measured here from powercap" in ran.notices


@pytest.mark.alone
def test_training_is_measured_by_the_counter(ampere_there, tree):
    """It draws 6 W whatever happens, so joules must be 6 W times the time of a step. The other core keeps the tree."""

    def watts_off():
        ran = ampere_there("measure", "lenet5", "--seconds", 2, "--threads", 1, "--json", "--quiet")
        assert ran.code == 0, ran.err
        record = json.loads(ran.out)
        assert (record["meter"]["name"], record["meter"]["measured"]) == ("powercap", True)
        return record["joules_per_iteration"] / record["seconds_per_iteration"] / 6.0 - 1

    with Machine(add_powercap(tree), idle=6.0, busy=0.0):
        assert median_off(0.25, watts_off) < 0.25


def test_a_calibration_is_kept_and_named_from_then_on(ampere_there):
    ran = ampere_there("calibrate", "--idle", "12W", "--busy", "31W", "--cores", 4)
    assert ran.code == 0, ran.err
    assert "4.75 W per busy core, within 5.6 % either way" in ran.said
    record = json.loads(ampere_there("devices", "--json").out)
    assert record["meters"][0]["scope"] == "4.75 W per busy core"
    assert "31 W with 4 busy cores, 12 W at rest" in record["meters"][0]["origin"]


def test_half_a_calibration_and_one_without_a_battery_are_one_line(ampere_there, refused, tree):
    tree.mkdir()
    refused(ampere_there("calibrate", "--idle", "12W"), 2, "--busy", "together")
    refused(ampere_there("calibrate"), 9, "no battery", "--idle 12W --busy 31W")
