"""Isolated layers and operations: each is trained alone, one stage of a step at a time."""

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

NARROWER, WIDER = 0.4, 1.2  # range of the channels that are tried near an operation, as in nn-Meter
FRUITLESS_AT_MOST = 50  # networks in a row of which nothing could be measured


def stages_of(layer: Layer) -> tuple[str, ...]:
    """The stages of a step in which a layer has work to do."""
    has_backward = (
        layer.input_grad and any(t.backward for t in layer.trailing)
        if layer.kind == "nonparametric"
        else layer.backward
    )
    busy = {"forward": True, "backward": has_backward, "update": work(layer).parameters > 0}
    return tuple(stage for stage, is_busy in busy.items() if is_busy)


def alone(layer: Layer, stage: str, purpose: str) -> Experiment:
    """The experiment that trains one stage of one layer alone."""
    network = Network((layer,), int(layer.config.get("batch", 1)))
    return Experiment(network, {"layers": network.to_json()}, purpose, stage=stage)


def operations(layer: Layer) -> Iterator[Layer]:
    """A layer's parametric operation, then each of its trailing operations as a layer of its own."""
    if layer.kind != "nonparametric":
        yield replace(layer, trailing=())
    shape, grad = shape_out(layer), has_gradient(layer)
    for op in with_dropout(layer.trailing):
        yield _as_layer(replace(op, weight=1.0), shape, grad, layer.name)
        shape = plan_trailing(op, shape, grad).shape


def _as_layer(op: TrailingOp, shape: Shape, grad: bool, name: str) -> Layer:
    config = {"batch": shape[0] if shape else 1, "size": tuple(shape[1:])}
    return Layer("nonparametric", config, 1, 1, (op,), name, trainable=False, input_grad=grad)


def can_stand_alone(operation: Layer) -> bool:
    """Whether an operation can be trained alone: not a loss, which the runtime provides, nor an opaque module."""
    ends_a_loss = any(op.op == "reduce" and op.values_out <= 2 for op in operation.trailing)
    return operation.kind != "opaque" and not ends_a_loss


def near(operation: Layer, rng: Random) -> Layer:
    """The same operation with somewhat more or fewer channels; itself where its sizes depend on each other."""
    first, second = rng.uniform(NARROWER, WIDER), rng.uniform(NARROWER, WIDER)
    if operation.kind == "nonparametric":
        return _trailing_near(operation, first)
    if operation.config.get("groups", 1) > 1:
        return operation
    return resized(operation, _scaled(operation.channels_in, first), _scaled(operation.channels_out, second))


def _trailing_near(operation: Layer, factor: float) -> Layer:
    size = list(operation.config["size"])
    if not size:
        return operation
    channels = 0 if len(size) > 2 else -1  # images have them first, sequences last
    before, size[channels] = size[channels], _scaled(size[channels], factor)
    grow = size[channels] / before
    (op,) = operation.trailing
    grown = op.grown(grow)
    return replace(operation, config={**operation.config, "size": tuple(size)}, trailing=(grown,))


def _scaled(channels: int, factor: float) -> int:
    return max(1, round(channels * factor))


class Isolated:
    """A run that measures isolated layers or operations until the time is over or there are enough."""

    def __init__(self, context: MeasurementContext, task: Task, purpose: str) -> None:
        self.seen: list[Observation] = list(task.known)
        self.rng = Random(task.seed)
        self._context, self._task, self._purpose = context, task, purpose
        self._guess = Guess()
        self._done = {layer for o in task.known for layer in o.network.layers}
        self._refused: list[str] = []

    def share_used(self) -> float:
        """The share of the time that is used, or of the samples that are taken; the run is over at 1."""
        if self._task.goal.samples:
            return len(self.seen) / self._task.goal.samples
        return (self._context.clock() - self._task.began) / self._task.goal.seconds

    def layers(self) -> Iterator[tuple[Layer, ...]]:
        """The distinct layers of the source's original network, then of random ones, while new ones are measured."""
        yield tuple(self._context.source.original().network.distinct)
        fruitless = 0
        while fruitless < FRUITLESS_AT_MOST:
            before = len(self.seen)
            yield tuple(self._context.source.sample(self.rng).network.distinct)
            fruitless = fruitless + 1 if len(self.seen) == before else 0

    def measure(self, layers: list[Layer]) -> None:
        """Measures every stage of the new layers; of all of them again where none is new."""
        chosen = [layer for layer in dict.fromkeys(layers) if layer not in self._done] or layers
        for layer in chosen:
            self._done.add(layer)
            for stage in stages_of(layer):
                if self.share_used() < 1:
                    self._observe(layer, stage)

    def collected(self, thinking_seconds: float = 0.0) -> Collected:
        """What the run has measured."""
        return Collected(tuple(self.seen), thinking_seconds=thinking_seconds, refused=tuple(self._refused))

    def _observe(self, layer: Layer, stage: str) -> None:
        experiment, goal = alone(layer, stage, self._purpose), self._task.goal
        what = layer.trailing[0].op if layer.kind == "nonparametric" and layer.trailing else layer.kind
        doing = f"{stage} of an isolated {what}"
        self._task.on_progress(Progress(self.share_used() * goal.seconds, goal.seconds, len(self.seen), None, doing))
        try:
            found = self._context.observe(experiment, self._guess.seconds(experiment.network))
        except (VariantDied, VariantFailed) as error:
            self._refused.append(f"{doing}: {error}")
            return
        self.seen += [] if found is None else [found]
