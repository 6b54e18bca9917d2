"""Mean error over the seconds that profiling may take, for every method that profiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ampere.evaluation.catalogue import Record
from ampere.evaluation.comparing import compared
from ampere.evaluation.job import Job
from ampere.evaluation.lab import Lab
from ampere.evaluation.plan import OURS, Plan
from ampere.evaluation.profile_job import ProfileJob
from ampere.evaluation.trials_job import trials_of

TITLE = "mean error against profiling seconds"
FIGURE = ""

FAMILY = "cnn5"
SHARES, QUICK_SHARES = (0.2, 0.5, 1.0, 2.0, 4.0), (0.6, 1.0)  # of the usual seconds


def profiles(plan: Plan, device: str) -> list[ProfileJob]:
    """Each made from nothing: what is planned for a minute is no longer version of what is planned for a second."""
    rivals = plan.rivals(device, FAMILY)[: 2 if plan.quick else None]
    usual = plan.profile_seconds(device, FAMILY)
    budgets = [share * usual for share in (QUICK_SHARES if plan.quick else SHARES)]
    return [
        ProfileJob(device, FAMILY, seconds, plan.seed, method, protocol)
        for method, protocol in (OURS, *rivals)
        for seconds in budgets
    ]


def jobs(plan: Plan) -> list[Job[Any]]:
    found: list[Job[Any]] = []
    for trials in [trials_of(plan, device, FAMILY) for device in plan.devices]:
        found += [trials.profile, trials, *profiles(plan, trials.device)]
    return found


def records(lab: Lab) -> Iterator[Record]:
    for device in lab.plan.devices:
        trials = trials_of(lab.plan, device, FAMILY)
        for profile in profiles(lab.plan, device):
            comparison = compared(lab, trials, (profile,))
            seconds = lab.get(profile).profiling_seconds
            for method in [m for m, s in comparison.profiling_seconds.items() if s == seconds]:
                yield {
                    **comparison.of,
                    "method": method,
                    "budget_seconds": profile.budget_seconds,
                    "profiling_seconds": seconds,
                    "mape": comparison.mape[method],
                    "repeatability": comparison.repeatability,
                }
