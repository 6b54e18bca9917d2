"""Whole random networks only, each trained once: the data of a baseline that does not distinguish layers."""

from __future__ import annotations

from random import Random

from ampere.devices import VariantDied, VariantFailed

from .strategy import Collected, Guess, MeasurementContext, Progress, Strategy, Task


def collect(context: MeasurementContext, task: Task) -> Collected:
    """Trains the original network, then random ones, until the time is over."""
    seen, refused = list(task.known), []
    rng, guess = Random(task.seed), Guess(task.known)
    experiment = context.source.original()
    while (elapsed := context.clock() - task.began) < task.goal.seconds:
        task.on_progress(Progress(elapsed, task.goal.seconds, len(seen), None, "whole networks"))
        try:
            found = context.observe(experiment, guess.seconds(experiment.network))
        except (VariantDied, VariantFailed) as error:
            refused.append(f"network of {context.source.name}: {error}")
            found = None
        if found is not None:
            seen.append(found)
            guess.learn(found)
        experiment = context.source.sample(rng)
    return Collected(tuple(seen), refused=tuple(refused))


STRATEGY = Strategy(collect, any_iterations=True)
