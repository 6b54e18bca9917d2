"""Rows of results as a file: Parquet, or CSV by the file's name."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ampere.core.errors import UsageError

from .files import write_whole


def check_table(path: Path) -> None:
    """Refuses a table that could not be written, before it is made."""
    if path.suffix not in (".parquet", ".csv"):
        raise UsageError(f"{path} is no table: name it {path.stem}.csv or {path.stem}.parquet")
    if path.suffix == ".parquet":
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise UsageError(f"{path} needs pyarrow: pip install pyarrow, or name a .csv file") from None


def write_table(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Writes rows that have the same keys."""
    check_table(path)
    if path.suffix == ".parquet":
        from pyarrow import Table, parquet

        whole = io.BytesIO()
        parquet.write_table(Table.from_pylist([*rows]), whole)
        write_whole(path, whole.getvalue())
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, [*rows[0]] if rows else [])
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, text.getvalue())
