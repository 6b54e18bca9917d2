"""Results as a data frame and as a table in a notebook. Rows are records with the same keys, one record a row."""

from __future__ import annotations

from html import escape
from typing import Any, Mapping, Sequence

from .errors import RuntimeMissingError
from .escaping import printable

Rows = Sequence[Mapping[str, Any]]

_CELL = "padding:2px 10px;text-align:{};border:none"


def frame(rows: Rows) -> Any:
    """A pandas DataFrame with one row for each record."""
    try:
        import pandas
    except ImportError:
        raise RuntimeMissingError("to_frame() needs pandas: pip install pandas") from None
    return pandas.DataFrame.from_records([dict(row) for row in rows])


def html_table(headline: str, rows: Rows) -> str:
    """The headline in bold above a table, for `_repr_html_` of a result."""
    columns = list(rows[0]) if rows else []
    numeric = {c: all(row[c] is None or _is_number(row[c]) for row in rows) for c in columns}
    head = "".join(f'<th style="{_style(numeric[c])}">{escape(printable(c))}</th>' for c in columns)
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{_style(numeric[c])}">{escape(printable(_text(row[c])))}</td>' for c in columns)
        + "</tr>"
        for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if rows else ""
    return f"<div><strong>{escape(printable(headline))}</strong>{table}</div>"


def _style(numeric: bool) -> str:
    return _CELL.format("right" if numeric else "left")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
