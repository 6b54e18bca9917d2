"""Mean error over the seconds that profiling may take, for every method that profiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ampere.evaluation.comparing import compared
from ampere.evaluation.drawing import by, colour_of, device_panels, in_order, shared_legend
from ampere.evaluation.jobs import Job, ProfileJob, Record, in_loops, trials_of
from ampere.evaluation.plan import OURS, Plan
from ampere.evaluation.session import Session
from ampere.reporting.plotting import INK, label_axes
from ampere.reporting.words import method_name

TITLE = "mean error against profiling seconds"
FIGURE = ""

FAMILY = "cnn5"
SHARES, QUICK_SHARES = (0.2, 0.5, 1.0, 2.0), (0.6, 1.0)  # of the usual seconds


def profiles(plan: Plan, device: str) -> list[ProfileJob]:
    """Profiles for every budget, each from scratch: a plan for a minute is not a longer version of one for a second."""
    baselines = plan.baselines(device, FAMILY)[: 2 if plan.quick else None]
    usual = plan.profile_seconds(device, FAMILY)
    budgets = [share * usual for share in (QUICK_SHARES if plan.quick else SHARES)]
    return [
        ProfileJob(device, FAMILY, seconds, plan.seed, method, timing)
        for method, timing in (OURS, *baselines)
        for seconds in budgets
    ]


def jobs(plan: Plan) -> list[Job[Any]]:
    found: list[Job[Any]] = []
    for trials in [trials_of(plan, device, FAMILY) for device in plan.devices]:
        own = profiles(plan, trials.device)
        found += [trials.profile, trials, *own, *in_loops(trials, own)]
    return found


def records(session: Session) -> Iterator[Record]:
    for device in session.plan.devices:
        trials = trials_of(session.plan, device, FAMILY)
        for profile in profiles(session.plan, device):
            comparison = compared(session, trials, (profile,))
            seconds = session.get(profile).profiling_seconds
            for method in [m for m, s in comparison.profiling_seconds.items() if s == seconds]:
                yield {
                    **comparison.of,
                    "method": method,
                    "budget_seconds": profile.budget_seconds,
                    "profiling_seconds": seconds,
                    "mape": comparison.mape[method],
                    "repeatability": comparison.repeatability,
                }


def draw(figure: Any, records: Sequence[Record]) -> None:
    """Mean error over the seconds that profiling took, one line per method; dotted: the noise of measuring."""
    for axes, title, rows in device_panels(figure, records, width=5.0, height=4.2):
        groups = by(rows, "method")
        for method in in_order(groups):
            own = sorted(groups[method], key=lambda r: r["profiling_seconds"])
            x, y = [r["profiling_seconds"] for r in own], [100 * r["mape"] for r in own]
            axes.plot(x, y, "o-", ms=5, lw=1.4, color=colour_of(method), label=method_name(method))
        axes.axhline(100 * rows[0]["repeatability"], color=INK, lw=0.8, ls=":", label="measured a second time")
        axes.set(xscale="log", yscale="log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter("{x:g}")
        axes.tick_params(which="minor", labelsize=7)
        label_axes(axes, f"{title}, 5-layer CNNs", "seconds of profiling", "mean error [%]")
    shared_legend(figure)
