"""Results as tables: HTML is escaped, and a missing pandas is one clear line."""

import sys

import pytest

from ampere.core.display import frame, html_table
from ampere.core.errors import RuntimeMissingError

ROWS = [{"model": "a<b", "joules": 0.0123456, "front": True}, {"model": "c", "joules": None, "front": False}]


def test_a_table_has_a_row_for_each_record_and_escapes_what_it_shows():
    shown = html_table("2 models & more", ROWS)
    assert "<strong>2 models &amp; more</strong>" in shown
    assert shown.count("<tr>") == 3
    assert "a&lt;b" in shown
    assert ">0.01235<" in shown
    assert ">yes<" in shown
    assert shown.count("text-align:right") == 3  # the column of numbers


def test_no_rows_are_a_headline():
    assert html_table("nothing", []) == "<div><strong>nothing</strong></div>"


def test_a_frame_has_a_row_for_each_record():
    pytest.importorskip("pandas")
    made = frame(ROWS)
    assert list(made.columns) == ["model", "joules", "front"]
    assert made["joules"][0] == 0.0123456


def test_without_pandas_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(RuntimeMissingError, match=r"needs pandas: pip install pandas"):
        frame(ROWS)
