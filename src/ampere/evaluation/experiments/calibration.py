"""Calibration: intervals that claim to hold p % of the measurements, and how many they really hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import Any

from ampere.evaluation.comparing import compared
from ampere.evaluation.drawing import by, device_panels
from ampere.evaluation.jobs import Record, needs, trials_of
from ampere.evaluation.session import Session
from ampere.reporting.plotting import BLUE, INK, label_axes

TITLE = "calibration of the estimates' intervals"
FIGURE = ""

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)

jobs = needs(
    lambda plan: [trials_of(plan, device, family) for device in plan.devices for family in plan.families(device)]
)


def records(session: Session) -> Iterator[Record]:
    plan = session.plan
    for device in plan.devices:
        for family in plan.families(device):
            comparison = compared(session, trials_of(plan, device, family))
            for level in LEVELS:
                z = NormalDist().inv_cdf(0.5 + level / 2)
                networks = len(comparison.trials)
                yield {**comparison.of, "level": level, "coverage": comparison.coverage(z), "networks": networks}


def draw(figure: Any, records: Sequence[Record]) -> None:
    """Measurements that lie in intervals that claim to hold so many: on the diagonal is calibrated, above too wide."""
    for axes, title, rows in device_panels(figure, records, width=5.0, height=4.6):
        axes.plot([0, 100], [0, 100], color=INK, lw=0.8)
        for family, own in by(rows, "family").items():
            levels, covered = [100 * r["level"] for r in own], [100 * r["coverage"] for r in own]
            axes.plot(levels, covered, lw=1, alpha=0.6, label=family)
        pooled = [(level, _pooled(same)) for level, same in by(rows, "level").items()]
        axes.plot([100 * x for x, _ in pooled], [100 * y for _, y in pooled], "o-", color=BLUE, lw=2, label="all")
        axes.set(xlim=(0, 100), ylim=(0, 102), aspect="equal")
        label_axes(axes, title, "the interval claims to hold [%]", "measurements in it [%]")
        axes.legend(loc="upper left")


def _pooled(rows: list[Record]) -> float:
    return float(sum(r["coverage"] * r["networks"] for r in rows) / sum(r["networks"] for r in rows))
