"""fleet.toml and jobs.toml: what is written is understood, and each mistake is one line that keeps the rest."""

from datetime import datetime, timedelta, timezone

import pytest

from ampere.core.errors import UsageError
from ampere.fleet.chains import split_chains
from ampere.fleet.files import read_fleet, read_jobs, start_of
from ampere.fleet.problem import JobLimits

START = datetime(2026, 12, 1, 22, 0)
HOUR = 3600.0


def fleet(tmp_path, text):
    path = tmp_path / "fleet.toml"
    path.write_text(text)
    return read_fleet(path)


def jobs(tmp_path, text):
    path = tmp_path / "jobs.toml"
    path.write_text(text)
    return read_jobs(path, START)


GOOD = '[[device]]\nname = "a"\naddress = "simulated:tx2"\n'
JOB = '[[job]]\nname = "{}"\nmodel = "lenet5"\niterations = 10\n'


def test_a_device_is_read_with_its_units(tmp_path):
    more = 'battery = "15Wh"\nmemory = "4GB"\navailable = ["22:00-07:00"]\nidle = "2W"\nlabels = ["phone"]\n'
    [device] = fleet(tmp_path, GOOD + more).entries
    assert (device.battery_joules, device.memory_bytes, device.watts_idle) == (54_000.0, 4e9, 2.0)
    assert device.windows(START)[0] == (0.0, 9 * HOUR)
    assert device.windows(START)[1] == (24 * HOUR, 33 * HOUR)


def test_hours_that_overlap_are_there_once_and_a_day_may_end_at_24(tmp_path):
    [device] = fleet(tmp_path, GOOD + 'available = ["20:00-24:00", "23:00-02:00", "01:00-03:00"]\n').entries
    assert device.windows(START)[:2] == ((0.0, 5 * HOUR), (22 * HOUR, 29 * HOUR))


def test_prices_follow_the_hours_of_the_day(tmp_path):
    prices = [1.0] * 23 + [9.0]
    [device] = fleet(tmp_path, GOOD + f"price = {prices}\n").entries
    assert device.rates(device.price, START)[:3] == ((0.0, 1.0), (HOUR, 9.0), (2 * HOUR, 1.0))


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ('name = "b"\naddress = "local"\nbaterry = "1Wh"', "did you mean battery"),
        ('name = "a"\naddress = "local"', "twice"),
        ('address = "local"', "device number 2: it has no name"),
        ('name = "b"', "no address"),
        ('name = "b"\naddress = "local"\nbattery = "15"', "battery"),
        ('name = "b"\naddress = "local"\nbattery = 15', 'put it in quotes, with its unit, as in "15Wh"'),
        ('name = "b"\naddress = "local"\nbattery = "1 cell"', "'b': battery '1 cell' is not"),
        ('name = "b"\naddress = "local"\nprice = "0.30EUR/kWh"', "is neither a number"),
        ('name = "b"\naddress = "local"\ncarbon = nan', "is neither a number"),
        ('name = "b"\naddress = "local"\nlabels = 5', 'write ["one", "another"]'),
        ('name = "b"\naddress = "local"\ncondition = "hot"', "a number such as 1.1"),
        ('name = "b"\naddress = "local"\navailable = ["night"]', "22:00-07:00"),
        ('name = "b"\naddress = "local"\nprice = [1, 2]', "24"),
        ('name = "b"\naddress = "local"\nlike = ["z"]', "no device here"),
        ('name = "b"\naddress = "local"\nlike = ["b"]', "`like` leads in a circle"),
    ],
)
def test_a_device_that_makes_no_sense_is_named_and_the_others_stay(tmp_path, entry, words):
    found = fleet(tmp_path, f"{GOOD}[[device]]\n{entry}\n")
    assert [device.name for device in found.entries] == ["a"]
    assert len(found.problems) == 1
    assert words in found.problems[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "not TOML"),
        ("", "no device"),
        ("[[devices]]\nname='a'", "did you mean device"),
        ("device = 3", "[[device]]"),
    ],
)
def test_a_file_that_is_no_fleet_is_refused(tmp_path, text, words):
    with pytest.raises(UsageError) as refused:
        fleet(tmp_path, text)
    assert words in str(refused.value)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(UsageError, match="there is no file"):
        read_fleet(tmp_path / "fleet.toml")


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ('"8h"', 8 * HOUR),
        ('"07:30"', 9.5 * HOUR),
        ("07:30:00", 9.5 * HOUR),
        ('"2026-12-02T00:00"', 2 * HOUR),
        ("2026-12-02T00:00:00", 2 * HOUR),
        ("2026-12-02", 2 * HOUR),
        ('"7:30"', 9.5 * HOUR),
    ],
)
def test_deadlines_are_written_in_several_ways(tmp_path, written, seconds):
    [job] = jobs(tmp_path, JOB.format("a") + f"deadline = {written}\n").entries
    assert job.deadline == seconds


