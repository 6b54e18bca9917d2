"""Where a command draws."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from .console import notice


def picture_place(options: Namespace, usual: str) -> Path | None:
    """Whoever asks for a picture hears at once that it cannot be; else it is just left out."""
    from ampere.reporting.plotting import can_plot, need_matplotlib

    if options.no_plot:
        return None
    if options.plot:
        need_matplotlib()
    elif not can_plot():
        notice("no picture: pip install 'ampere-energy[plot]' for one", options.quiet)
        return None
    return Path(options.plot or usual)
