"""What a fast machine, or many models, measure beyond the limits of files: nothing becomes unreadable."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest

from ampere.core import Network, TrainingSetup
from ampere.storage import Journal, Observation, Profile, header_from, journal_path, observations_from
from ampere.storage import journal as journals
from ampere.storage import profile as profiles
from ampere.storage.files import values_in
from ampere.storage.recording import Header, keep_apart, record_header, record_observation, store

PROFILE = Profile.load(Path(__file__).parents[1] / "fixtures" / "profile-format-2.json")
FIRST = PROFILE.observations[0]


def observation(number: int, purpose: str = "network") -> Observation:
    """Each of a layer that no other has."""
    layer = FIRST.network.layers[1].with_channels(1 + number, 7)
    return replace(FIRST, network=Network((layer,), 8, f"n{number}"), purpose=purpose)


def profile(count: int, **more: object) -> Profile:
    return replace(PROFILE, observations=tuple(map(observation, range(count))), touches=(), runs=(), **more)


def numbers(known: Profile) -> list[int]:
    return [int(o.network.name[1:]) for o in known.observations]


def test_a_profile_within_the_limits_is_stored_as_it_is():
    known = profile(40)
    assert known.within_limits() is known


def test_too_many_different_layers_are_thinned_evenly_and_can_be_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(profiles, "MOST_KNOWN", 50)
    known = profile(100).within_limits()
    known.save(tmp_path / "p.json")
    assert Profile.load(tmp_path / "p.json") == known
    kept = numbers(known)
    assert 40 <= len(kept) <= 50
    assert max(later - earlier for earlier, later in itertools.pairwise(kept)) <= 3


def test_all_rounds_of_a_network_stay_or_go_together(monkeypatch):
    monkeypatch.setattr(profiles, "MOST_KNOWN", 50)
    twice = [o for o in map(observation, range(100)) for _ in range(2)]
    kept = numbers(replace(profile(0), observations=tuple(twice)).within_limits())
    assert {kept.count(number) for number in kept} == {2}


@pytest.mark.parametrize("holder", ["others", "sources"])
def test_parts_of_a_file_share_its_values(tmp_path, monkeypatch, holder):
    inner = profile(60, setup=TrainingSetup(threads=5))
    alone = values_in(json.dumps(profile(60).to_json()))
    monkeypatch.setattr(profiles, "MOST_VALUES", int(1.5 * alone))
    kept = profile(60, **{holder: (inner,)}).within_limits()
    kept.save(tmp_path / "p.json")
    counts = [len(part.observations) for part in (kept, *getattr(Profile.load(tmp_path / "p.json"), holder))]
    assert counts[0] == counts[1] < 60


def test_the_newest_of_what_own_code_showed_stays(monkeypatch):
    monkeypatch.setattr(profiles, "MOST_KNOWN", 50)
    touches = tuple(observation(number, "touch") for number in range(1000, 1030))
    kept = replace(profile(90), touches=touches).within_limits().touches
    assert kept == touches[len(touches) - len(kept) :]
    assert len(kept) >= 10


def test_a_journal_that_is_nearly_full_begins_anew_and_nothing_is_lost(tmp_path, monkeypatch):
    path = tmp_path / "p.json"
    with Journal(journal_path(path)) as journal:
        record_header(journal, Header.of(PROFILE))
        for number in range(20):
            record_observation(journal, observation(number))
        store(profile(20), path, journal)
        assert len(list(observations_from(journal))) == 20  # far from full
        monkeypatch.setattr(journals, "MOST_VALUES", int(journal.filled * journals.MOST_VALUES * 1.2))
        store(profile(20), path, journal)
        assert header_from(journal) is None
    keep_apart(path, [observation(99, "touch")])
    known = Profile.load(path)
    assert numbers(known) == [*range(20)]
    assert [o.network.name for o in known.touches] == ["n99"]


def test_how_full_a_journal_is_survives_its_closing(tmp_path):
    with Journal(tmp_path / "j") as journal:
        record_observation(journal, observation(0))
        before = journal.filled
    with Journal(tmp_path / "j") as journal:
        assert journal.filled == pytest.approx(before, rel=0.05)
        journal.append(*({"a": number} for number in range(3)))
        assert [record for record in journal.records() if "a" in record] == [{"a": 0}, {"a": 1}, {"a": 2}]
