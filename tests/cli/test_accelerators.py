"""`--on`: the command on a stand-in accelerator, from a profile to a measurement, and what cannot be used there."""

import pytest
import torch
from tests.standin.environment import standin_environment

from ampere import Profile
from ampere.devices import Device


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("standin")


@pytest.fixture(scope="module", name="home")
def home_with_a_profile_of_the_card(place):
    from ampere.cli import main

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AMPERE_HOME", str(place / "home"))
        bring_card(patch, place)
        assert main(["profile", "lenet5", "--on", "standin", "--seconds", "2", "--quiet"]) == 0
    return place / "home"


@pytest.fixture
def on_card(here, place, monkeypatch):
    """The command where workers find a card with these settings."""

    def run(*words, **settings):
        bring_card(monkeypatch, place, **settings)
        return here(*words)

    return run


@pytest.fixture(name="there")
def on_the_card_that_was_profiled(on_card, home, monkeypatch):
    monkeypatch.setenv("AMPERE_HOME", str(home))
    return on_card


def bring_card(patch, place, **settings):
    for name, value in standin_environment(place, **{"images": 2, **settings}).items():
        patch.setenv(name, value)


def test_a_profile_is_of_the_card(home):
    [path] = (home / "profiles").glob("*.json")
    profile = Profile.load(path)
    assert profile.setup.on == "standin:0"
    assert profile.device["accelerator"] == "Stand-in card, 1 GiB"
    assert profile.meter.name == "device-time"
    assert len(profile.observations) >= 1


def test_an_estimate_says_what_trains(there):
    ran = there("estimate", "lenet5", "--on", "standin", "--no-profiling")
    assert ran.code == 0, ran.err
    assert "on standin:0" in ran.out.splitlines()[1]
    assert "Stand-in card, 1 GiB" in ran.said
    assert "as device seconds x 5 W" in " ".join(ran.out.split())


def test_measuring_trains_on_the_card_and_shows_the_estimate_beside_it(there):
    ran = there("measure", "lenet5", "--on", "standin", "--json", "--quiet")
    assert ran.code == 0, ran.err
    assert ran.record["setup"]["on"] == "standin:0"
    assert ran.record["meter"]["name"] == "device-time"
    assert ran.record["difference"] is not None


def test_validating_trains_unseen_networks_there(there):
    words = ("validate", "lenet5", "--on", "standin", "--networks", 1, "--no-profiling", "--no-plot", "--json")
    ran = there(*words, "--methods", "physics", "--quiet")
    assert ran.code == 0, ran.err
    assert ran.record["setup"]["on"] == "standin:0"
    assert ran.record["networks"] == 1


def test_the_cpu_of_the_same_machine_is_another_device(there, refused):
    refused(there("estimate", "lenet5", "--no-profiling", "--quiet"), 4, "no profile of this device")


# What cannot be used is refused in one line, each with its own exit code.

DEVICES = ("devices", "--on")


@pytest.mark.skipif(torch.cuda.is_available(), reason="it is for machines without CUDA")
def test_cuda_without_a_card_is_refused_with_what_is_there(on_card, refused):
    said = on_card(*DEVICES, "cuda")
    refused(said, 12, "cuda cannot be used here", "PyTorch reports standin, so use --on standin", "pip install torch")


@pytest.mark.parametrize(
    ("on", "settings", "words"),
    [
        ("standin:3", {}, ("standin:3 is not visible", "PyTorch sees standin:0")),
        ("standin", {"in_use": "all cards are busy or unavailable"}, ("in use by another process", "name another")),
        ("standin", {"bytes": 2}, ("too little memory", "end the programs that use it")),
        ("standin", {"driver": "The driver on your system is too old (found 11040)."}, ("too old (found 11040)",)),
    ],
    ids=["index", "in use", "memory", "driver"],
)
def test_a_card_that_cannot_be_used_is_refused(on_card, refused, on, settings, words):
    refused(on_card(*DEVICES, on, **settings), 12, *words)


def test_a_reference_step_that_does_not_fit_is_refused(on_card, refused):
    said = on_card("profile", "lenet5", "--on", "standin", "--quiet", bytes=2**17)
    refused(said, 12, "too little memory for the reference step")


def test_an_operation_that_the_card_lacks_is_named(on_card, refused):
    said = on_card("measure", "lenet5", "--on", "standin", "--quiet", lacks=["aten::max_pool2d_with_indices"])
    refused(said, 3, "standin has no aten::max_pool2d_with_indices")


@pytest.mark.parametrize("limit", [250, 200])
def test_a_profile_of_another_card_or_power_limit_is_refused(there, home, refused, limit):
    [path] = (home / "profiles").glob("*.json")
    before = path.read_bytes()
    said = there("estimate", "lenet5", "--on", "standin", "--profile", path, nvml={"limit_watts": limit})
    refused(said, 4, f"Stand-in card, 1 GiB, at most {limit} W")
    assert path.read_bytes() == before


# The device that the host opens.


def test_a_device_is_described_and_trained_on_its_card(place, monkeypatch):
    bring_card(monkeypatch, place, nvml={"update_seconds": 0.02})
    with Device("local", on="auto", meter="cpu-time") as device:
        identity, setup = device.identity, device.setup(dtype="float32")
        assert setup.on == "standin:0"
        assert setup.threads == 1
        assert identity["accelerator"] == "Stand-in card, 1 GiB, at most 250 W"
        assert identity["accelerator_state"]["driver"] == "550.54.15"
        assert device.meter.name == "device-time"
        assert device.allocators == ("tuned",)
        yardstick = device.worker().yardstick(0.1, setup.threads)
        assert yardstick.busy_seconds > 0


def test_only_the_card_that_trains_is_metered(place, monkeypatch):
    bring_card(monkeypatch, place, nvml={"update_seconds": 0.02})
    with Device("local", on="standin") as device:
        assert device.meter.name == "nvml"
        assert device.meter.measured
        assert device.meter.scope == "Stand-in card, the whole board"
