"""ResNets deeper than any that was profiled: does the error grow as layers are added up?"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from ampere.evaluation.catalogue import Record
from ampere.evaluation.comparing import compared
from ampere.evaluation.lab import Lab
from ampere.evaluation.plan import Plan
from ampere.evaluation.profile_job import of_family
from ampere.evaluation.trials_job import TrialsJob, needs
from ampere.models.loading import find_space
from ampere.models.spaces import RESNET
from ampere.profiling.experiment import Experiment
from ampere.profiling.sources import SpaceSource
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


def records(lab: Lab) -> Iterator[Record]:
    for device in lab.plan.large_devices:
        for depth in BLOCKS:
            comparison = compared(lab, trials(lab.plan, device, depth))
            for trial in comparison.trials:
                yield {**comparison.of, "depth": depth, **trial.to_json()}
