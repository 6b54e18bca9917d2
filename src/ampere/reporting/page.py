"""A report as one HTML file that loads nothing: the explorer's scripts and styles, with the report's data frozen in.

page/format.js ─┐
page/draw.js ───┼─> one script ──┐
page/charts.js ─┤                ├─> report.html
page/report.js ─┘   Report ─JSON─┘
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from .colours import PAGE
from .record import Chart, Report, Section, Table
from .svg import LONGEST, escaped, shown

SCRIPTS = ("format", "draw", "charts", "report")  # each imports only earlier ones
MOST_ROWS = 400  # of a table: more would make the page too large
MOST_WITHOUT_SCRIPTS = 30
DIGITS = 6  # of a number that is drawn
IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|const|class) (\w+))", re.MULTILINE)


def html(report: Report) -> str:
    style, script = _read("page.css"), bundle()
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    # `<` ends no element where it is written as an escape.
    data = json.dumps(_frozen(report), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{escaped(report.title)}</title><style>{style}</style></head>\n"
        f'<body class="report"><main id="figures"></main>{_without_scripts(report)}\n'
        f'<script type="application/json" id="report">{data}</script>\n'
        f'<script type="module">{script}</script></body></html>\n'
    )


@cache
def bundle() -> str:
    """The page's modules as one script: browsers load no module by its address from a file."""
    return "".join(map(_module, SCRIPTS))


def _module(name: str) -> str:
    """A module as a function's own scope, whose exports are one object."""
    source = _read(f"{name}.js")
    exported = [found[2] for found in EXPORT.finditer(source)]
    source = EXPORT.sub(r"\1", IMPORT.sub(r"const \1 = \2_js;", source))
    return f"const {name}_js = (() => {{\n{source}\nreturn {{ {', '.join(exported)} }};\n}})();\n"


def _read(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """The digest of our own script or style: nothing else on the page may run or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _frozen(value: Any) -> Any:
    """A record as JSON. Text comes from models, files and people: each line of it is made fit to be shown."""
    if isinstance(value, str):
        cut = value if len(value) <= LONGEST else f"{value[:LONGEST]}…"
        return "\n".join(map(shown, cut.split("\n")))
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, Table):
        rows, more = value.rows[:MOST_ROWS], max(0, len(value.rows) - MOST_ROWS)
        return {"columns": _frozen(value.columns), "rows": _frozen(rows), "more": more}
    if is_dataclass(value):
        found = {field.name: _frozen(getattr(value, field.name)) for field in fields(value)}
        if isinstance(value, Chart):
            found["plot"]["kind"] = type(value.plot).__name__.lower()
        return found
    if isinstance(value, dict):
        return {_frozen(key): _frozen(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_frozen(each) for each in value]
    return value


def _without_scripts(report: Report) -> str:
    """The main figures, for browsers in which no script runs."""
    parts = "".join(map(_section, report.sections))
    return (
        f"<noscript><main><h1>{escaped(report.title)}</h1><p>{escaped(report.lead)}: {report.origin} joules. The "
        f"pictures of this report need JavaScript; these are its main figures.</p>{_rows(report.facts)}{parts}"
        "</main></noscript>"
    )


def _section(section: Section) -> str:
    words = [*section.words, *(sentence for basis in section.bases for sentence in basis.words)]
    charts = [*(chart for basis in section.bases for chart in basis.charts), *section.charts]
    tables = "".join(
        f"<h3>{escaped(chart.title)}</h3>{_rows(chart.table.rows, chart.table.columns)}"
        for chart in charts
        if len(chart.table.rows) <= MOST_WITHOUT_SCRIPTS
    )
    figures = _rows([(large, small.replace("\n", "; ")) for large, small in section.figures])
    sentences = "".join(f"<p>{escaped(sentence)}</p>" for sentence in words)
    return f"<h2>{escaped(section.title)}</h2>{figures}{sentences}{tables}"


def _rows(rows: Sequence[Sequence[str]], columns: Sequence[str] = ()) -> str:
    head = "".join(f"<th>{escaped(name.lstrip('>'))}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escaped(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>" if rows else ""