def test_a_time_with_a_zone_is_converted_to_the_clock_of_the_machine(tmp_path):
    noon = datetime(2026, 12, 2, 12, 0, tzinfo=timezone(timedelta(hours=9)))
    path = tmp_path / "jobs.toml"
    path.write_text(f"start = {noon.isoformat()}\n{JOB.format('a')}deadline = {noon.isoformat()}\n")
    here = noon.astimezone().replace(tzinfo=None)
    assert start_of(path, START) == here
    [job] = read_jobs(path, here - timedelta(hours=1)).entries
    assert job.deadline == HOUR


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("deadline = 2026-11-01T00:00:00", "in the past"),
        ('deadline = "1h"\nnot_before = "2h"', "before it may begin"),
        ("epochs = 3", "its length once"),
        ('deadline = "soon"', "deadline"),
        ('deadline = "25:00"', 'write "8h", "07:30" or'),
        ('deadline = "tomorrow"', 'write "8h", "07:30" or'),
        ('after = ["b"]', "b waits for itself"),
        ('optimizer = "adam"', "give it to devices, in the fleet file"),
        ('dedline = "1h"', "did you mean deadline"),
        ('after = ["z"]', "no job here"),
    ],
)
def test_a_job_that_makes_no_sense_is_named_and_the_others_stay(tmp_path, entry, words):
    found = jobs(tmp_path, f"{JOB.format('a')}{JOB.format('b')}{entry}\n")
    assert [job.name for job in found.entries] == ["a"]
    assert words in " ".join(found.problems)


def test_jobs_that_wait_in_a_circle_are_named_and_the_others_stay(tmp_path):
    text = "".join(
        JOB.format(name) + f'after = ["{after}"]\n' if after else JOB.format(name)
        for name, after in [("a", ""), ("b", "c"), ("c", "b"), ("d", "c"), ("e", "a")]
    )
    found = jobs(tmp_path, text)
    assert {job.name for job in found.entries} == {"a", "e"}
    assert "b, c wait for each other in a circle" in found.problems[0]


def test_jobs_that_follow_each_other_share_the_time_that_is_left():
    chain = (JobLimits("first"), JobLimits("second", 4 * HOUR, after=("first",)))
    least = {"first": 100.0, "second": 300.0}
    spanned = split_chains(chain, least, 0.0, 10 * HOUR)
    assert [(job.release, job.deadline) for job in spanned] == [(0.0, HOUR), (HOUR, 4 * HOUR)]
    later = split_chains(chain, least, 2 * HOUR, 10 * HOUR)
    assert [(job.release, job.deadline) for job in later] == [(0.0, 2.5 * HOUR), (2.5 * HOUR, 4 * HOUR)]
    (alone,) = split_chains(chain[1:], least, 2 * HOUR, 10 * HOUR)
    assert (alone.release, alone.deadline) == (0.0, 4 * HOUR)


def test_a_plan_begins_when_the_file_says(tmp_path):
    path = tmp_path / "jobs.toml"
    path.write_text("start = 2026-12-01T22:00:00\n" + JOB.format("a"))
    assert start_of(path, datetime(2020, 1, 1)) == START
    path.write_text("start = 3\n")
    with pytest.raises(UsageError, match="start is no time"):
        start_of(path, START)
