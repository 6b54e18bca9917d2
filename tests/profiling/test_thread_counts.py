"""A profile of several numbers of threads, from two runs into one file to an estimate."""

import pytest

import ampere
from ampere.api.models import resolve
from ampere.core import TrainingSetup
from ampere.core.errors import UsageError
from ampere.devices.simulated import SimulatedWorker
from ampere.storage import Profile, profile_from
from ampere.storage.places import journal_path

DEVICE = "simulated:desktop"


@pytest.fixture(scope="module", name="file")
def a_profile_of_two_numbers(tmp_path_factory):
    path = tmp_path_factory.mktemp("threads") / "desktop.json"
    for threads in (1, 4):
        made = ampere.profile("lenet5", device=DEVICE, threads=threads, seconds=5, out=path)
        assert made.setup.threads == threads
    return path


def test_both_are_in_one_file_and_in_one_journal(file):
    profile = Profile.load(file)
    assert (profile.threads, profile.setup.threads) == ((1, 4), 4)
    assert all(part.observations and part.fit for part in profile.parts)
    assert profile.on_threads(1).yardstick_seconds > 1.2 * profile.on_threads(4).yardstick_seconds
    again = profile_from(journal_path(file))
    for threads in (1, 4):
        assert again.on_threads(threads).observations == profile.on_threads(threads).observations


@pytest.mark.parametrize("threads", [1, 4])
def test_each_estimates_its_own_device(file, threads):
    estimate = ampere.estimate("lenet5", device=DEVICE, profile=file, threads=threads)
    assert estimate.setup.threads == estimate.to_json()["setup"]["threads"] == threads
    truth = SimulatedWorker("desktop").truth(resolve("lenet5").network, TrainingSetup(threads=threads)).total
    assert estimate.joules == pytest.approx(truth.joules, rel=0.2)
    assert estimate.seconds == pytest.approx(truth.seconds, rel=0.2)


def test_a_file_without_a_number_is_used_with_the_last_one(file):
    assert ampere.estimate("lenet5", device=DEVICE, profile=file).setup.threads == 4
    assert ampere.measure("lenet5", device=DEVICE, profile=file, seconds=0.1).setup.threads == 4


def test_a_number_that_was_not_profiled_is_refused(file):
    with pytest.raises(UsageError, match="made with threads 4, not 2: leave out --threads, or profile again"):
        ampere.estimate("lenet5", device=DEVICE, profile=file, threads=2)


def test_the_default_is_the_devices_own_number(tmp_path, monkeypatch):
    monkeypatch.setenv("AMPERE_HOME", str(tmp_path))
    assert ampere.device(DEVICE).setup().threads == 8
    assert ampere.device("simulated:xavier").setup().threads == 1


def test_profiling_again_keeps_the_other_number(file, tmp_path):
    copy = tmp_path / "copy.json"
    copy.write_bytes(file.read_bytes())
    before = Profile.load(copy)
    ampere.profile("lenet5", device=DEVICE, threads=1, seconds=2, out=copy)
    after = Profile.load(copy)
    assert (after.threads, after.setup.threads) == ((1, 4), 1)
    assert after.on_threads(4).observations == before.on_threads(4).observations
    assert len(after.observations) > len(before.on_threads(1).observations)
