"""Whole random networks and nothing else, each trained once: what a rival that knows no layers would gather."""

from __future__ import annotations

from random import Random

from ampere.devices import VariantDied, VariantFailed
from ampere.profiling.observing import merged

from .strategy import Collected, Guess, MeasurementContext, Progress, Strategy, Task


def gather(bench: MeasurementContext, task: Task) -> Collected:
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
    return Collected(merged(seen), refused=tuple(refused))


STRATEGY = Strategy(gather)
