"""Tables of results: what is written is read again, whole or not at all."""

import csv
import sys

import pytest

from ampere.core.errors import StorageError, UsageError
from ampere.storage.tables import check_table, write_table

ROWS = [{"device": "a", "joules": 0.5, "hidden": [3, 4]}, {"device": "b", "joules": 2.0, "hidden": []}]


def test_parquet_is_read_as_it_was_written_and_replaced_at_once(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    path = tmp_path / "new folder" / "all.parquet"
    write_table(ROWS[:1], path)
    write_table(ROWS, path)
    assert parquet.read_table(path).to_pylist() == ROWS
    with pytest.raises(StorageError, match="cannot write"):
        write_table(ROWS, path / "all.parquet")
    assert [file.name for file in path.parent.iterdir()] == ["all.parquet"]


def test_a_csv_file_has_a_line_for_each_row(tmp_path):
    write_table(ROWS, tmp_path / "all.csv")
    with open(tmp_path / "all.csv", newline="") as file:
        assert [row["joules"] for row in csv.DictReader(file)] == ["0.5", "2.0"]


def test_a_table_without_pyarrow_is_refused_before_anything_is_estimated(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(UsageError, match=r"needs pyarrow: pip install pyarrow, or name a \.csv file"):
        check_table(tmp_path / "all.parquet")


def test_a_table_of_another_format_is_refused_before_anything_is_estimated(tmp_path):
    with pytest.raises(UsageError, match=r"name it all\.csv or all\.parquet"):
        check_table(tmp_path / "all.xls")
