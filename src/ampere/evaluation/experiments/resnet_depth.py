"""ResNets deeper than any that was profiled: does the error grow as layers are added up?

Basic blocks up to a quarter of the usual width with every plan; bottlenecks up to the full width in the full one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from random import Random
from typing import Any, NamedTuple

from ampere.evaluation.comparing import compared
from ampere.evaluation.drawing import by, colour_of, in_order, measured_in, panels, shared_legend
from ampere.evaluation.jobs import ProfileJob, Record, TrialsJob, baselines_of, needs
from ampere.evaluation.plan import PAPERS, Plan
from ampere.evaluation.session import Session
from ampere.models.loading import find_space
from ampere.models.spaces import RESNET, Arguments, Space
from ampere.profiling.experiment import Experiment
from ampere.profiling.sources import SpaceSource
from ampere.reporting.plotting import label_axes
from ampere.reporting.words import method_name
from ampere.storage.profile import Profile

TITLE = "errors of ResNets of growing depth"
FIGURE = "Fig. 10"

LEAST_WIDTH = 2
FULL_WIDTH = 64  # of the first stage, as the ResNet paper has it
FULL = {**RESNET, "bottleneck": True, "blocks": [1, 1, 1, 1], "widths": [FULL_WIDTH << stage for stage in range(4)]}


def sample_bottlenecks(rng: Random) -> Arguments:
    """Shallow ones: the deep ones are what is tested."""
    base = rng.randint(LEAST_WIDTH, FULL_WIDTH)
    return {**FULL, "blocks": [rng.randint(1, 2) for _ in range(4)], "widths": [base << stage for stage in range(4)]}


BASIC = find_space("resnet")
BOTTLENECK = Space("resnet-bottleneck", "ResNets of bottlenecks", BASIC.factory, FULL, sample_bottlenecks)


class Sort(NamedTuple):
    """Networks of one depth, as the ResNet paper counts it."""

    depth: int
    blocks: tuple[int, ...]
    space: Space
    widest: int  # of the first stage
    block_seconds: float  # of one round of one network, about

    @property
    def title(self) -> str:
        return f"ResNet-{self.depth}, 1/4 width" if self.space is BASIC else f"ResNet-{self.depth}, full width"


BASICS = [
    Sort(depth, blocks, BASIC, RESNET["widths"][0], 0.007 * depth + 0.06)
    for depth, blocks in ((10, (1, 1, 1, 1)), (18, (2, 2, 2, 2)), (34, (3, 4, 6, 3)))
]
BOTTLENECKS = [Sort(50, (3, 4, 6, 3), BOTTLENECK, FULL_WIDTH, 2.5)]


def sorts(plan: Plan) -> list[Sort]:
    return BASICS if plan.quick else BASICS + BOTTLENECKS


def profile_of(plan: Plan, device: str, sort: Sort) -> ProfileJob:
    """Wide bottlenecks take longer than the family: more seconds of a real device."""
    seconds = plan.profile_seconds(device, "resnet") * (1 if sort.space is BASIC else 3)
    return ProfileJob(device, sort.space.name, seconds, plan.seed, space=sort.space)


def trials(plan: Plan, device: str, sort: Sort) -> TrialsJob:
    count = 4 if plan.quick else 20 if sort.space is BASIC else 10  # those of full width take a minute each

    def build(_: Profile) -> list[Experiment]:
        rng, source = Random(f"{plan.seed} {sort.depth}"), SpaceSource(sort.space)
        bases = [rng.randint(LEAST_WIDTH, sort.widest) for _ in range(count)]
        widths = [[base << stage for stage in range(4)] for base in bases]
        return [source.of({**sort.space.default, "blocks": list(sort.blocks), "widths": w}) for w in widths]

    profile = profile_of(plan, device, sort)
    return TrialsJob(profile, f"resnet{sort.depth}", build, count, plan.rounds, sort.block_seconds, plan.seed)


def all_trials(plan: Plan) -> list[TrialsJob]:
    return [trials(plan, device, sort) for device in plan.large_devices for sort in sorts(plan)]


papers = partial(baselines_of, of=(PAPERS,))
jobs = needs(all_trials, papers)


def records(session: Session) -> Iterator[Record]:
    for device in session.plan.large_devices:
        for sort in sorts(session.plan):
            own = trials(session.plan, device, sort)
            comparison = compared(session, own, papers(session.plan, own.profile))
            for trial in comparison.trials:
                yield {**comparison.of, "depth": sort.depth, "sort": sort.title, **trial.to_json()}


SHOWN = ("additive", "sequential", "flops_intercept", "flops")
STYLES = ("-", "--", "-.", ":")
FARTHEST = 100.0  # percent


def draw(figure: Any, records: Sequence[Record]) -> None:
    """How many networks are estimated within an error: nearer to the upper left is better."""
    groups = [
        (f"{device}\n{sort}, {len(own)} networks", own)
        for device, rows in by(records, "device_title").items()
        for sort, own in by(rows, "sort").items()
    ]
    columns = len(by(records, "sort"))
    for axes, (title, rows) in zip(panels(figure, len(groups), columns, 3.1, 3.1), groups, strict=True):
        largest = 0.0
        methods = in_order(m for m in SHOWN if m in rows[0]["estimates"])
        for style, method in zip(STYLES, methods, strict=False):
            errors = sorted(100 * abs(r["estimates"][method] / measured_in(r, method) - 1) for r in rows)
            largest = max(largest, errors[-1])
            shares = [100 * (i + 1) / len(errors) for i in range(len(errors))]
            line = [0, *errors, 1e4], [0, *shares, 100]
            axes.step(*line, style, where="post", color=colour_of(method), lw=1.6, label=method_name(method))
        axes.set(xlim=(0, min(FARTHEST, 1.05 * largest)), ylim=(0, 103))
        label_axes(axes, title, "error at most [%]", "networks [%]")
    shared_legend(figure)
