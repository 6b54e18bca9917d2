"""Time against energy of random 5-layer CNNs: may time stand in for energy while profiling?

Where joules are modelled from CPU time, as on a machine without a counter, the answer is built in: the records say
which meter it was, and only a measuring or simulated one shows anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ampere.evaluation.comparing import compared
from ampere.evaluation.drawing import device_panels, unit_for
from ampere.evaluation.jobs import Record, needs, trials_of
from ampere.evaluation.session import Session
from ampere.reporting.plotting import BLUE, MUTED, label_axes

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


def draw(figure: Any, records: Sequence[Record]) -> None:
    """One mark per network: how long an iteration took, and what it cost."""
    for axes, title, rows in device_panels(figure, records, width=3.6, height=3.2):
        scale, unit = unit_for(r["joules"] for r in rows)
        axes.scatter([1e3 * r["seconds"] for r in rows], [r["joules"] / scale for r in rows], s=14, color=BLUE)
        axes.set(xlim=(0, None), ylim=(0, None))
        built_in = "" if rows[0]["meter_measures"] else "\n(joules are modelled from time)"
        words = f"correlation {rows[0]['correlation']:.3f}{built_in}"
        axes.text(0.97, 0.05, words, transform=axes.transAxes, ha="right", color=MUTED, fontsize=8)
        label_axes(axes, title, "time of an iteration [ms]", f"energy [{unit}]")
