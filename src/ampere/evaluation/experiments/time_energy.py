"""Time against energy of random 5-layer CNNs: may time stand in for energy while profiling?

Where joules are modelled from CPU time, as on a machine without a counter, the answer is built in, and the picture
says so: only a meter that measures, or a simulated one, shows anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ampere.evaluation.comparing import compared
from ampere.evaluation.drawing import colour_of, device_panels, unit_for
from ampere.evaluation.jobs import Record, needs, trials_of
from ampere.evaluation.session import Session
from ampere.reporting.plotting import INK, MUTED, label_axes

TITLE = "time against energy of 5-layer CNNs"
FIGURE = "Fig. 6"

jobs = needs(lambda plan: [trials_of(plan, device, "cnn5") for device in plan.all_devices])


def records(session: Session) -> Iterator[Record]:
    for device in session.plan.all_devices:
        comparison = compared(session, trials_of(session.plan, device, "cnn5"))
        seconds, joules = np.array([(t.seconds, t.joules) for t in comparison.trials]).T
        correlation = float(np.corrcoef(seconds, joules)[0, 1])
        for trial in comparison.trials:
            yield {
                **comparison.of,
                "network": trial.network,
                "seconds": trial.seconds,
                "joules": trial.joules,
                "correlation": correlation,
            }


BUILT_IN = "joules are modelled from CPU time:\nthe correlation is 1 by construction"


def draw(figure: Any, records: Sequence[Record]) -> None:
    """One mark per network: how long an iteration took, and what it cost."""
    for axes, title, rows in device_panels(figure, records, width=3.5, height=3.2):
        scale, unit = unit_for(r["joules"] for r in rows)
        modelled = rows[0]["joules_are"] == "modelled"
        shown = {"facecolors": "none", "edgecolors": MUTED} if modelled else {"color": colour_of("additive")}
        axes.scatter([1e3 * r["seconds"] for r in rows], [r["joules"] / scale for r in rows], s=18, **shown)
        axes.set(xlim=(0, None), ylim=(0, None))
        words = BUILT_IN if modelled else f"correlation {rows[0]['correlation']:.3f}\n{rows[0]['joules_are']} joules"
        axes.text(0.97, 0.05, words, transform=axes.transAxes, ha="right", color=INK, fontsize=8.5)
        label_axes(axes, title, "time per iteration [ms]", f"energy per iteration [{unit}]")
