"""What is not a finite number neither enters nor leaves a file; zero joules are no measurement."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ampere.core.errors import ProfileError
from ampere.storage import Header, Journal, Observation, Profile, record_observation, write_document

pytestmark = pytest.mark.fault(13)

FIXTURE = Path(__file__).parents[1] / "fixtures" / "profile-format-2.json"
PROFILE = Profile.load(FIXTURE)
NOT_FINITE = [math.nan, math.inf, -math.inf]
NOT_POSITIVE = [*NOT_FINITE, 0.0, -1.0]


def with_window(**changes):
    """The first observation with one of its windows changed."""
    first = PROFILE.observations[0]
    window = first.measurement.target[0]._replace(**changes)
    return replace(first, measurement=replace(first.measurement, target=(window,)))


@pytest.mark.parametrize("field", ["joules", "wall_seconds", "busy_seconds"])
@pytest.mark.parametrize("value", NOT_POSITIVE)
def test_no_such_observation(field, value):
    with pytest.raises(ProfileError, match=r"positive|finite"):
        with_window(**{field: value})


@pytest.mark.parametrize("value", NOT_FINITE)
def test_nor_in_what_comes_with_it(value):
    first = PROFILE.observations[0]
    for change in ({"elapsed_seconds": value}, {"compile_seconds": value}, {"conditions": {"load": value}}):
        with pytest.raises(ProfileError, match="finite"):
            replace(first, measurement=replace(first.measurement, **change))


@pytest.mark.parametrize("value", NOT_POSITIVE)
def test_no_such_yardstick(value):
    with pytest.raises(ProfileError, match="yardstick"):
        replace(PROFILE, yardstick_seconds=value)
    with pytest.raises(ProfileError, match="yardstick"):
        Header(PROFILE.device, PROFILE.setup, PROFILE.meter, value)


numbers = st.floats() | st.sampled_from(NOT_FINITE)
values: st.SearchStrategy[Any] = st.recursive(
    numbers, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)


def all_finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return all(map(all_finite, value.values() if isinstance(value, dict) else value))


@settings(max_examples=150, deadline=None)
@given(value=values)
def test_files_take_finite_values_and_nothing_else(tmp_path_factory, value):
    folder = tmp_path_factory.getbasetemp() / "nonfinite"
    folder.mkdir(exist_ok=True)
    path = folder / "p.json"
    PROFILE.save(path)
    before = path.read_bytes()
    if all_finite(value):
        replace(PROFILE, fit={"value": value}).save(path)
        assert Profile.load(path).fit == {"value": value}
    else:
        with pytest.raises(ProfileError, match="JSON cannot express"):
            replace(PROFILE, fit={"value": value}).save(path)
        assert path.read_bytes() == before


def test_a_refused_record_leaves_the_journal_as_it_was(tmp_path):
    with Journal(tmp_path / "j") as journal:
        record_observation(journal, PROFILE.observations[0])
        before = journal.path.read_bytes()
        for value in NOT_FINITE:
            with pytest.raises(ProfileError, match="not stored"):
                journal.append({"joules": value})
        assert journal.path.read_bytes() == before


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "0", "-1e-9"])
def test_numbers_that_hide_in_text(tmp_path, text):
    """float() reads these, so a file could smuggle them past the JSON parser."""
    body = PROFILE.to_json()
    body["observations"][0]["measurement"]["target"][0][3] = text
    write_document(tmp_path / "p.json", "profile", 2, body)
    with pytest.raises(ProfileError):
        Profile.load(tmp_path / "p.json")
    with pytest.raises(ProfileError):
        Observation.from_json({"layers": body["layers"], **body["observations"][0]})
