"""Logs as bench meters write them: read as they grow, and nothing made up where rows are missing."""

import numpy as np
import pytest

from ampere.core.errors import MeterError
from ampere.devices.external_meters.log import ClockWasSet, Log, LogSpec


def log_of(path, settings, text=""):
    path.write_text(text)
    return Log(LogSpec.parse(f"log:{path},{settings}"))


# As the programs of these meters write them; made here from their descriptions, not recorded.
LOOKS = {
    "joulescope": ("time=time,power=power", "#time,current,voltage,power\n0.0,0.1,5,0.5\n0.5,0.2,5,1.0\n"),
    "ppk2": ("time=Timestamp(ms):ms,current=Current(uA):uA,voltage=5V", "Timestamp(ms),Current(uA)\n0,1e5\n500,2e5\n"),
    "otii": ("time=1,current=2,voltage=3", '"0.0";"0.1";"5.0"\n"0.5";"0.2";"5.0"\n'),
    "monsoon": ("time=Time,current=USB:mA,voltage=V", "Time,USB,V\n0,100,5\n0.5,200,5\n"),
    "smart plug": ("time=at:iso,power=watts", "at\twatts\n2026-01-01T00:00:00Z\t0.5\n2026-01-01T00:00:00.500Z\t1\n"),
    "a line each": ("time=1,power=2:mW", "0.0 500\n0.5 1000\n"),
    "decimal commas": ("time=Zeit,power=Leistung", "Zeit;Leistung\n0,0;0,5\n0,5;1,0\n"),
    "decimal commas, no names": ("time=1,power=2:mW", "0,00\t500,0\n0,50\t1000,0\n"),
    "a spreadsheet": ("time=t (s),power=3", '\ufeff"t (s)","note, if any",3\r\n0.0,,0.5\r\n0.5,"a, b",1\r\n'),
    "notes that are empty": ("time=1,power=2", "t\tP\tnote\n0\t0.5\t\n0.5\t1\tx\n"),
}


@pytest.mark.parametrize("look", LOOKS)
def test_looks_of_logs(tmp_path, look):
    log = log_of(tmp_path / "a.log", *LOOKS[look])
    assert log.advance() == 2
    times, watts = log.since(0)
    assert times[1] - times[0] == pytest.approx(0.5)
    assert watts == pytest.approx([0.5, 1.0])


def test_a_line_that_is_being_written_is_not_read(tmp_path):
    path = tmp_path / "a.csv"
    log = log_of(path, "time=1,power=2", "0.0,1.0\n0.1,12")
    assert log.advance() == 1
    with open(path, "a") as file:
        file.write("3.5\n0.2,4\n")
    assert log.advance() == 3
    assert log.since(0)[1] == pytest.approx([1.0, 123.5, 4.0])


def test_mean_power_of_a_span(tmp_path):
    rows = "".join(f"{t / 10},{t}\n" for t in range(100))  # row t: t watts since the row before
    log = log_of(tmp_path / "a.csv", "time=1,power=2", rows)
    log.advance()
    assert log.mean_watts(1.0, 2.0) == pytest.approx(np.mean(range(11, 21)))
    assert log.mean_watts(1.05, 1.15) == pytest.approx(11.5)


@pytest.mark.parametrize("span", [(-1.0, 2.0), (5.0, 20.0)])
def test_what_the_log_does_not_cover_is_refused(tmp_path, span):
    log = log_of(tmp_path / "a.csv", "time=1,power=2", "".join(f"{t / 10},5\n" for t in range(100)))
    log.advance()
    with pytest.raises(MeterError, match="does not cover"):
        log.mean_watts(*span)


def test_rows_that_are_missing_are_not_made_up(tmp_path):
    kept = "".join(f"{t / 10},5\n" for t in range(100) if not 40 < t < 50)
    log = log_of(tmp_path / "a.csv", "time=1,power=2", kept)
    log.advance()
    assert log.mean_watts(1.0, 3.0) == pytest.approx(5.0)
    with pytest.raises(MeterError, match="lacks rows"):
        log.mean_watts(3.0, 6.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("t,p\n0,1\n", "no column 1, 2|line"),
        ("0.0,1\n0.1,oops\n", "line 2"),
        ("0.0,1\n0.1\n", "line 2"),
        ("0.5,1\n0.4,1\n", "line 2: time goes back"),
        ("0.5,1\n1790000000.5,1\n", r"line 2: time jumps 1.79e\+09 s ahead"),
        ("0.0,1\n0,1,4,2\n", "line 2: '0,1,4,2' has 4 cells, but the first line has 2"),
        ("0.0,1\n0.1,2,3\n", "line 2: .* has 3 cells, but the first line has 2"),
        ("0.0;1.5\n0.1;1,234\n", "line 2: .* a different decimal mark"),
        ("0.0;1.5\n0.1;1,234.5\n", "line 2"),
        ("0.0,1\n0.1,nan\n", "line 2: '0.1,nan' has no finite time and power"),
        ("0.0,1\ninf,1\n", "line 2: 'inf,1' has no finite time and power"),
    ],
)
def test_a_damaged_log_names_its_line(tmp_path, text, said):
    log = log_of(tmp_path / "a.csv", "time=1,power=2", text)
    if text.startswith("t,p"):
        assert log.advance() == 1  # a first line of names
        return
    with pytest.raises(MeterError, match=said):
        log.advance()


def test_what_follows_a_line_that_was_refused_is_read(tmp_path):
    log = log_of(tmp_path / "a.csv", "time=1,power=2", "0.5,1\noops\n0.6,3\n0.7,4\n")
    with pytest.raises(MeterError, match="line 2"):
        log.advance()
    assert log.advance() == 3


def test_rows_before_a_clock_was_set_are_forgotten(tmp_path):
    log = log_of(tmp_path / "a.csv", "time=1,power=2", "0.5,1\n0.6,2\n0.1,3\n0.2,4\n")
    with pytest.raises(ClockWasSet):
        log.advance()
    assert log.advance() == 2
    assert log.since(0)[0] == pytest.approx([0.1, 0.2])


def test_columns_are_counted_from_one(tmp_path):
    with pytest.raises(MeterError, match="no column 0"):
        log_of(tmp_path / "a.csv", "time=0,power=1", "0.0,5\n").advance()


def test_a_column_that_is_not_there_is_said(tmp_path):
    with pytest.raises(MeterError, match="no column Power: its first line is 'time, power'"):
        log_of(tmp_path / "a.csv", "time=time,power=Power", "time,power\n").advance()


def test_no_log_at_all(tmp_path):
    with pytest.raises(MeterError, match="start the meter's recording first"):
        Log(LogSpec.parse(f"log:{tmp_path}/none.csv,time=1,power=2")).advance()
