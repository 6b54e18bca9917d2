"""Profiles that are missing, damaged, foreign or too new, and places that may not be written."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from ampere.core import TrainingSetup
from ampere.storage import write_document
from ampere.storage.networks import save_network
from ampere.storage.profile import Profile

PROFILE, STORAGE, USAGE = 4, 7, 2


@pytest.fixture
def given(tmp_path, profiled_home):
    """A copy of the profile, and a network that it knows."""
    profile = Profile.load(next((profiled_home / "profiles").glob("*.json")))
    whole = next(o.network for o in profile.observations if o.purpose == "network")
    profile.save(tmp_path / "p.json")
    save_network(whole, tmp_path / "net.json")
    return profile


def test_a_missing_one_is_missed_with_a_guess(here, refused, given):
    refused(here("estimate", "net.json", "--profile", "q.json"), PROFILE, "q.json does not exist", "p.json")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda raw: raw[: len(raw) // 2], "cut short"),
        (lambda raw: raw.replace(b"lenet5", b"lenet6", 1), "checksum"),
        (lambda raw: b"", "not an Ampere profile"),
        (lambda raw: b"\x89PNG" + raw, "not an Ampere profile"),
    ],
    ids=["truncated", "altered", "empty", "something else"],
)
def test_a_damaged_one_is_refused(here, refused, given, spoil, says):
    path = Path("p.json")
    path.write_bytes(spoil(path.read_bytes()))
    refused(here("estimate", "net.json", "--profile", path), PROFILE, "p.json", says)


def test_a_newer_one_says_upgrade(here, refused, given):
    write_document(Path("p.json"), "profile", 99, {})
    refused(here("estimate", "net.json", "--profile", "p.json"), PROFILE, "newer Ampere", "pip install -U")


def test_a_foreign_one_is_refused_until_the_user_insists(here, refused, given):
    replace(given, device={**given.device, "id": "elsewhere", "cpu": "Other CPU"}).save(Path("p.json"))
    refused(here("estimate", "net.json", "--profile", "p.json"), PROFILE, "another device", "--allow-other-device")
    insisted = here("estimate", "net.json", "--profile", "p.json", "--allow-other-device", "--json")
    assert insisted.code == 0
    assert insisted.record["profile"]["device"] == "Other CPU"


def test_a_network_is_no_profile_and_a_profile_no_network(here, refused, given):
    refused(here("estimate", "net.json", "--profile", "net.json"), PROFILE, "is a network, not a profile")
    refused(here("estimate", "p.json"), PROFILE, "is a profile, not a network")


def test_one_of_another_setup_is_not_asked(here, refused, given):
    ran = here("estimate", "net.json", "--profile", "p.json", "--optimizer", "adam")
    refused(ran, USAGE, "made with optimizer sgd, not adam")


def test_one_that_knows_nothing_yet(here, refused, given):
    replace(given, observations=()).save(Path("p.json"))
    refused(here("estimate", "net.json", "--profile", "p.json"), PROFILE, "holds no measurement")


def test_a_stored_one_of_another_setup_is_no_profile_for_this_one(here, refused, given):
    ran = here("estimate", "net.json", "--optimizer", "adamw")
    refused(ran, PROFILE, "no profile of this device", "ampere profile MODEL --optimizer adamw")


@pytest.fixture
def read_only(tmp_path):
    """A folder in which even root may not write, where there is one."""
    if os.access("/sys", os.W_OK):
        return Path("/sys/kernel")
    (tmp_path / "locked").mkdir(mode=0o555)
    return tmp_path / "locked"


@pytest.mark.parametrize("words", ["profile lenet5 --out", "trace lenet5 --out"])
def test_a_place_that_may_not_be_written(here, refused, read_only, words):
    refused(here(*words.split(), read_only / "new.json"), STORAGE, "cannot write", "new.json")


def test_a_place_that_is_a_folder_or_below_a_file(here, refused, tmp_path):
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "file").touch()
    refused(here("trace", "lenet5", "--out", "folder.json"), STORAGE, "it is a folder")
    refused(here("trace", "lenet5", "--out", "file/net.json"), STORAGE, "a part of its path is a file")


def test_other_watts_do_not_mix_with_those_of_the_file(here, refused, given):
    assert given.setup == TrainingSetup()
    ran = here("profile", "lenet5", "--out", "p.json", "--watts-per-core", 8, "--seconds", 1, "--quiet")
    refused(ran, PROFILE, "5 W per busy core", "8 W per busy core", "--out")
