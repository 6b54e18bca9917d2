"""Lone layers and operations, measured one after the other until the time is over."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from ampere.devices import VariantDied, VariantFailed
from ampere.network import Layer
from ampere.profiles.profile import Observation

from .campaigns.campaign import Bench, Gathered, Progress, Task
from .campaigns.guessing import Guess
from .isolated import alone, stages_of
from .merging import merged

FRUITLESS_AT_MOST = 50  # networks in a row of which nothing could be measured


class Gathering:
    def __init__(self, bench: Bench, task: Task, purpose: str) -> None:
        self.seen: list[Observation] = list(task.known)
        self.rng = Random(task.seed)
        self._bench, self._task, self._purpose = bench, task, purpose
        self._guess = Guess()
        self._done = {layer for o in task.known for layer in o.network.layers}
        self._refused: list[str] = []

    def share_used(self) -> float:
        """Of the time: it is over at 1."""
        return (self._bench.clock() - self._task.began) / self._task.goal.seconds

    def layers(self) -> Iterator[tuple[Layer, ...]]:
        """Of the network that the profile is for, and then of random ones like it, while that brings anything."""
        yield tuple(self._bench.source.original().network.distinct)
        fruitless = 0
        while fruitless < FRUITLESS_AT_MOST:
            before = len(self.seen)
            yield tuple(self._bench.source.sample(self.rng).network.distinct)
            fruitless = fruitless + 1 if len(self.seen) == before else 0

    def measure(self, lone: list[Layer]) -> None:
        """Every stage of each, the new ones only; all of them once more where none is new."""
        chosen = [layer for layer in dict.fromkeys(lone) if layer not in self._done] or lone
        for layer in chosen:
            self._done.add(layer)
            for stage in stages_of(layer):
                if self.share_used() < 1:
                    self._observe(layer, stage)

    def gathered(self, thinking_seconds: float = 0.0) -> Gathered:
        return Gathered(merged(self.seen), thinking_seconds=thinking_seconds, refused=tuple(self._refused))

    def _observe(self, layer: Layer, stage: str) -> None:
        experiment, goal = alone(layer, stage, self._purpose), self._task.goal
        doing = f"{stage} of a lone {layer.tail[0].op if layer.kind == 'glue' and layer.tail else layer.kind}"
        self._task.on_progress(Progress(self.share_used() * goal.seconds, goal.seconds, len(self.seen), None, doing))
        try:
            found = self._bench.observe(experiment, self._guess.seconds(experiment.network))
        except (VariantDied, VariantFailed) as error:
            self._refused.append(f"{doing}: {error}")
            return
        self.seen += [] if found is None else [found]
