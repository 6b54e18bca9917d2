"""Profiles: what goes in comes out, layers are kept once, and the default place is safe and can be moved."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ampere.core import Network, TrainingSetup
from ampere.core.errors import ProfileError
from ampere.storage import (
    Header,
    Journal,
    Observation,
    Profile,
    default_path,
    header_from,
    journal_path,
    observations_from,
    profile_from,
    profiling_seconds_from,
    record_header,
    record_observation,
)

PROFILE = Profile.load(Path(__file__).parents[1] / "fixtures" / "profile-format-2.json")
HEADER = Header(PROFILE.device, PROFILE.setup, PROFILE.meter, PROFILE.yardstick_seconds)


def test_round_trip(tmp_path):
    PROFILE.save(tmp_path / "p.json")
    assert Profile.load(tmp_path / "p.json") == PROFILE
    assert Profile.from_json(PROFILE.to_json()) == PROFILE


def test_an_empty_profile(tmp_path):
    empty = Profile(PROFILE.device, PROFILE.setup, PROFILE.meter, 0.1)
    empty.save(tmp_path / "p.json")
    assert Profile.load(tmp_path / "p.json") == empty


def test_an_observation_stands_alone():
    for observation in PROFILE.observations:
        again = Observation.from_json(json.loads(json.dumps(observation.to_json())))
        assert again == observation
        assert [layer.name for layer in again.network.layers] == [layer.name for layer in observation.network.layers]


def test_each_layer_is_kept_once_whatever_its_name():
    first = PROFILE.observations[0]
    layer = first.network.layers[1]
    many = Network(tuple(replace(layer, name=f"block.{n}") for n in range(100)), 8)
    table = replace(PROFILE, observations=(replace(first, network=many),) * 10).to_json()["layers"]
    assert len(table["rows"]) == len(table["functions"]) == 1


def test_layers_of_other_channels_share_their_function():
    first = PROFILE.observations[0]
    layer = first.network.layers[1]
    many = Network(tuple(layer.with_channels(n, n) for n in range(1, 101)), 8)
    profile = replace(PROFILE, observations=(replace(first, network=many),))
    table = profile.to_json()["layers"]
    assert (len(table["functions"]), len(table["rows"])) == (1, 100)
    assert Profile.from_json(profile.to_json()) == profile


def test_what_could_not_be_read_again_is_not_recorded(tmp_path):
    first = PROFILE.observations[0]
    odd = replace(first, network=replace(first.network, layers=(replace(first.network.layers[2], channels_in=0),)))
    with Journal(tmp_path / "j") as journal:
        with pytest.raises(ProfileError, match="an observation of lenet-small is malformed"):
            record_observation(journal, odd)
        assert list(observations_from(journal)) == []


def test_a_journal_becomes_a_profile(tmp_path):
    with Journal(tmp_path / "j") as journal:
        assert header_from(journal) is None
        record_header(journal, HEADER)
        for seconds, observation in enumerate(PROFILE.observations):
            record_observation(journal, observation, float(seconds))
        assert header_from(journal) == HEADER
        assert profiling_seconds_from(journal) == len(PROFILE.observations) - 1
    made = profile_from(tmp_path / "j", PROFILE.spaces, PROFILE.fit)
    assert made == replace(PROFILE, profiling_seconds=len(PROFILE.observations) - 1)


def test_a_journal_without_header_makes_no_profile(tmp_path):
    Journal(tmp_path / "j").close()
    with pytest.raises(ProfileError, match="does not say on which device"):
        profile_from(tmp_path / "j")


def test_an_unknown_purpose_is_refused():
    with pytest.raises(ProfileError, match="none of layer, variant"):
        replace(PROFILE.observations[0], purpose="guess")


def test_a_device_without_id_is_refused():
    with pytest.raises(ProfileError, match="no id"):
        replace(PROFILE, device={"cpu": "x"})


def test_a_file_from_before_there_were_methods_is_ours():
    """The fixture names neither."""
    record = PROFILE.to_json()
    assert (PROFILE.method, PROFILE.timing) == ("additive", "yardstick")
    for missing in ("method", "timing"):
        del record[missing]
    assert Profile.from_json(record) == PROFILE
    header = HEADER.to_json()
    del header["method"], header["timing"]
    assert Header.from_json(header) == HEADER


def test_a_file_from_before_there_was_a_common_yardstick(tmp_path):
    record, header = PROFILE.to_json(), HEADER.to_json()
    for missing in ("common_yardstick_seconds", "common_yardstick_joules"):
        del record[missing], header[missing]
    assert Profile.from_json(record) == PROFILE
    assert Header.from_json(header) == HEADER
    assert PROFILE.common_yardstick_seconds is None
    with_it = replace(PROFILE, common_yardstick_seconds=2e-3, common_yardstick_joules=0.01)
    with_it.save(tmp_path / "p.json")
    assert Profile.load(tmp_path / "p.json") == with_it
    assert Header.from_json(Header.of(with_it).to_json()) == Header.of(with_it)
    for kept in (PROFILE, HEADER):
        with pytest.raises(ProfileError, match="must be finite and between"):
            replace(kept, common_yardstick_seconds=float("nan"))


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"method": ""}, "there is no method"),
        ({"method": "../x"}, "there is no method"),
        ({"method": 3}, "there is no method"),
        ({"method": ["additive"]}, "there is no method"),
        ({"timing": "sundial"}, "none of yardstick, wallclock"),
        ({"timing": None}, "none of yardstick, wallclock"),
    ],
)
def test_a_strange_method_or_protocol_is_refused(how, says):
    with pytest.raises(ProfileError, match=says):
        replace(PROFILE, **how)
    with pytest.raises(ProfileError, match=says):
        replace(HEADER, **how)


def test_methods_and_protocols_survive_and_do_not_share_a_place(tmp_path):
    paper = replace(PROFILE, method="sequential", timing="wallclock")
    paper.save(tmp_path / "p.json")
    assert Profile.load(tmp_path / "p.json") == paper
    ways = [(m, p) for m in ("additive", "sequential") for p in ("yardstick", "wallclock")]
    names = {default_path({"id": "x"}, TrainingSetup(), *way).name for way in ways}
    assert len(names) == 4
    assert "x-torch-sgd-float32-sequential-wallclock.json" in names


def test_the_place_can_be_moved(tmp_path, monkeypatch):
    monkeypatch.setenv("AMPERE_HOME", str(tmp_path))
    path = default_path({"id": "x86-1"}, TrainingSetup())
    assert path == tmp_path / "profiles" / "x86-1-torch-sgd-float32.json"
    assert journal_path(path).name == path.name + ".journal"


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b\\c:d", "", "..", "x" * 500, "CPU @ 2.1 GHz\0"])
def test_a_device_cannot_name_a_place_outside(tmp_path, monkeypatch, name):
    monkeypatch.setenv("AMPERE_HOME", str(tmp_path))
    path = default_path({"id": name}, TrainingSetup())
    assert path.parent == tmp_path / "profiles"
    path.parent.mkdir()
    path.touch()


def test_setups_do_not_share_a_place(monkeypatch):
    monkeypatch.delenv("AMPERE_HOME", raising=False)
    setups = [TrainingSetup(optimizer=o, dtype=d) for o in ("sgd", "adam") for d in ("float32", "bfloat16")]
    assert len({default_path({"id": "x"}, setup) for setup in setups}) == 4


def test_numbers_of_threads_share_a_place(tmp_path):
    paths = {default_path({"id": "x"}, TrainingSetup(threads=threads)) for threads in (1, 2)}
    assert len(paths) == 1


def test_a_journal_holds_several_numbers_of_threads(tmp_path):
    two = replace(HEADER, setup=TrainingSetup(threads=2), yardstick_seconds=2 * HEADER.yardstick_seconds)
    first, second, third = PROFILE.observations[:3]
    with Journal(tmp_path / "j") as journal:
        record_header(journal, HEADER)
        record_observation(journal, first, 1.0)  # of the header before it
        record_header(journal, two)
        record_observation(journal, second, 2.0, threads=2)
        record_observation(journal, third, 3.0, threads=1)
        assert [header_from(journal, threads) for threads in (1, 2, 3, None)] == [HEADER, two, None, two]
        assert [list(observations_from(journal, threads)) for threads in (1, 2)] == [[first, third], [second]]
        assert [profiling_seconds_from(journal, threads) for threads in (1, 2)] == [3.0, 2.0]
    found = profile_from(tmp_path / "j")
    assert (found.threads, found.setup.threads, found.profiling_seconds) == ((1, 2), 2, 2.0)
    assert found.observations == (second,)
    assert found.on_threads(1).observations == (first, third)
    assert found.on_threads(2).yardstick_seconds == two.yardstick_seconds
    found.save(tmp_path / "p.json")
    assert Profile.load(tmp_path / "p.json") == found


def test_a_lost_header_moves_no_measurement_to_another_number_of_threads(tmp_path):
    first, second = PROFILE.observations[:2]
    with Journal(tmp_path / "j") as journal:
        record_header(journal, HEADER)
        record_observation(journal, first, threads=1)
        record_header(journal, replace(HEADER, setup=TrainingSetup(threads=2)))
        record_observation(journal, second, threads=2)
    lines = (tmp_path / "j").read_bytes().split(b"\n")
    damaged = [line for line in lines if b'"header"' not in line or b'"threads":2' not in line.replace(b" ", b"")]
    assert len(damaged) == len(lines) - 1
    (tmp_path / "j").write_bytes(b"\n".join(damaged))
    assert list(observations_from(tmp_path / "j", 1)) == [first]
    assert profile_from(tmp_path / "j").observations == (first,)


def test_stages_are_kept_and_are_of_parts_only(tmp_path):
    first = PROFILE.observations[0]
    assert "stage" not in first.to_json()  # so files without stages stay as they were
    of_stage = replace(first, purpose="stage", stage="backward")
    assert Observation.from_json(of_stage.to_json()) == of_stage
    for purpose, stage in [("network", "backward"), ("stage", "step"), ("kernel", "lunch")]:
        with pytest.raises(ProfileError, match="cannot have the stage"):
            replace(first, purpose=purpose, stage=stage)
