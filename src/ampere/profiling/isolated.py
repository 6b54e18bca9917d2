"""Layers and operations trained alone, one stage of a step at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from ampere.core import Layer, Network, TrailingOp, work
from ampere.core.kinds import resized
from ampere.core.kinds.kind import Shape
from ampere.core.trailing_ops import plan_trailing, with_dropout
from ampere.core.wiring import has_gradient, shape_out
from ampere.devices import VariantDied, VariantFailed
from ampere.profiling.strategies.strategy import Collected, Guess, MeasurementContext, Progress, Task
from ampere.storage.profile import Observation

from .experiment import Experiment

# Layers and operations trained alone, one stage of a step at a time.

NARROWER, WIDER = 0.4, 1.2  # how far from a badly known operation others are tried, as nn-Meter does


def stages_of(layer: Layer) -> tuple[str, ...]:
    """The stages in which a layer has something to do."""
    comes_back = (
        layer.input_grad and any(t.backward for t in layer.trailing)
        if layer.kind == "nonparametric"
        else layer.backward
    )
    busy = {"forward": True, "backward": comes_back, "update": work(layer).parameters > 0}
    return tuple(stage for stage, something_to_do in busy.items() if something_to_do)


def alone(layer: Layer, stage: str, purpose: str) -> Experiment:
    network = Network((layer,), int(layer.config.get("batch", 1)))
    return Experiment(network, {"layers": network.to_json()}, purpose, stage=stage)


def operations(layer: Layer) -> Iterator[Layer]:
    """The parametric operation without its tail, then each operation of the tail as a layer of its own."""
    if layer.kind != "nonparametric":
        yield replace(layer, trailing=())
    shape, grad = shape_out(layer), has_gradient(layer)
    for tail in with_dropout(layer.trailing):
        yield _as_layer(tail, shape, grad, layer.name)
        shape = plan_trailing(tail, shape, grad).shape


def _as_layer(tail: TrailingOp, shape: Shape, grad: bool, name: str) -> Layer:
    config = {"batch": shape[0] if shape else 1, "size": tuple(shape[1:])}
    return Layer("nonparametric", config, 1, 1, (tail,), name, trainable=False, input_grad=grad)


def can_stand_alone(operation: Layer) -> bool:
    """A loss is always the runtime's own, and a module that no table knows cannot be built from its description."""
    ends_a_loss = any(tail.op == "reduce" and tail.values_out <= 2 for tail in operation.trailing)
    return operation.kind != "opaque" and not ends_a_loss


def near(operation: Layer, rng: Random) -> Layer:
    """The same operation on somewhat more or fewer channels; itself where its sizes are tied to each other."""
    first, second = rng.uniform(NARROWER, WIDER), rng.uniform(NARROWER, WIDER)
    if operation.kind == "nonparametric":
        return _tail_near(operation, first)
    if operation.config.get("groups", 1) > 1:
        return operation
    return resized(operation, _scaled(operation.channels_in, first), _scaled(operation.channels_out, second))


def _tail_near(operation: Layer, factor: float) -> Layer:
    size = list(operation.config["size"])
    if not size:
        return operation
    channels = 0 if len(size) > 2 else -1  # images have them first, sequences last
    before, size[channels] = size[channels], _scaled(size[channels], factor)
    grow = size[channels] / before
    (tail,) = operation.trailing
    grown = replace(tail, values_in=tail.values_in * grow, values_out=tail.values_out * grow)
    return replace(operation, config={**operation.config, "size": tuple(size)}, trailing=(grown,))


def _scaled(channels: int, factor: float) -> int:
    return max(1, round(channels * factor))


# Lone layers and operations, measured one after the other until the time is over.

FRUITLESS_AT_MOST = 50  # networks in a row of which nothing could be measured


class Isolated:
    """One run that measures layers or operations alone, one after the other, until the time is over."""

    def __init__(self, context: MeasurementContext, task: Task, purpose: str) -> None:
        self.seen: list[Observation] = list(task.known)
        self.rng = Random(task.seed)
        self._context, self._task, self._purpose = context, task, purpose
        self._guess = Guess()
        self._done = {layer for o in task.known for layer in o.network.layers}
        self._refused: list[str] = []

    def share_used(self) -> float:
        """Of the time: it is over at 1."""
        return (self._context.clock() - self._task.began) / self._task.goal.seconds

    def layers(self) -> Iterator[tuple[Layer, ...]]:
        """Of the network that the profile is for, and then of random ones like it, while that brings anything."""
        yield tuple(self._context.source.original().network.distinct)
        fruitless = 0
        while fruitless < FRUITLESS_AT_MOST:
            before = len(self.seen)
            yield tuple(self._context.source.sample(self.rng).network.distinct)
            fruitless = fruitless + 1 if len(self.seen) == before else 0

    def measure(self, lone: list[Layer]) -> None:
        """Every stage of each, the new ones only; all of them once more where none is new."""
        chosen = [layer for layer in dict.fromkeys(lone) if layer not in self._done] or lone
        for layer in chosen:
            self._done.add(layer)
            for stage in stages_of(layer):
                if self.share_used() < 1:
                    self._observe(layer, stage)

    def collected(self, thinking_seconds: float = 0.0) -> Collected:
        return Collected(tuple(self.seen), thinking_seconds=thinking_seconds, refused=tuple(self._refused))

    def _observe(self, layer: Layer, stage: str) -> None:
        experiment, goal = alone(layer, stage, self._purpose), self._task.goal
        what = layer.trailing[0].op if layer.kind == "nonparametric" and layer.trailing else layer.kind
        doing = f"{stage} of a lone {what}"
        self._task.on_progress(Progress(self.share_used() * goal.seconds, goal.seconds, len(self.seen), None, doing))
        try:
            found = self._context.observe(experiment, self._guess.seconds(experiment.network))
        except (VariantDied, VariantFailed) as error:
            self._refused.append(f"{doing}: {error}")
            return
        self.seen += [] if found is None else [found]
