"""A report as one HTML file that loads nothing from anywhere. All text is escaped here or in `svg`."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from .drawing import DARK, LIGHT, variables
from .record import Basis, Chart, Report, Section, Table
from .svg import escaped, inline

FULL, HALF, PHONE = 860.0, 420.0, 326.0  # pixels
MOST_ROWS = 400  # of a table: more would make the page too large
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
    """The style sheet: light unless the reader's system is dark; paper is always light."""
    dark = f"@media screen and (prefers-color-scheme: dark){{:root{{{variables(DARK)}}}}}"
    return f":root{{{variables(LIGHT)}}}{dark}\n{_read('page.css')}"


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """The digest of our own script or style: nothing else on the page may run or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def text(words: str) -> str:
    """Escaped text in which a number and its unit stay on one line."""
    return escaped(UNITS.sub("\\1\N{NO-BREAK SPACE}", words))


def _header(report: Report) -> str:
    kind = f'<span class="origin {report.origin.split()[-1]}">{report.origin} joules</span>'
    lead = f"<p class=lead>{text(report.lead)} {kind}</p>"
    more = f"<details><summary>More about the device</summary>{_facts(report.more_facts)}</details>"
    return f"<header><h1>{text(report.title)}</h1>{lead}{_facts(report.facts)}{more}</header>"


def _footer(report: Report) -> str:
    joules = f"All joules in this report are {report.origin}"
    return f"<footer>Made by Ampere. {joules}; this file loads nothing from a network.</footer>"


def _section(section: Section) -> str:
    figures = "".join(f"<div><b>{text(large)}</b><span>{text(small)}</span></div>" for large, small in section.figures)
    return (
        f'<section id="{section.key}"><h2>{text(section.title)}</h2>'
        + (f'<div class="figures">{figures}</div>' if figures else "")
        + _switch(section.bases)
        + "".join(_basis(basis, shown=i == 0) for i, basis in enumerate(section.bases))
        + _words(section.words)
        + _charts(section.charts)
        + (_table(section.table) if section.table else "")
        + (_facts(section.facts) if section.facts else "")
        + "</section>\n"
    )


def _switch(bases: Sequence[Basis]) -> str:
    """Buttons between bases, hidden where no script runs."""
    buttons = "".join(
        f'<button type="button" data-basis="{basis.key}" aria-pressed="{str(i == 0).lower()}">per {basis.key}</button>'
        for i, basis in enumerate(bases)
    )
    return f'<div class="switch" role="group" aria-label="Energy per" hidden>{buttons}</div>' if bases else ""


def _basis(basis: Basis, shown: bool) -> str:
    hidden = "" if shown else " hidden"
    return f'<div data-shown="{basis.key}"{hidden}>{_words(basis.words)}{_charts(basis.charts)}</div>'


def _words(words: Sequence[str]) -> str:
    return "".join(f"<p>{text(sentence)}</p>" for sentence in words)


def _charts(charts: Sequence[Chart]) -> str:
    return f'<div class="charts">{"".join(map(_chart, charts))}</div>' if charts else ""


def _chart(chart: Chart) -> str:
    """A chart with its figures as a table, and what its parts are made of, folded away."""
    inside = "".join(
        f"<details class=inside><summary>{text(c.title)}</summary>{_figure(c)}</details>" for c in chart.inside
    )
    size = "full" if chart.full else "half"
    return f'<figure id="{chart.key}" class="{size}">{_figure(chart, heading=True)}{inside}</figure>'


def _figure(chart: Chart, heading: bool = False) -> str:
    width = FULL if chart.full else HALF
    wide = inline(chart.plot.draw(width), f"{chart.key}-w", chart.title, chart.caption, "wide")
    narrow = inline(chart.plot.draw(PHONE), f"{chart.key}-n", chart.title, chart.caption, "narrow")
    orders = "".join(
        f'<button type="button" hidden data-order="{order}">{text(name)}</button>' for order, name in chart.orders
    )
    title = f"<h3>{text(chart.title)}{orders}</h3>" if heading else ""
    return (
        f"{title}{wide}{narrow}<figcaption>{text(chart.caption)}</figcaption>"
        f"<details><summary>The figures</summary>{_table(chart.table)}</details>"
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
