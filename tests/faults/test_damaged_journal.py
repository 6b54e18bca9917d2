"""A damaged line costs itself and, if its end is what broke, its neighbour; all others still count."""

import random
from pathlib import Path

import pytest

from ampere.core.errors import ProfileError
from ampere.storage import Journal, read_records

pytestmark = pytest.mark.fault(17)

RECORDS = 20


@pytest.fixture
def raw(tmp_path: Path) -> bytes:
    with Journal(tmp_path / "whole") as journal:
        for n in range(RECORDS):
            journal.append({"n": n, "joules": n / 7})
    return (tmp_path / "whole").read_bytes()


def test_two_thousand_bit_flips(tmp_path, raw):
    path, chance = tmp_path / "j", random.Random(4)
    for bit in chance.choices(range(8 * len(raw)), k=2000):
        damaged = bytearray(raw)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        kept = list(read_records(path))
        assert len(kept) >= RECORDS - 2
        assert all(record["joules"] == record["n"] / 7 for record in kept)


def test_a_damaged_middle_is_counted_and_stays(tmp_path, raw):
    path = tmp_path / "j"
    damaged = raw.replace(b'"n":7}', b'"n":8}')
    path.write_bytes(damaged)
    with Journal(path) as journal:
        assert (journal.damaged, journal.cut_bytes) == (1, 0)
        assert [record["n"] for record in journal.records()] == [n for n in range(RECORDS) if n != 7]
        journal.append({"n": RECORDS})
    assert path.read_bytes().startswith(damaged)


@pytest.mark.parametrize("tail", [b"x", b"\0" * 5000, b"0badc0de {}\n", b"12345678 {\n\n\n", b"\xff" * 40_000])
def test_a_damaged_tail_is_cut(tmp_path, raw, tail):
    path = tmp_path / "j"
    path.write_bytes(raw + tail)
    with Journal(path) as journal:
        assert (journal.damaged, journal.cut_bytes) == (0, len(tail))
        journal.append({"n": RECORDS})
        assert [record["n"] for record in journal.records()] == list(range(RECORDS + 1))


def test_a_last_line_without_its_end_is_completed(tmp_path, raw):
    path = tmp_path / "j"
    path.write_bytes(raw[:-1])
    with Journal(path) as journal:
        journal.append({"n": RECORDS})
        assert [record["n"] for record in journal.records()] == list(range(RECORDS + 1))


@pytest.mark.parametrize("text", [b"import torch\n", b"{}", b"PK\3\4", b"x" * 1000, b"# notes\n\n"])
def test_a_file_that_is_no_journal_is_left_alone(tmp_path, text):
    path = tmp_path / "model.py"
    path.write_bytes(text)
    with pytest.raises(ProfileError, match="not an Ampere journal"):
        Journal(path)
    assert path.read_bytes() == text
