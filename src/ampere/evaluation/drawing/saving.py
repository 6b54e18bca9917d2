"""From a stored result to files: PNG for looking, SVG for papers."""

from __future__ import annotations

import textwrap
from importlib import import_module
from pathlib import Path
from typing import Any

from ampere.evaluation.running import Result
from ampere.reporting.plotting import need_matplotlib
from ampere.storage.files import storing

from .style import INK, MUTED

FORMATS = (".png", ".svg")
CHARACTERS_AN_INCH, NOTE_CHARACTERS_AN_INCH = 12, 18


def draw(result: Result, folder: Path) -> list[Path]:
    need_matplotlib()
    figure = figure_of(result)
    paths = [folder / f"{result.experiment}{ending}" for ending in FORMATS]
    for path in paths:
        with storing(path):
            figure.savefig(path, dpi=150)
    return paths


def figure_of(result: Result) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    import_module(f".{result.experiment}", __package__).draw(figure, result.records)
    width = figure.get_size_inches()[0]
    title = textwrap.fill(_title(result), int(CHARACTERS_AN_INCH * width))
    figure.suptitle(title, x=0.01, ha="left", color=INK, fontsize=11)
    origin = "\n".join(textwrap.wrap(_origin(result), int(NOTE_CHARACTERS_AN_INCH * width)))
    figure.supxlabel(origin, x=0.99, ha="right", color=MUTED, fontsize=7)
    return figure


def _title(result: Result) -> str:
    title = f"{result.title[:1].upper()}{result.title[1:]}"
    return f"{title} (the paper's {result.figure})" if result.figure else title


def _origin(result: Result) -> str:
    """Whose joules these are: measured, modelled or simulated."""
    meters = {name: device["meter"] for name, device in result.devices.items()}
    words = [f"{result.devices[name]['title']}: {_in_words(meter)}" for name, meter in meters.items()]
    return "   ".join(words) if len(words) <= 2 else "   ".join(dict.fromkeys(map(_in_words, meters.values())))


def _in_words(meter: dict[str, Any]) -> str:
    how = "simulated" if meter.get("simulated") else "measured" if meter["measured"] else "modelled"
    return f"joules {'replayed, ' if meter.get('replayed') else ''}{how} by {meter['name']} ({meter['scope']})"
