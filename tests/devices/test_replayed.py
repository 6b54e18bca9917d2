"""A recording answers as the device did, once more, and with nothing that was not recorded."""

from dataclasses import replace

import pytest
from tests.recordings import record
from tests.synthetic import chain, random_chains

from ampere import Estimator, Profile
from ampere.core import TrainingSetup
from ampere.devices import Device, VariantFailed
from ampere.profiling.running import make_profile
from ampere.profiling.strategies.strategy import Goal
from ampere.storage.journal import Journal
from ampere.storage.recording import Header, record_header, record_observation


class Named:
    name = "chains"


@pytest.fixture(scope="module", name="recorded")
def a_recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "xavier.json"
    return path, record(path, random_chains(2, 8), rounds=3)


@pytest.fixture(name="device")
def a_device(recorded):
    with Device(f"replayed:{recorded[0]}") as device:
        yield device.worker()


def workload(o):
    return {"layers": o.network.to_json()}


def test_recorded_rounds_come_in_turn_and_then_again(recorded, device):
    first = recorded[1].observations[0]
    rounds = [o.measurement.target for o in recorded[1].observations if o.network == first.network]
    assert len(rounds) == 3
    assert [device.block(workload(first)).target for _ in range(6)] == 2 * rounds


def test_a_block_is_what_was_recorded_and_says_that_it_is_replayed(recorded, device):
    profile = recorded[1]
    for o in profile.observations:
        found = device.block(workload(o), profile.setup)
        assert found == replace(o.measurement, meter=replace(o.measurement.meter, replayed=True))


def test_what_was_not_recorded_is_refused(device):
    with pytest.raises(VariantFailed, match="only recorded networks can be replayed"):
        device.block({"layers": chain(3, 5, 5, 5).to_json()})


def test_another_setup_is_refused(recorded, device):
    with pytest.raises(VariantFailed, match="recorded with torch-sgd"):
        device.block(workload(recorded[1].observations[0]), TrainingSetup(optimizer="adam"))


def test_a_journal_can_be_replayed_as_well(recorded, tmp_path):
    profile, path = recorded[1], tmp_path / "run.json.journal"
    with Journal(path) as journal:
        record_header(
            journal,
            Header(
                profile.device,
                profile.setup,
                profile.meter,
                profile.yardstick_seconds,
                yardstick_joules=profile.yardstick_joules,
            ),
        )
        for o in profile.observations:
            record_observation(journal, o)
    with Device(f"replayed:{path}") as device:
        assert device.worker().block(workload(profile.observations[0])).joules > 0


def test_profiling_takes_all_that_is_recorded_and_nothing_else(recorded, tmp_path):
    path, profile = recorded
    device = Device(f"replayed:{path}")
    made = make_profile(Named, profile.setup, Goal(10_000.0), device, path=tmp_path / "again.json")
    assert not made.refused
    again = Profile.load(made.path)
    assert again.device["id"] == "replayed-simulated-xavier"
    assert again.meter.replayed
    assert {o.network for o in again.observations} == {o.network for o in profile.observations}
    unseen = random_chains(9, 5)
    first, second = (Estimator(p) for p in (profile, again))
    for network in unseen:
        assert second.estimate(network).joules == pytest.approx(first.estimate(network).joules, rel=0.1)
