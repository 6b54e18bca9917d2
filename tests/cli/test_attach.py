"""A bench meter's file that comes after the run: a worker trains for real, and the file shows when it did."""

import shutil
from dataclasses import replace
from statistics import median

import pytest
from tests.cli.conftest import Ampere
from tests.imitated_bench import BUSY, EVERY, IDLE, ImitatedBench

from ampere.devices.external_meters.log import span
from ampere.estimation.normalization import normalized, reference_of
from ampere.storage.profile import Profile

COLUMNS = ("--time", "Time (s)", "--power", "Main power (mW):mW")


@pytest.fixture(scope="module", name="recorded")
def a_run_beside_a_recording(tmp_path_factory):
    place = tmp_path_factory.mktemp("recorded")
    command = Ampere(place / "home", place)
    ran = command("profile", "lenet5", "--meter", f"log:deferred,every={EVERY}", "--seconds", 2, "--out", "made.json")
    assert ran.code == 0, ran.err
    return place, ran.out


@pytest.fixture(name="there")
def a_copy(recorded, tmp_path):
    """(the profile, the meter, what the run said)"""
    place, said = recorded
    shutil.copy(place / "made.json", tmp_path / "made.json")
    shutil.copy(place / "made.json.journal", tmp_path / "made.json.journal")
    return tmp_path / "made.json", ImitatedBench(Profile.load(tmp_path / "made.json")), said


def test_until_then_joules_are_modelled_and_say_so(there):
    path, _, said = there
    profile = Profile.load(path)
    assert (profile.meter.name, profile.meter.measured, profile.joules_fit) == ("log:deferred", False, {})
    words = " ".join(said.split())
    assert "modelled by log:deferred, not measured: 5 W per busy core, until a log is attached" in words
    assert "ampere attach FILE --to made.json" in words
    for o in profile.observations:
        assert o.measurement.joules == pytest.approx(5.0 * o.measurement.busy_seconds)
        assert all(w.began is not None for w in (*o.measurement.target, *o.measurement.yardstick))


def test_joules_are_those_of_the_log(there, here):
    path, bench, _ = there
    ran = here("attach", bench.export(path.with_name("bench.csv")), "--to", path, *COLUMNS, "--json")
    assert ran.code == 0, ran.err
    reported, profile = ran.record, Profile.load(path)
    assert reported["covered"] == reported["blocks"] == len(profile.observations)
    assert reported["alignment"]["found"] == reported["alignment"]["given"] >= 1
    assert reported["meter"] == profile.meter.to_json()
    assert (profile.meter.name, profile.meter.measured) == ("log", True)
    off = [
        o.measurement.joules / (BUSY * o.measurement.busy_seconds + IDLE * o.measurement.wall_seconds) - 1
        for o in profile.observations
    ]
    assert abs(median(off)) < 0.1
    assert all(o.measurement.meter == profile.meter for o in profile.observations)
    slowed = median(w.wall_seconds / w.busy_seconds for o in profile.observations for w in o.measurement.yardstick)
    watts = BUSY + IDLE * slowed  # of a busy second, where others were busy too
    assert profile.yardstick_joules == pytest.approx(watts * profile.yardstick_seconds, rel=0.15)
    assert profile.watts_idle == pytest.approx(IDLE, rel=0.05)
    assert profile.joules_fit
    assert path.with_name("made.json.journal").read_bytes() == b""


def test_estimates_are_measured_joules_afterwards(there, here):
    path, bench, _ = there
    assert here("attach", bench.export(path.with_name("bench.csv")), "--to", path, *COLUMNS).code == 0
    reported = here("estimate", "lenet5", "--profile", path, "--json").record
    assert reported["meter"]["measured"] is True
    original = max(Profile.load(path).observations, key=lambda o: o.purpose == "network").measurement
    assert (
        reported["joules_per_iteration"] / reported["seconds_per_iteration"]
        > 0.5 * original.joules / original.wall_seconds
    )


