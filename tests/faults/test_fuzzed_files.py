"""Mutated files, requests and logs: what is accepted can be used and is finite, all else is refused in one line."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.faults.fuzz import ODD, PARSERS, PROFILES, kept, made, outcome, places, put

from ampere.core.errors import ProfileError
from ampere.estimation.estimator import Estimator
from ampere.storage import Profile

PROFILE = Profile.load(Path(__file__).parents[1] / "fixtures" / "profile-format-2.json")
values = st.recursive(
    st.sampled_from(ODD) | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


@pytest.mark.fault(25)
@settings(max_examples=120)
@given(record=st.sampled_from(PROFILES), data=st.data())
def test_any_profile_that_loads_can_be_estimated_with(record: Any, data: st.DataObject):
    place = data.draw(st.sampled_from(places(record)))
    outcome(PARSERS["profile"], put(record, place, data.draw(values)))


@pytest.mark.fault(25)
@pytest.mark.parametrize("name", PARSERS)
def test_every_parser_with_mutated_inputs(name: str, record_property):
    rng, count = Random(17), 60 if name in ("profile", "journal") else 300
    outcomes = [outcome(PARSERS[name], made(name, rng)) for _ in range(count)]
    record_property("figure", f"{name}: {count} inputs, {outcomes.count('accepted')} accepted")
    assert {*outcomes} == {"accepted", "refused"}


@pytest.mark.fault(25)
@pytest.mark.parametrize(("name", "value"), kept())
def test_inputs_that_once_broke_something(name: str, value: Any):
    outcome(PARSERS[name], value)


@pytest.mark.fault(25)
@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("device", "allocators"), ["x"]),
        (("device", "allocators"), []),
        (("observations", 0, "measurement", "target", 0, 1), 1e300),
        (("observations", 0, "measurement", "conditions"), {"yardstick_joules": -1.0}),
        (("fit",), {"residual": 1e200}),
        (("fit",), {"own": 1e200}),
        (("watts_idle",), -3.0),
        (("profiling_seconds",), -0.5),
        (("setup", "runtime"), "x" * 1000),
        (("setup", "threads"), 10**12),
        (("yardstick_seconds",), 1e-200),
        (("meter", "update_seconds"), "x"),
    ],
)
def test_numbers_that_were_accepted_and_ended_in_an_internal_error(place: tuple[Any, ...], value: Any):
    record = put({**PROFILES[0], "device": {**PROFILES[0]["device"], "allocators": ["tuned"]}}, place, value)
    with pytest.raises(ProfileError):
        PARSERS["profile"].use(record)


@pytest.mark.fault(25)
def test_a_profile_is_refused_in_one_line_where_its_measurements_contradict_each_other(monkeypatch, tmp_path):
    monkeypatch.setenv("AMPERE_HOME", str(tmp_path))  # where no fit of it is kept
    monkeypatch.setattr("ampere.estimation.estimator.fit", lambda *_: 1 / 0)
    with pytest.raises(ProfileError, match=r"cannot be used.*profile again"):
        Estimator(PROFILE)
