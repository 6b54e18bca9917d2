"""An evaluation in the terminal: what there is, and how far every method is from real training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from ampere.baselines.answers import unavailable
from ampere.cli.console import headline, print_facts, print_table
from ampere.core import Meter, units
from ampere.core.escaping import printable
from ampere.evaluation.between_runs import DRIFT, drift_of
from ampere.evaluation.case_study.model import ORIGINAL
from ampere.evaluation.case_study.verdict import Verdict
from ampere.evaluation.drawing import by, in_order
from ampere.evaluation.experiments.pruning import TITLES
from ampere.evaluation.experiments.threads import answers
from ampere.evaluation.jobs import Record
from ampere.evaluation.running import QUICK, Result, expected_seconds, find
from ampere.evaluation.session import Session
from ampere.evaluation.summary import table_of, verdicts_of
from ampere.reporting.words import method_name

from .wording import joules_label

THREADS = "threads"  # the experiment that compares numbers of them; all others run on one


def listed(names: Sequence[str], session: Session) -> list[Record]:
    return [
        {
            "experiment": name,
            "title": find(name).TITLE,
            "figure": find(name).FIGURE,
            "seconds_left": expected_seconds([name], session),
        }
        for name in names
    ]


def show_list(names: Sequence[str], session: Session) -> None:
    rows = [
        (r["experiment"], r["title"], r["figure"] or "ours", _duration(r["seconds_left"]))
        for r in listed(names, session)
    ]
    print_table(["experiment", "what it shows", "in the paper", ">takes"], rows)
    together = _duration(expected_seconds(names, session))
    print(f"\nTogether {together}: what several experiments need is measured once.")


def _duration(seconds: float) -> str:
    return f"about {units.seconds(seconds)}" if seconds >= 1 else "measured"


def show(results: Sequence[Result], files: Sequence[Path]) -> None:
    table = table_of(results)
    for device, records in by(table, "device_title").items():
        headline(f"mean error (MAPE) on {device}, networks that were not profiled")
        _show_device(records)
        _say_how_many(results, records)
        print()
    for line in (line for result in results if result.experiment == THREADS for line in answers(result.records)):
        print(printable(line))
    for drift in (result.records for result in results if result.experiment == DRIFT):
        _show_drift(drift)
        print()
    for verdict in verdicts_of(results):
        headline(f"pruned to half the energy, and trained, on {verdict.device}")
        _show_verdict(verdict)
        print()
    print_facts(_facts(results, files))


def _show_verdict(verdict: Verdict) -> None:
    rows = [
        (
            TITLES[model],
            units.percent(mean(way.shares)),
            f"{100 * min(way.shares):.1f} - {100 * max(way.shares):.1f} %",
            f"{way.inside} of {len(way.shares)}" if model != ORIGINAL else "",
            units.percent(way.miss) if model != ORIGINAL else "",
            f"{100 * mean(way.accuracies):.1f} %",
        )
        for model, way in verdict.ways.items()
    ]
    print_table(["", ">energy", ">seeds", ">inside", ">off by", ">accuracy"], rows)
    for sentence in verdict.sentences():
        print(printable(sentence))


def _show_device(records: Sequence[Record]) -> None:
    families = {r["family"]: r for r in records}
    methods = in_order({m for r in records for m in r["mape"]})
    rows = [
        [method_name(m), *(_percent(r["mape"].get(m)) for r in families.values()), _seconds(m, records)]
        for m in methods
    ]
    rows.append(["measured a second time", *(_percent(r["repeatability"]) for r in families.values()), ""])
    rows.append(["in our 90 % interval", *(_percent(r["coverage90"]) for r in families.values()), ""])
    print_table(["", *(f">{family}" for family in families), ">profiling"], rows)


def _say_how_many(results: Sequence[Result], records: Sequence[Record]) -> None:
    """No ranking without the number of networks that it comes from."""
    networks = sorted({r["networks"] for r in records})
    several = f"{networks[0]} to {networks[-1]}" if networks[1:] else f"{networks[0]}"
    quick = f" {QUICK}" if any(result.quick for result in results) else ""
    print(f"{several} networks per family.{quick}")


def _show_drift(records: Sequence[Record]) -> None:
    headline("drift since the other run: the same networks, and how far Ampere is off")
    rows = [
        [
            group["family"],
            str(group["networks"]),
            units.signed_percent(group["yardstick"]),
            *(cell for what in ("measured", "estimated") for cell in _change(group, what)),
            *(units.percent(group[key]) for key in ("mape_before", "mape", "mape_carried")),
        ]
        for group in drift_of(records)
    ]
    columns = ("networks", "yardstick", "measured", "apart", "estimated", "apart", "off then", "now", "old profile now")
    print_table(["", *(f">{column}" for column in columns)], rows)


def _change(group: Record, what: str) -> tuple[str, str]:
    return units.signed_percent(group[what]), units.percent(group[f"{what}_apart"])


def _percent(share: float | None) -> str:
    return "-" if share is None else units.percent(share)


def _seconds(method: str, records: Sequence[Record]) -> str:
    """From the quickest family to the slowest."""
    known = [r["profiling_seconds"][method] for r in records if method in r["profiling_seconds"]]
    low, high = f"{min(known):.0f}", f"{max(known):.0f}"
    return f"{low} s" if low == high else f"{low}-{high} s"


def _facts(results: Sequence[Result], files: Sequence[Path]) -> Iterator[tuple[str, str]]:
    devices: dict[str, Any] = {name: device for result in results for name, device in result.devices.items()}
    for device in devices.values():
        meter = Meter(**device["meter"])
        yield device["title"], f"{joules_label(meter)}, by {meter.name}: {meter.scope}"
    if any(result.experiment != THREADS for result in results):
        yield "threads", "1; `ampere evaluate threads` compares numbers of them"
    for method, reason in unavailable().items():
        yield "not compared", f"{method}: {reason}"
    yield "files", f"{len(files)} in {files[0].parent}" if files else "none"
    for path in files:
        if path.suffix != ".svg":
            yield "", path.name
