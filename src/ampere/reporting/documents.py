"""An estimate as CSV, Markdown or one HTML page, made from its JSON record: the same figures, drawn otherwise."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ampere.core import Meter, units
from ampere.core.escaping import printable

from .words import joules_sentence

Record = Mapping[str, Any]
LAYER_COLUMNS = ("name", "kind", "joules", "stddev", "share")
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;"
    "color:#222;background:#fff}table{border-collapse:collapse;margin:1rem 0}"
    "th,td{padding:.2rem .8rem;text-align:left;border-bottom:1px solid #ddd}"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#1b1b1b}th,td{border-color:#444}}"
)


@dataclass(frozen=True)
class Table:
    title: str
    columns: Sequence[str]  # those whose name begins with `>` hold numbers
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Document:
    """A title, facts in words, and tables."""

    title: str
    facts: Sequence[tuple[str, str]]
    tables: Sequence[Table]

    def markdown(self) -> str:
        lines = [f"# {_cell(self.title)}", "", "| | |", "|---|---|"]
        lines += [f"| {_cell(name)} | {_cell(text)} |" for name, text in self.facts]
        for table in self.tables:
            marks = ("---:" if column.startswith(">") else "---" for column in table.columns)
            lines += ["", f"## {_cell(table.title)}", "", _row(c.lstrip(">") for c in table.columns)]
            lines += [f"|{'|'.join(marks)}|", *map(_row, table.rows)]
        return "\n".join(lines) + "\n"

    def html(self) -> str:
        title = _html(self.title)
        facts = "".join(f"<tr><th>{_html(name)}</th><td>{_html(text)}</td></tr>" for name, text in self.facts)
        tables = "".join(map(_html_table, self.tables))
        head = f'<meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
        body = f"<h1>{title}</h1><table>{facts}</table>{tables}"
        return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def document(record: Record) -> Document:
    """The document of an estimate, from what `ampere estimate --json` prints."""
    low, high = map(units.joules, record["joules_interval90"])
    energy = f"{units.joules(record['joules_per_iteration'])} per iteration (90 %: {low} to {high})"
    seconds = units.seconds(record["seconds_per_iteration"])
    tables = [Table("Layers", ("layer", "kind", ">joules", ">±", ">share"), [*_layer_rows(record)])]
    if total := record.get("total"):
        tables.insert(0, Table("Whole run", ("part", ">count", ">joules", ">time", "from"), [*_part_rows(total)]))
    return Document(f"{record['network'] or 'network'}: {energy}, {seconds}", [*_facts(record)], tables)


def to_csv(record: Record) -> str:
    """A row a layer, and one for the rest of the step; joules sum to those of an iteration."""
    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow(LAYER_COLUMNS)
    whole = record["joules_per_iteration"]
    for layer in record["layers"]:
        figures = (layer["joules"], layer["stddev"], layer["joules"] / whole)
        rows.writerow([printable(layer["name"]), layer["kind"], *(f"{figure:.6g}" for figure in figures)])
    return written.getvalue()


FORMATS: dict[str, Callable[[Record], str]] = {
    "csv": to_csv,
    "markdown": lambda record: document(record).markdown(),
    "html": lambda record: document(record).html(),
}


def _facts(record: Record) -> Iterator[tuple[str, str]]:
    setup = record["setup"]
    on = setup.get("on", "cpu")
    named = [str(value) for name, value in setup.items() if name not in ("threads", "on")]
    yield "setup", ", ".join([*named, _threads(setup["threads"]) if on == "cpu" else f"on {on}"])
    yield "batch", f"{record['batch']:,}"
    yield "device", record["device"]
    yield "joules", joules_sentence(Meter(**record["meter"]))
    if memory := record.get("memory"):
        yield from _memory_facts(memory)
    if total := record.get("total"):
        yield from _run_facts(total)
    for name in ("unprofiled", "extrapolated"):
        if record.get(name):
            yield name, ", ".join(record[name])
    yield "covers", record["covers"]


def _memory_facts(memory: Record) -> Iterator[tuple[str, str]]:
    low, high = map(units.bytes, memory["interval90_bytes"])
    limit = memory.get("limit_bytes")
    judged = f", {memory['verdict']} into {units.bytes(limit)}" if limit is not None else ""
    yield "memory", f"{units.bytes(memory['peak_bytes'])} at its peak (90 %: {low} to {high}){judged}"
    if (largest := memory.get("largest_batch")) is not None:
        yield "largest batch", f"{largest:,} fits with the whole interval"


def _run_facts(total: Record) -> Iterator[tuple[str, str]]:
    low, high = map(units.joules, total["joules_interval90"])
    energy = f"{units.joules(total['joules'])} (90 %: {low} to {high}), {units.seconds(total['seconds'])}"
    yield "run", f"{units.counted(total['iterations'], 'iteration')}: {energy}"
    if total["idle_joules"]:
        gross = units.joules(total["joules_gross"])
        yield "idle", f"{units.joules(total['idle_joules'])} at {total['watts_idle']:.3g} W, {gross} in all"
    least, most = total["kwh_interval90"]
    factor = total["facility_factor"]
    facility = f" at the facility's meter (x {factor:g})" if factor != 1 else ""
    yield "kWh", f"{total['kwh']:.3g} (90 %: {least:.3g} to {most:.3g}){facility}"
    if cost := total.get("cost"):
        least, most = cost["money_interval90"]
        yield "price", f"{cost['money']:.3g} (90 %: {least:.3g} to {most:.3g}) {cost['currency']}".rstrip()
    for carbon in total["carbon"]:
        least, most = carbon["grams_interval90"]
        grams = f"{carbon['grams']:.3g} g (90 %: {least:.3g} to {most:.3g} g)"
        yield "CO2e", f"{carbon['region']}: {grams}; {carbon['grams_per_kwh']:g} g/kWh, {carbon['source']}"
    if total["verdict"]:
        low, high = map(units.percent, total["battery_share_interval90"])
        share, fits = units.percent(total["battery_share"]), units.probability(total["fits_probability"])
        needs = f"the run needs {share} (90 %: {low} to {high}) of {units.watt_hours(total['battery_joules'])}"
        yield "battery", f"{total['verdict']}: it fits with a probability of {fits}; {needs}"
    yield "without", total["not_covered"]


def _part_rows(total: Record) -> Iterator[tuple[str, ...]]:
    for part in total["parts"]:
        energy, seconds = units.joules(part["joules"]), units.seconds(part["seconds"])
        yield part["name"], f"{part['count']:,}", energy, seconds, part["source"]


def _layer_rows(record: Record) -> Iterator[tuple[str, ...]]:
    whole = record["joules_per_iteration"]
    for layer in record["layers"]:
        joules, share = units.joules(layer["joules"]), units.percent(layer["joules"] / whole)
        if layer["kind"] == "step":
            yield "(rest of step)", "", joules, "", share
        else:
            yield layer["name"] or "-", layer["kind"], joules, units.joules(layer["stddev"]), share


def _threads(count: int) -> str:
    return f"{count} thread{'' if count == 1 else 's'}"


def _row(cells: Any) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    """Text of one cell: names come from users' models, and may hold what Markdown would read."""
    shown = printable(text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")
    return shown.replace("[", "\\[")


def _html(text: str) -> str:
    return escape(printable(text))


def _html_table(table: Table) -> str:
    numeric = [column.startswith(">") for column in table.columns]
    kinds = [' class="n"' if number else "" for number in numeric]
    head = "".join(f"<th{k}>{_html(c.lstrip('>'))}</th>" for k, c in zip(kinds, table.columns, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{k}>{_html(cell)}</td>" for k, cell in zip(kinds, row, strict=True)) + "</tr>"
        for row in table.rows
    )
    return f"<h2>{_html(table.title)}</h2><table><tr>{head}</tr>{body}</table>"
