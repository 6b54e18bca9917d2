"""A profile of another device or of a newer Ampere is refused; profiles of every released format still load."""

from dataclasses import replace
from pathlib import Path

import pytest

from ampere.core import Meter, TrainingSetup
from ampere.core.errors import ProfileError
from ampere.storage import (
    Header,
    Journal,
    Profile,
    check_device,
    header_from,
    load_network,
    observations_from,
    save_network,
    write_document,
)
from ampere.storage.profile import other_version

pytestmark = pytest.mark.fault(18)

FIXTURES = Path(__file__).parents[1] / "fixtures"
PROFILE = Profile.load(FIXTURES / "profile-format-2.json")


def test_a_profile_of_an_older_format_is_refused_with_what_to_do():
    with pytest.raises(ProfileError, match=r"older Ampere \(format 1.*profile again with `ampere profile`"):
        Profile.load(FIXTURES / "profile-format-1.json")


def test_a_journal_of_an_older_format_is_refused_with_what_to_do(tmp_path):
    with Journal(tmp_path / "j") as journal:
        journal.append({"header": {**Header.of(PROFILE).to_json(), "format": 1}})
    with pytest.raises(ProfileError, match=r"older Ampere \(format 1"):
        header_from(tmp_path / "j")


def test_format_2_says_what_it_said():
    assert PROFILE.device["id"] == "x86_64-4f1c09ab"
    assert PROFILE.setup == TrainingSetup("torch", "sgd", "float32", 1)
    assert PROFILE.meter == Meter("modelled-cpu", False, "busy cores")
    assert [o.purpose for o in PROFILE.observations] == ["network"] * 3 + ["layer"] * 2 + ["variant"]
    first = PROFILE.observations[0]
    assert [layer.name for layer in first.network.layers] == ["input", "features.0", "classifier"]
    assert first.network.layers[1].config["size_in"] == (28, 28)
    assert first.measurement.joules == pytest.approx(0.02384, abs=1e-4)
    assert PROFILE.observations[-1].measurement.flags == ("short window",)
    assert PROFILE.fit["noise"] == 0.011


def test_it_says_the_same_after_being_written_anew(tmp_path):
    PROFILE.save(tmp_path / "p.json")
    assert Profile.load(tmp_path / "p.json") == PROFILE


def test_another_device_is_refused_and_the_difference_named():
    here = {**PROFILE.device, "id": "arm-1", "cpu": "Other CPU"}
    with pytest.raises(ProfileError, match=r"cpu Reference CPU, here Other CPU.*--allow-other-device"):
        check_device(PROFILE, here)


def test_the_same_device_and_an_insisting_user_are_not_refused():
    check_device(PROFILE, {**PROFILE.device, "system": "Linux 7"})
    check_device(PROFILE, {"id": "arm-1"}, insist=True)


def test_a_newer_format_says_upgrade(tmp_path):
    write_document(tmp_path / "p.json", "profile", 7, {"unheard": "of"})
    with pytest.raises(ProfileError, match=r"newer Ampere \(format 7, this one reads up to 2\): upgrade with pip"):
        Profile.load(tmp_path / "p.json")


def test_a_newer_envelope_says_upgrade_too(tmp_path):
    (tmp_path / "p.json").write_text('{"ampere":"profile","format":9,"sealed":"otherwise"}\n')
    with pytest.raises(ProfileError, match="upgrade"):
        Profile.load(tmp_path / "p.json")


def test_a_newer_journal_says_upgrade(tmp_path):
    with Journal(tmp_path / "j") as journal:
        journal.append({"header": {"format": 3}})
    for reading in (header_from, lambda path: list(observations_from(path))):
        with pytest.raises(ProfileError, match="upgrade"):
            reading(tmp_path / "j")


def test_one_kind_of_file_is_not_taken_for_another(tmp_path):
    save_network(PROFILE.observations[0].network, tmp_path / "n.json")
    with pytest.raises(ProfileError, match="is a network, not a profile"):
        Profile.load(tmp_path / "n.json")
    with pytest.raises(ProfileError, match="is a profile, not a network"):
        load_network(FIXTURES / "profile-format-2.json")


def test_another_version_of_the_runtime_is_reported_and_not_refused():
    device = {**PROFILE.device, "runtimes": {"torch": "2.4.0", "jax": "0.9.0"}}
    profile, here = replace(PROFILE, device=device), {**device, "runtimes": {"torch": "2.13.0", "jax": "0.9.0"}}
    assert other_version(profile, here).startswith("the profile was made with torch 2.4.0, and 2.13.0 is installed now")
    assert other_version(profile, device) == ""
    assert other_version(replace(profile, setup=TrainingSetup("jax")), here) == ""
    assert other_version(PROFILE, here) == ""
