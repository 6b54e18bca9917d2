"""What a profile of one family knows about another that it never saw: its estimates of every family's networks."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean

from ampere.estimation.estimate import Estimator
from ampere.estimation.fitting import drift_share_in
from ampere.evaluation.catalogue import Record
from ampere.evaluation.comparing import Comparison, compared
from ampere.evaluation.lab import Lab
from ampere.evaluation.profile_job import of_family
from ampere.evaluation.trials_job import Pair, needs, trials_of
from ampere.storage.profile import Profile

TITLE = "what one profile knows about families it never saw"
FIGURE = ""

jobs = needs(
    lambda plan: [trials_of(plan, device, family) for device in plan.devices for family in plan.families(device)]
)


def records(lab: Lab) -> Iterator[Record]:
    plan = lab.plan
    for device in plan.devices:
        for profiled in plan.families(device):
            estimator = Estimator(lab.get(of_family(plan, device, profiled)))
            for tested in plan.families(device):
                trials = trials_of(plan, device, tested)
                errors = _errors(estimator, lab.get(trials), compared(lab, trials), lab.get(trials.profile))
                yield {**compared(lab, trials).of, "profiled": profiled, "tested": tested, "mape": mean(errors)}


def _errors(estimator: Estimator, pairs: tuple[Pair, ...], truth: Comparison, reference: Profile) -> list[float]:
    """In the condition of the tested family's own profile, which its measurements refer to."""
    known = estimator.profile
    sharing = drift_share_in(known.observations, known.yardstick_seconds).part
    condition = (reference.yardstick_seconds / known.yardstick_seconds) ** sharing
    said = [estimator.estimate(first.network, "tuned", condition).joules for first, _ in pairs]
    return [abs(joules / trial.joules - 1) for joules, trial in zip(said, truth.trials, strict=True)]
