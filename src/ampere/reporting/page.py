"""A report as one HTML file that asks nobody for anything. All words are escaped here or in `svg`."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from ampere.reporting import svg

from .drawing import DARK, LIGHT, variables
from .record import Chart, Report, Section, Table
from .svg import escaped

FULL, HALF, PHONE = 860.0, 420.0, 326.0  # pixels


MOST_ROWS = 400  # of a table: more is for a file of figures, not for a page
UNITS = re.compile(r"(\d) (?=[mkµnMG]?J\b|[mk]?Wh?\b|[mµ]?s\b|min\b|h\b|days\b|%)")


def html(report: Report) -> str:
    style, script = _style(), _read("page.js")
    policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:"
    body = "".join(_section(section) for section in report.sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{text(report.title)}</title><style>{style}</style></head>\n"
        f"<body><main>{_header(report)}{body}{_footer(report)}</main><script>{script}</script></body></html>\n"
    )


def _style() -> str:
    """Light unless the reader's system is dark; paper is always light."""
    dark = f"@media screen and (prefers-color-scheme: dark){{:root{{{variables(DARK)}}}}}"
    return f":root{{{variables(LIGHT)}}}{dark}\n{_read('page.css')}"


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Only what we wrote may run or style: a name that looks like code stays a name."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def text(words: str) -> str:
    """Escaped, and with figures that stay with their units at the end of a line."""
    return escaped(UNITS.sub("\\1\N{NO-BREAK SPACE}", words))


def _header(report: Report) -> str:
    kind = f'<span class="origin {report.origin.split()[-1]}">{report.origin} joules</span>'
    lead = f"<p class=lead>{text(report.lead)} {kind}</p>"
    more = f"<details><summary>More about the device</summary>{_facts(report.more_facts)}</details>"
    return f"<header><h1>{text(report.title)}</h1>{lead}{_facts(report.facts)}{more}</header>"


def _footer(report: Report) -> str:
    return (
        f"<footer>Made by Ampere. All joules in this report are {report.origin}; this file needs no network.</footer>"
    )


def _section(section: Section) -> str:
    figures = "".join(f"<div><b>{text(large)}</b><span>{text(small)}</span></div>" for large, small in section.figures)
    return (
        f'<section id="{section.key}"><h2>{text(section.title)}</h2>'
        + (f'<div class="figures">{figures}</div>' if figures else "")
        + "".join(f"<p>{text(words)}</p>" for words in section.words)
        + (f'<div class="charts">{"".join(map(_chart, section.charts))}</div>' if section.charts else "")
        + (_table(section.table) if section.table else "")
        + (_facts(section.facts) if section.facts else "")
        + "</section>\n"
    )


def _chart(chart: Chart) -> str:
    wide = svg.on_a_page(chart.draw(FULL if chart.full else HALF), f"{chart.key}-w", chart.title, chart.caption, "wide")
    narrow = svg.on_a_page(chart.draw(PHONE), f"{chart.key}-n", chart.title, chart.caption, "narrow")
    orders = "".join(
        f'<button type="button" hidden data-order="{order}">{text(name)}</button>' for order, name in chart.orders
    )
    return (
        f'<figure id="{chart.key}" class="{"full" if chart.full else "half"}"><h3>{text(chart.title)}{orders}</h3>'
        f"{wide}{narrow}<figcaption>{text(chart.caption)}</figcaption>"
        f"<details><summary>The figures</summary>{_table(chart.table)}</details></figure>"
    )


def _table(table: Table) -> str:
    numeric = [column.startswith(">") for column in table.columns]
    head = "".join(_cell("th scope=col", c.lstrip(">"), n) for c, n in zip(table.columns, numeric, strict=True))
    rows = "".join(f"<tr>{_row(row, numeric)}</tr>" for row in table.rows[:MOST_ROWS])
    more = f"<p>and {len(table.rows) - MOST_ROWS:,} more rows</p>" if len(table.rows) > MOST_ROWS else ""
    return f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}</div>'


def _row(row: Sequence[str], numeric: Sequence[bool]) -> str:
    return "".join(_cell("td", cell, n) for cell, n in zip(row, numeric, strict=True))


def _cell(tag: str, words: str, number: bool) -> str:
    return f"<{tag}{' class=n' if number else ''}>{text(words)}</{tag.split()[0]}>"


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{text(name)}</dt><dd>{text(words)}</dd>" for name, words in facts) + "</dl>"
