"""ResNets deeper than any that was profiled: does the error grow as layers are added up?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from ampere.evaluation.comparing import compared
from ampere.evaluation.drawing import by, colour_of, device_panels, shared_legend
from ampere.evaluation.jobs import Record, TrialsJob, needs, of_family
from ampere.evaluation.plan import Plan
from ampere.evaluation.session import Session
from ampere.models.loading import find_space
from ampere.models.spaces import RESNET
from ampere.profiling.experiment import Experiment
from ampere.profiling.sources import SpaceSource
from ampere.reporting.plotting import label_axes
from ampere.reporting.words import method_name
from ampere.storage.profile import Profile

TITLE = "errors of ResNets of growing depth"
FIGURE = "Fig. 10"

BLOCKS = {10: [1, 1, 1, 1], 18: [2, 2, 2, 2], 34: [3, 4, 6, 3]}  # by depth, as the ResNet paper counts
LEAST_WIDTH = 2


def trials(plan: Plan, device: str, depth: int) -> TrialsJob:
    count = plan.either(4, 20)

    def build(_: Profile) -> list[Experiment]:
        rng, source = Random(f"{plan.seed} {depth}"), SpaceSource(find_space("resnet"))
        bases = [rng.randint(LEAST_WIDTH, RESNET["widths"][0]) for _ in range(count)]
        widths = [[base << stage for stage in range(4)] for base in bases]
        return [source.of({**RESNET, "blocks": BLOCKS[depth], "widths": w}) for w in widths]

    profile = of_family(plan, device, "resnet")
    return TrialsJob(profile, f"resnet{depth}", build, count, plan.rounds, 0.007 * depth + 0.06, plan.seed)


jobs = needs(lambda plan: [trials(plan, device, depth) for device in plan.large_devices for depth in BLOCKS])


def records(session: Session) -> Iterator[Record]:
    for device in session.plan.large_devices:
        for depth in BLOCKS:
            comparison = compared(session, trials(session.plan, device, depth))
            for trial in comparison.trials:
                yield {**comparison.of, "depth": depth, **trial.to_json()}


SHOWN = ("additive", "flops_intercept")
STYLES = ("-", "--", ":")


def draw(figure: Any, records: Sequence[Record]) -> None:
    """How many networks are estimated within an error: nearer to the upper left is better; one line a depth."""
    for axes, title, rows in device_panels(figure, records, width=4.0, height=3.8):
        largest = 0.0
        for method in SHOWN:
            for style, (depth, own) in zip(STYLES, by(rows, "depth").items(), strict=False):
                errors = sorted(100 * abs(r["estimates"][method] / r["joules"] - 1) for r in own)
                largest = max(largest, errors[-1])
                shares = [100 * (i + 1) / len(errors) for i in range(len(errors))]
                label = f"{method_name(method)}, {depth} layers"
                axes.step(
                    [0, *errors, 1e3], [0, *shares, 100], style, where="post", color=colour_of(method), label=label
                )
        axes.set(xlim=(0, min(80.0, 1.05 * largest)), ylim=(0, 102))
        label_axes(axes, title, "error at most [%]", "networks [%]")
    shared_legend(figure)
