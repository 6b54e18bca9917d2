"""Which runs may go on in a journal: the same meter, whatever file it writes to this time."""

from dataclasses import replace
from pathlib import Path

import pytest

from ampere.core import Meter
from ampere.core.errors import ProfileError
from ampere.profiling.running import header_for
from ampere.storage import Header, Journal, Profile, record_header

PROFILE = Profile.load(Path(__file__).parents[1] / "fixtures" / "profile-format-2.json")
LOGGED = Meter("log", True, "all that the meter feeds, bench.csv, a row every 0.0201 s", update_seconds=0.0201)
HEADER = Header(PROFILE.device, PROFILE.setup, LOGGED, PROFILE.yardstick_seconds)


@pytest.fixture(name="journal")
def a_run_that_was_stopped(tmp_path):
    with Journal(tmp_path / "a.journal") as journal:
        record_header(journal, HEADER)
        yield journal


def test_a_run_with_a_live_log_goes_on(journal):
    other = replace(LOGGED, scope="all that the meter feeds, tuesday.csv, a row every 0.0199 s", update_seconds=0.0199)
    assert header_for(journal, None, replace(HEADER, meter=other), allow_other_device=False) == HEADER


def test_another_number_of_threads_begins_a_part_of_its_own(journal):
    two = replace(HEADER, setup=replace(HEADER.setup, threads=2), yardstick_seconds=0.5 * HEADER.yardstick_seconds)
    assert header_for(journal, None, two, allow_other_device=False) == two
    assert header_for(journal, None, replace(HEADER, yardstick_seconds=1.0), allow_other_device=False) == HEADER
    assert header_for(journal, None, replace(two, yardstick_seconds=1.0), allow_other_device=False) == two
    assert journal.path.read_text().count('"header"') == 2


def test_other_threads_do_not_excuse_another_setup(journal, tmp_path):
    other = replace(HEADER, setup=replace(HEADER.setup, threads=2, optimizer="adam"))
    with pytest.raises(ProfileError, match="was made with torch-sgd-float32, not torch-adam-float32"):
        header_for(journal, None, other, allow_other_device=False)
    with Journal(tmp_path / "new.journal") as new, pytest.raises(ProfileError, match="was made with torch-sgd-float32"):
        header_for(new, None, replace(other, meter=PROFILE.meter), allow_other_device=False, others=[PROFILE])


def test_another_meter_is_refused_with_what_would_be_accepted(journal):
    other = Meter("cpu-time", False, "5 W per busy core")
    with pytest.raises(ProfileError, match="set AMPERE_METER=log:FILE,time=COLUMN,power=COLUMN, or"):
        header_for(journal, None, replace(HEADER, meter=other), allow_other_device=False)
