"""A journal gives back every record that it took, in order, over any number of openings."""

import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ampere.core.errors import ProfileError
from ampere.storage import Journal, read_records

leaves = st.none() | st.integers(-(10**18), 10**18) | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values: st.SearchStrategy[Any] = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=15
)
records = st.dictionaries(st.text(), values, max_size=5)


@settings(max_examples=60, deadline=None)
@given(openings=st.lists(st.lists(records, max_size=4), max_size=4))
def test_round_trip_over_openings(tmp_path_factory, openings):
    path = tmp_path_factory.getbasetemp() / "round-trip.journal"
    path.unlink(missing_ok=True)
    for batch in openings:
        with Journal(path) as journal:
            for record in batch:
                journal.append(record)
            assert (journal.damaged, journal.cut_bytes) == (0, 0)
    taken = [record for batch in openings for record in batch]
    assert (list(read_records(path)) if openings else []) == taken


@settings(max_examples=60, deadline=None)
@given(batch=st.lists(records, min_size=1, max_size=5), tail=st.binary(max_size=60))
def test_any_tail_leaves_the_records(tmp_path_factory, batch, tail):
    path = tmp_path_factory.getbasetemp() / "tail.journal"
    path.unlink(missing_ok=True)
    with Journal(path) as journal:
        for record in batch:
            journal.append(record)
    with open(path, "ab") as file:
        file.write(tail)
    with Journal(path) as journal:
        journal.append({"after": True})
    assert list(read_records(path)) == [*batch, {"after": True}]


def test_a_record_is_on_the_disk_when_append_returns(tmp_path, monkeypatch):
    from ampere.storage import journal as module

    with Journal(tmp_path / "j") as journal:
        steps: list[str] = []
        write, sync = module.os.write, module.os.fsync
        monkeypatch.setattr(module.os, "write", lambda *a: (steps.append("write"), write(*a))[1])
        monkeypatch.setattr(module.os, "fsync", lambda *a: (steps.append("fsync"), sync(*a))[1])
        journal.append({"n": 1})
        assert steps == ["write", "fsync"]


def test_the_format_is_as_documented(tmp_path):
    with Journal(tmp_path / "j") as journal:
        journal.append({"b": [1, 2.5], "a": "é\n"})
    pid, record = (tmp_path / "j").read_bytes().splitlines()
    assert record == b'd7372ecb {"a":"\\u00e9\\n","b":[1,2.5]}'
    assert pid.split()[1].isdigit()


def test_threads_may_share_a_journal(tmp_path):
    with Journal(tmp_path / "j") as journal:
        threads = [threading.Thread(target=append_many, args=(journal, n)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({tuple(record.items()) for record in journal.records()}) == 80


def append_many(journal: Journal, who: int) -> None:
    for n in range(20):
        journal.append({"who": who, "n": n})


def test_what_could_not_be_read_again_is_not_taken(tmp_path):
    with Journal(tmp_path / "j") as journal:
        for record in ({"a": object()}, {"a": 10**40}, {"a": float("inf")}, {1: "a", "1": "b"}):
            with pytest.raises(ProfileError, match="not stored"):
                journal.append(record)  # type: ignore[arg-type]
        assert list(journal.records()) == []


def test_a_missing_journal_is_named(tmp_path: Path):
    with pytest.raises(ProfileError, match="does not exist"):
        list(read_records(tmp_path / "j"))
