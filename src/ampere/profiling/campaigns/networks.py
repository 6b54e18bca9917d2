"""Whole random networks and nothing else, each trained once: what a rival that knows no layers would gather."""

from __future__ import annotations

from random import Random

from ampere.devices import VariantDied, VariantFailed

from ..merging import merged
from .campaign import Bench, Campaign, Gathered, Progress, Task
from .guessing import Guess


def gather(bench: Bench, task: Task) -> Gathered:
    seen, refused = list(task.known), []
    rng, guess = Random(task.seed), Guess(task.known)
    experiment = bench.source.original()
    while (elapsed := bench.clock() - task.began) < task.goal.seconds:
        task.on_progress(Progress(elapsed, task.goal.seconds, len(seen), None, "whole networks"))
        try:
            found = bench.observe(experiment, guess.seconds(experiment.network))
        except (VariantDied, VariantFailed) as error:
            refused.append(f"network of {bench.source.name}: {error}")
            found = None
        if found is not None:
            seen.append(found)
            guess.learn(found)
        experiment = bench.source.sample(rng)
    return Gathered(merged(seen), refused=tuple(refused))


CAMPAIGN = Campaign(gather)