def test_a_second_log_needs_insisting(there, here, refused):
    path, bench, _ = there
    log = bench.export(path.with_name("bench.csv"))
    ran = here("attach", log, "--to", path, *COLUMNS)
    assert ran.code == 0
    assert "blocks have measured joules" in ran.said
    first = Profile.load(path)
    refused(here("attach", log, "--to", path, *COLUMNS), 4, "has its log already", "--again")
    assert here("attach", log, "--to", path, "--time", "Time (s)", "--power", "Main power (mW):W", "--again").code == 0
    wrong = Profile.load(path)
    assert wrong.yardstick_joules == pytest.approx(1000 * first.yardstick_joules)
    assert here("attach", log, "--to", path, *COLUMNS, "--again").code == 0
    again = Profile.load(path)
    assert again.meter == first.meter
    for now, before in zip(again.observations, first.observations, strict=True):
        assert now.measurement.joules == pytest.approx(before.measurement.joules)
        assert now.measurement.meter == before.measurement.meter
    refused(here("profile", "lenet5", "--meter", "log:deferred", "--out", path), 4, "belongs to a recording", "--out")


def test_what_is_no_log_of_this_run_is_refused(there, here, refused):
    path, bench, _ = there
    before = path.read_bytes()
    log = path.with_name("bench.csv")
    refused(here("attach", log, "--to", path, *COLUMNS), 9, "bench.csv does not exist", "export")
    refused(here("attach", bench.export(log, deaf=True), "--to", path, *COLUMNS), 9, "does not show in", "columns")
    refused(here("attach", bench.export(log, last=0.05), "--to", path, *COLUMNS), 9, "bench.csv")
    bench.export(log)
    refused(here("attach", log, "--to", path, "--time", "Time (s)", "--power", "P"), 9, "has no column P", "Main power")
    refused(here("attach", log, "--to", path, "--time", "Time (s)"), 2, "a log needs", "--power COLUMN", "--voltage 5V")
    refused(
        here("attach", log, "--to", path.with_name("mad.json"), *COLUMNS), 4, "mad.json does not exist", "made.json"
    )
    assert path.read_bytes() == before
    assert not path.with_name("mad.json.journal").exists()


def later(observation, seconds=60.0):
    """The same once more: on a busy machine the run may have measured one network only."""
    windows = {
        name: tuple(w._replace(began=w.began + seconds) for w in getattr(observation.measurement, name))
        for name in ("target", "yardstick")
    }
    return replace(observation, measurement=replace(observation.measurement, **windows, pattern=()))


def test_a_network_whose_rows_are_missing_is_only_timed(there, here):
    path, *_ = there
    known = Profile.load(path)
    lost = later(known.observations[-1])
    replace(known, observations=(*known.observations, lost)).save(path)
    holes = [span(lost.measurement.target[0])]
    bench = ImitatedBench(Profile.load(path))
    ran = here("attach", bench.export(path.with_name("bench.csv"), holes=holes), "--to", path, *COLUMNS, "--json")
    assert ran.code == 0, ran.err
    assert ran.record["covered"] == ran.record["blocks"] - len(holes)
    profile = Profile.load(path)
    *others, last = [o.measurement for o in profile.observations]
    assert all(m.joules for m in others)
    assert last.joules is None
    [cost] = normalized(profile.observations[-1:], reference_of(profile))
    assert (cost.meter.measured, cost.joules_rounds) == (False, ())
    assert cost.meter.scope.startswith("time at the yardstick's power")


def test_a_log_with_too_few_rows_is_refused_with_what_can_be_done(there, here, refused):
    path, bench, _ = there
    log = bench.export(path.with_name("bench.csv"))
    rows = log.read_text().splitlines(keepends=True)
    log.write_text("".join(rows[:1] + rows[1::2]))
    refused(here("attach", log, "--to", path, *COLUMNS), 9, "a row every 0.008 s", "--meter log:deferred,every=0.008")
    log.write_text("".join(rows[:1] + rows[1::50]))
    refused(here("attach", log, "--to", path, *COLUMNS), 9, "a row every 0.2 s", "--meter log:FILE,time=COLUMN")


def test_other_profiles_are_refused(there, here, refused):
    path, bench, _ = there
    assert here("profile", "lenet5", "--device", "simulated:xavier", "--seconds", 5, "--out", "other.json").code == 0
    log = bench.export(path.with_name("bench.csv"))
    refused(here("attach", log, "--to", "other.json", *COLUMNS), 4, "was not made for a log that is attached later")


def test_meters_that_are_too_slow_are_refused(here, refused):
    asked = ("profile", "lenet5", "--meter")
    refused(here(*asked, "log:deferred,every=1"), 2, "a row every 1 s is too slow", "log:FILE")
    refused(here(*asked, "log:deferred,every=soon"), 2, "every=soon is not a time between rows")
