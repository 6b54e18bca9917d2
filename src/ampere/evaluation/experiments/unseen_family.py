"""Estimates of every family's networks with the profile of each family: what transfers to families never profiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

import numpy as np

from ampere.estimation.estimator import Estimator
from ampere.evaluation.comparing import Comparison, compared
from ampere.evaluation.drawing import device_panels
from ampere.evaluation.jobs import Record, needs, of_family, trials_of
from ampere.evaluation.session import Session
from ampere.evaluation.validation import Pair
from ampere.reporting.plotting import label_axes
from ampere.storage.profile import Profile

TITLE = "what one profile knows about families it never saw"
FIGURE = ""

jobs = needs(
    lambda plan: [trials_of(plan, device, family) for device in plan.devices for family in plan.families(device)]
)


def records(session: Session) -> Iterator[Record]:
    plan = session.plan
    for device in plan.devices:
        for profiled in plan.families(device):
            estimator = Estimator(session.get(of_family(plan, device, profiled)))
            for tested in plan.families(device):
                trials = trials_of(plan, device, tested)
                errors = _errors(estimator, session.get(trials), compared(session, trials), session.get(trials.profile))
                yield {**compared(session, trials).of, "profiled": profiled, "tested": tested, "mape": mean(errors)}


def _errors(estimator: Estimator, pairs: tuple[Pair, ...], truth: Comparison, reference: Profile) -> list[float]:
    """Errors at the speed of the tested family's own profile, at which its measurements are given."""
    known = estimator.profile
    share = estimator.drift_share.part
    condition = (reference.yardstick_seconds / known.yardstick_seconds) ** share
    said = [estimator.estimate(first[0].network, "tuned", condition).joules for first, _ in pairs]
    return [abs(joules / trial.joules - 1) for joules, trial in zip(said, truth.trials, strict=True)]


def draw(figure: Any, records: Sequence[Record]) -> None:
    """A table in colours: the family that was profiled down the side, the family that was tested along the top."""
    for axes, title, rows in device_panels(figure, records, width=5.6, height=4.8):
        families = list(dict.fromkeys(r["profiled"] for r in rows))
        errors = {(r["profiled"], r["tested"]): 100 * r["mape"] for r in rows}
        values = np.array([[errors[p, t] for t in families] for p in families])
        axes.imshow(np.log10(np.maximum(values, 0.5)), cmap="Blues", vmin=-0.3, vmax=2.2)
        for (i, j), value in np.ndenumerate(values):
            colour = "white" if value > 25 else "black"
            axes.text(j, i, f"{value:.1f}" if value < 10 else f"{value:.0f}", ha="center", va="center", color=colour)
        axes.set_xticks(range(len(families)), families, rotation=30)
        axes.set_yticks(range(len(families)), families)
        label_axes(axes, f"{title}: mean error [%]", "networks tested", "networks profiled")
        axes.spines[:].set_visible(False)
