"""Two machines of the same CPU model are two devices, and nothing of a profile says whose they are."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ampere.core import TrainingSetup
from ampere.core.errors import ProfileError
from ampere.devices.device import fingerprint
from ampere.storage import Profile, check_device
from ampere.storage.places import default_path
from ampere.worker.machine import hello, machine_id

pytestmark = pytest.mark.fault(18)
PROFILE = Profile.load(Path(__file__).parents[1] / "fixtures" / "profile-format-2.json")
ONE, OTHER = "3f2a9c41d7e64b0f8a15c2d3e4f50617", "b81d0c9e7f6a45d2930e1f2c3b4a5d69"


@pytest.fixture(autouse=True)
def a_place_and_a_meter_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("AMPERE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AMPERE_METER", "cpu-time")
    monkeypatch.delenv("AMPERE_MACHINE_ID", raising=False)


@pytest.fixture(name="machine")
def machines(monkeypatch):
    """Identities of this model of machine, by what tells them apart; None where nothing does."""

    def machine(name):
        monkeypatch.setattr("ampere.worker.machine._machine_name", lambda root: name)
        return fingerprint(hello({}))

    return machine


def test_they_have_different_ids_and_files_and_each_refuses_the_others_profile(machine, record_property):
    one, other = machine(ONE), machine(OTHER)
    assert one["cpu"] == other["cpu"]
    assert one["id"] != other["id"]
    assert machine(ONE) == one
    assert default_path(one, TrainingSetup()) != default_path(other, TrainingSetup())
    with pytest.raises(ProfileError, match="another device of the same model: create one here with `ampere profile`"):
        check_device(replace(PROFILE, device=one), other)
    check_device(replace(PROFILE, device=one), other, insist=True)
    record_property("figure", "two machines of one CPU model: two ids, the moved profile refused in one line")


def test_neither_a_serial_number_nor_a_name_is_in_it(machine):
    said = json.dumps(machine(ONE))
    assert not [part for part in (ONE, ONE[:8], ONE[-8:]) if part in said]
    assert len(machine(ONE)["machine_id"]) == 8  # too few digits to find a serial number by trying them all


def of_today(fingerprint):
    """As profiles were written before machines were told apart."""
    return {name: value for name, value in fingerprint.items() if name != "machine_id"} | {
        "id": fingerprint["id"].partition("_")[0]
    }


def test_a_profile_from_before_is_still_found_and_used_until_there_is_one_of_this_machine(machine):
    here = machine(ONE)
    before = replace(PROFILE, device=of_today(here))
    check_device(before, here)
    path = default_path(before.device, TrainingSetup())
    before.save(path)
    assert default_path(here, TrainingSetup()) == path
    own = path.with_name(path.name.replace(before.device["id"], here["id"]))
    replace(PROFILE, device=here).save(own)
    assert default_path(here, TrainingSetup()) == own
    assert default_path(machine(OTHER), TrainingSetup()) == path


def test_where_nothing_names_the_machine_its_model_decides(machine):
    """In a container, say; a profile from there is of use on its host."""
    nameless, one = machine(None), machine(ONE)
    assert "_" not in nameless["id"]
    check_device(replace(PROFILE, device=nameless), one)
    check_device(replace(PROFILE, device=one), nameless)
    with pytest.raises(ProfileError, match="cpu Other"):
        check_device(replace(PROFILE, device={**one, "id": "other", "cpu": "Other"}), nameless)


@pytest.fixture(name="system")
def files_of_a_system(tmp_path):
    def system(**files):
        for place, text in files.items():
            path = tmp_path / "system" / place.replace("__", "/").replace("_", "-").replace("DOT", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return machine_id(str(tmp_path / "system"))

    return system


def test_a_container_has_the_machine_id_of_its_image_which_says_nothing(system, monkeypatch):
    assert system() is None
    named = system(etc__machine_id=f"{ONE}\n")
    assert named == system(etc__machine_id=ONE) is not None
    assert system(DOTdockerenv="") is None
    monkeypatch.setenv("AMPERE_MACHINE_ID", "rack 4, left")
    assert system() not in (None, named)


def test_boards_whose_systems_are_copies_are_told_apart_by_their_serial_number(system):
    image = {"etc__machine_id": ONE}
    first = system(**image, proc__device_tree__serial_number="100000003d1a9c2f\0")
    second = system(**image, proc__device_tree__serial_number="100000007b00e1d4\0")
    assert first != second


@pytest.mark.parametrize("empty", ["", "uninitialized\n", "0000000000000000\0", "\0"])
def test_an_id_that_was_never_set_is_none(system, empty):
    assert system(etc__machine_id=empty, proc__device_tree__serial_number=empty) is None
