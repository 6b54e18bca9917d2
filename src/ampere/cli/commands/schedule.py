"""`ampere schedule`: which job runs on which device of a fleet, and when."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from ampere.cli import arguments, option_values
from ampere.cli.console import Display, bar, headline, print_facts, print_json, print_table
from ampere.core import units
from ampere.core.errors import UsageError

if TYPE_CHECKING:
    from ampere.api.scheduling import FleetPlan
    from ampere.fleet.scheduling import Plan

OBJECTIVES = ("joules", "money", "carbon", "completion")
ROWS_SHOWN, BAR = 40, 12
TEN_THOUSANDTH = 1.01e-4


def add_arguments(parser: ArgumentParser) -> None:
    arguments.describe(
        parser,
        "Estimates every job on every device, and assigns jobs to devices so that batteries, memory and deadlines hold "
        "and the fewest joules are spent. Jobs that fit nowhere are named with what would help.",
        "ampere schedule jobs.toml --devices fleet.toml",
        "ampere schedule jobs.toml --devices fleet.toml --objective carbon",
        "ampere schedule jobs.toml --devices fleet.toml --reports so-far.json",
    )
    parser.add_argument("jobs", metavar="JOBS.toml", help="jobs: model, length, deadline, memory, where their data is")
    words = "devices: address, battery, memory, hours, prices"
    parser.add_argument("--devices", metavar="FLEET.toml", required=True, help=words)
    words = "what to spend least of (default joules); completion: the time until all jobs have ended"
    parser.add_argument("--objective", choices=OBJECTIVES, default="joules", help=words)
    words = "probability with which batteries and deadlines hold (default 95%%)"
    parser.add_argument("--confidence", metavar="SHARE", type=option_values.confidence, default=0.95, help=words)
    words = "time to search for the best plan (default 30)"
    parser.add_argument("--seconds", metavar="S", type=option_values.seconds, default=30.0, help=words)
    parser.add_argument("--reports", metavar="FILE", help="what jobs have spent so far, as JSON: plans the rest again")
    parser.add_argument("--plot", metavar="FILE.svg", help="draw the plan as a Gantt picture")
    arguments.add_seed(parser)
    arguments.add_output(parser)


def run(options: Namespace) -> None:
    from ampere.api.scheduling import schedule

    if options.plot and not options.plot.endswith(".svg"):
        raise UsageError(f"--plot {options.plot}: the picture is SVG: name it {Path(options.plot).stem}.svg")
    with Display(options.quiet) as display:
        found = schedule(
            options.jobs,
            options.devices,
            objective=options.objective,
            confidence=options.confidence,
            seconds=options.seconds,
            reports=options.reports,
            seed=options.seed,
            notice=display.notice,
        )
    if options.json:
        print_json({**found.plan.to_json(), "start": found.start.isoformat(), "problems": list(found.problems)})
    else:
        show(found, options.plot)
    if options.plot:
        from ampere.fleet.drawing import draw

        draw(found.plan, Path(options.plot), _clock(found.start))


def show(found: FleetPlan, plot: str | None) -> None:
    plan, clock = found.plan, _clock(found.start)
    total = len(plan.jobs) + len(plan.unscheduled)
    planned = f"{len(plan.jobs)} of {units.counted(total, 'job')}"
    headline(f"{planned}: {value_in_words(plan, plan.value)}, the last ends {clock(plan.ends)}")
    print()
    most = max((job.joules for job in plan.jobs), default=1.0)
    rows = sorted(plan.jobs, key=lambda job: (job.device, job.ends))
    print_table(
        ["job", "device", ">joules", ">± 90 %", "|", ">ends by", ">deadline"],
        (
            (
                job.job,
                job.device,
                units.joules(job.joules),
                units.percent(1.645 * job.stddev / job.joules) if job.joules else "",
                bar(job.joules / most, BAR),
                clock(job.ends),
                "" if job.deadline is None else clock(job.deadline),
            )
            for job in rows[:ROWS_SHOWN]
        ),
    )
    print()
    print_facts(_facts(plan, found, plot))


def _facts(plan: Plan, found: FleetPlan, plot: str | None) -> Iterator[tuple[str, str]]:
    if len(plan.jobs) > ROWS_SHOWN:
        yield "", f"and {len(plan.jobs) - ROWS_SHOWN} more: --json has all"
    for job in plan.unscheduled[:ROWS_SHOWN]:
        yield "left out", f"{job.job}: {job.reason}"
    if plan.gap is not None:
        words = "a ten-thousandth" if plan.gap <= TEN_THOUSANDTH else units.percent(plan.gap)
        spans = ", with these spans of time for jobs that follow others" if plan.chained else ""
        yield "best", f"no plan is better by more than {words}{spans}"
    for name, (value, left) in plan.baselines.items():
        others = f", {left} job{'s' if left > 1 else ''} left out" if left else ""
        yield "beside", f"{name}: {value_in_words(plan, value)}{others}"
    for name, (drawn, held) in plan.batteries.items():
        if drawn:
            share = units.percent(drawn / held) if held else "all"
            yield (
                "battery",
                f"{name}: at most {units.joules(drawn)} with {units.percent(plan.confidence)}, {share} of it",
            )
    if plot:
        yield "picture", plot
    if found.problems:
        yield "note", f"{len(found.problems)} of the files' entries could not be used; each is named above"


def value_in_words(plan: Plan, value: float) -> str:
    from ampere.fleet.problem import in_words

    return in_words(plan.objective, value)


def _clock(start: datetime) -> Callable[[float], str]:
    """What time it is so many seconds after the start."""

    def at(seconds: float) -> str:
        try:
            moment = start + timedelta(seconds=seconds)
        except OverflowError:  # no date is that late
            return f"after {units.seconds(seconds)}"
        days = (moment.date() - start.date()).days
        return f"{moment:%H:%M}" + (f" +{days}d" if days else "")

    return at
