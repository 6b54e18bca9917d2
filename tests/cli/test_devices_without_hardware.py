"""`--device`: what is simulated says so everywhere, and is never taken for this machine."""

import pytest

from ampere import Profile
from ampere.profiling.loop import LAST_FIT_SHARE, LEAST_BATCH


@pytest.fixture(scope="module", name="home")
def simulated_home(tmp_path_factory):
    from ampere.cli import main

    place = tmp_path_factory.mktemp("simulated")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AMPERE_HOME", str(place))
        assert main(["profile", "lenet5", "--device", "simulated:server", "--seconds", "150", "--quiet"]) == 0
    return place


@pytest.fixture(name="there")
def a_command_there(here, home, monkeypatch):
    monkeypatch.setenv("AMPERE_HOME", str(home))
    return here


def test_its_profile_has_a_place_of_its_own(home):
    [path] = (home / "profiles").glob("*.json")
    assert path.name.startswith("simulated-server")
    profile = Profile.load(path)
    assert profile.meter.simulated
    assert not profile.meter.measured
    unused = (LEAST_BATCH + LAST_FIT_SHARE) * 150  # at most: what is left may be too little for another batch
    assert 150 - unused <= profile.profiling_seconds <= 155


def test_an_estimate_says_that_it_is_simulated(there):
    ran = there("estimate", "lenet5", "--device", "simulated:server", "--no-profiling")
    assert ran.code == 0
    assert "simulated, not measured: simulated NVML" in ran.said
    record = there("estimate", "lenet5", "--device", "simulated:server", "--no-profiling", "--json").record
    assert record["meter"]["simulated"] is True
    assert record["meter"]["measured"] is False
    assert record["profile"]["device"].startswith("simulated ")
    assert sum(layer["joules"] for layer in record["layers"]) == pytest.approx(record["joules_per_iteration"])


def test_it_is_never_this_machines_default(there, refused):
    refused(there("estimate", "lenet5", "--no-profiling", "--quiet"), 4, "no profile of this device")


def test_as_a_file_it_is_of_another_device(there, home, refused):
    [path] = (home / "profiles").glob("*.json")
    refused(there("estimate", "lenet5", "--profile", path), 4, "of another device")
    assert there("estimate", "lenet5", "--profile", path, "--device", "simulated:server").code == 0


def test_measuring_and_validating_run_on_it(there):
    measured = there("measure", "lenet5", "--device", "simulated:server", "--json", "--quiet").record
    assert measured["meter"]["simulated"] is True
    assert abs(measured["difference"]) < 0.1
    words = ("validate", "lenet5", "--device", "simulated:server", "--networks", 5, "--no-plot", "--json", "--quiet")
    found = there(*words, "--no-profiling").record
    assert found["device"].startswith("simulated ")
    assert found["meter"]["simulated"] is True


def test_a_picture_says_so(there, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *a, **k: drawn.append(figure))
    words = ("validate", "lenet5", "--device", "simulated:server", "--networks", 3, "--no-profiling", "--quiet")
    assert there(*words, "--plot", tmp_path / "p.png").code == 0
    assert "simulated" in drawn[0].get_suptitle()
    assert "Simulated joules" in " ".join(text.get_text() for text in drawn[0].texts)


def test_devices_shows_it_and_lists_the_others(there):
    ran = there("devices", "--device", "simulated:tx2")
    assert "simulated Jetson TX2" in ran.said
    assert "simulated:phone-ios" in ran.out
    assert there("devices", "--json").record["meters"][0]["simulated"] is False


@pytest.mark.parametrize("command", ["profile", "estimate", "validate", "measure"])
def test_an_unknown_device_is_one_line_with_the_nearest(there, refused, command):
    refused(there(command, "lenet5", "--device", "simulated:servr", "--quiet"), 2, "did you mean simulated:server?")


def test_watts_make_no_sense_where_a_counter_is_read(there, refused):
    ran = there("profile", "lenet5", "--device", "simulated:tx2", "--watts-per-core", 3, "--quiet")
    refused(ran, 2, "come from a counter")


def test_data_and_evaluation_are_this_machines(there, refused):
    refused(there("measure", "lenet5", "--device", "simulated:tx2", "--evaluation"), 2, "leave them out")


def test_a_recording_gives_the_same_estimate_again(there, home):
    [path] = (p for p in (home / "profiles").glob("simulated*.json"))
    said = there("estimate", "lenet5", "--device", "simulated:server", "--no-profiling", "--json").record
    spec = f"replayed:{path}"
    ran = there("profile", "lenet5", "--device", spec, "--seconds", 10_000, "--quiet")
    assert ran.code == 0, ran.err
    again = there("estimate", "lenet5", "--device", spec, "--no-profiling", "--json").record
    assert again["meter"]["replayed"] is True
    assert again["joules_per_iteration"] == pytest.approx(said["joules_per_iteration"], rel=0.02)
    assert "replayed from a recording" in there("estimate", "lenet5", "--device", spec, "--no-profiling").said
