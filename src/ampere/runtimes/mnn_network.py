"""A described network in MNN."""

from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import MNN.nn as nn
import numpy as np

from ampere.core import Layer, Network
from ampere.core.errors import WorkerError
from ampere.core.kinds.kind import Shape
from ampere.core.trailing_ops import TrailingPlan
from ampere.core.wiring import Fresh, Node, Read, wire

from .mnn_layers import (
    DROPOUT,
    PADDED,
    UNPADDED,
    DoesNotFit,
    F,
    Var,
    across_down,
    as_image,
    build_layer,
    constant,
    image,
    parameter,
    plain,
    random_tensor,
    shape_of,
)

SEED = 0

Action = Callable[..., Var]


def trailing_action(plan: TrailingPlan, shape: Shape) -> Action:
    """A trailing operation on a value of that shape."""
    return ACTIONS[plan.action](plan, shape)


def _nothing(plan: TrailingPlan, shape: Shape) -> Action:
    """What no gradient comes from is on the way to nothing, and MNN, being lazy, would not compute it."""
    return lambda x: x


def _max_pool(plan: TrailingPlan, shape: Shape) -> Action:
    kernel = across_down(plan.sizes * (len(shape) - 2), 1)
    return lambda x: F.max_pool(image(x, shape), kernel, kernel, UNPADDED, [0, 0])


def _max_pool_same(plan: TrailingPlan, shape: Shape) -> Action:
    (kernel,), places = plan.sizes, len(shape) - 2
    window, pads = across_down((kernel,) * places, 1), across_down((kernel // 2,) * places, 0)
    return lambda x: F.max_pool(image(x, shape), window, [1, 1], PADDED, pads)


def _adaptive_pool(plan: TrailingPlan, shape: Shape) -> Action:
    """Windows of one size that cover everything: MNN has no others."""
    before, after = as_image(shape)[2:], as_image(plan.shape)[2:]
    stride = [n // m for n, m in zip(before, after)]
    kernel = [n - (m - 1) * s for n, m, s in zip(before, after, stride)]
    return lambda x: F.avg_pool(image(x, shape), kernel[::-1], stride[::-1], UNPADDED, [0, 0])


def _mean(plan: TrailingPlan, shape: Shape) -> Action:
    return lambda x: F.reduce_mean(plain(x, shape), list(plan.sizes), False)


def _last(plan: TrailingPlan, shape: Shape) -> Action:
    return lambda x: last_of(plain(x, shape), plan.sizes)


def last_of(x: Var, dimensions: Any) -> Var:
    """The last entry along each dimension that goes: what is taken of a sequence's outputs."""
    for dimension in reversed(dimensions):
        shape = list(shape_of(x))
        length = shape.pop(dimension)
        x = plain(F.split(x, [length - 1, 1], dimension)[1] if length > 1 else x, shape)
    return x


def part_of(x: Var, parts: int, part: int, shape: Shape) -> Var:
    return plain(F.split(plain(x, (parts, *shape)), [1] * parts, 0)[part], shape)


def _add(plan: TrailingPlan, shape: Shape) -> Action:
    def add(x: Var, y: Var) -> Var:
        alike = x.data_format == y.data_format and shape_of(x) == shape_of(y)
        return F.add(x, y) if alike else F.add(plain(x, shape), plain(y, shape))

    return add


def _concat(plan: TrailingPlan, shape: Shape) -> Action:
    partner = plan.partner or shape
    return lambda x, y: F.concat([plain(x, shape), plain(y, partner)], 1)


def _repeat(plan: TrailingPlan, shape: Shape) -> Action:
    across, down = across_down(plan.sizes * (len(shape) - 2), 1)
    return lambda x: F.resize(image(x, shape), float(across), float(down))


def _dropout(plan: TrailingPlan, shape: Shape) -> Action:
    return nn.dropout(DROPOUT).forward


ACTIONS: Dict[str, Callable[[TrailingPlan, Shape], Action]] = {
    "aside": _nothing,
    "draw": _nothing,
    "relu": lambda plan, shape: lambda x: F.relu(x, 0.0),
    "gelu": lambda plan, shape: lambda x: F.gelu(x),
    "dropout": _dropout,
    "add": _add,
    "max_pool": _max_pool,
    "max_pool_same": _max_pool_same,
    "adaptive_pool": _adaptive_pool,
    "softmax": lambda plan, shape: lambda x: F.softmax(plain(x, shape), -1),
    "mean": _mean,
    "copy": lambda plan, shape: lambda x: F.add(x, constant([0.0])),
    "last": _last,
    "repeat": _repeat,
    "enlarge": _repeat,
    "concat": _concat,
}


class Root(nn.Module):  # type: ignore[misc]
    """All that the optimizer trains."""


class Call(NamedTuple):
    """One operation, ready to run."""

    action: Callable[..., Var]
    reads: Tuple[Read, ...]
    writes: int
    frees: Tuple[int, ...]
    layer: Layer

    def made(self, values: Dict[int, Var]) -> Var:
        try:
            result = self.action(*[_viewed(values[read.value], read) for read in self.reads])
            shape_of(result)
            return result
        except DoesNotFit:
            name = self.layer.name or self.layer.kind
            raise WorkerError("variant_failed", f"MNN cannot build {name}: its sizes do not fit") from None


class Trained(NamedTuple):
    name: str  # of its variables too: gradients are found by name
    layer: Layer
    variables: Tuple[Var, ...]
    tensors: int  # of those, so many get a gradient; the others are statistics


class Chain:
    """A described network; the graph of its loss is built anew for every step, as in training loops of MNN's own."""

    def __init__(self, network: Network) -> None:
        wiring = wire(network)
        self._numbers = np.random.RandomState(SEED)
        self.root, self.trained = Root(), []  # type: Tuple[Any, List[Trained]]
        self._shapes, self._dangling = wiring.shapes, wiring.dangling
        self._modules: List[Any] = []
        self._fresh = {fresh.value: self._tensor(fresh) for fresh in wiring.fresh}
        self._calls = [
            Call(self._action(node), node.reads, node.writes, frees, node.layer)
            for node, frees in zip(wiring.nodes, wiring.frees)
        ]
        for module in (self.root, *self._modules):
            module.train(True)

    def loss(self) -> Var:
        values: Dict[int, Var] = {value: make() for value, make in self._fresh.items()}
        for call in self._calls:
            values[call.writes] = call.made(values)
            for value in call.frees:
                del values[value]
        last = self._calls[-1].writes
        loss = training_loss(values[last], self._shapes[last])
        for value in self._dangling:
            loss = F.add(loss, mean_of_squares(values[value], self._shapes[value]))
        return loss

    def _tensor(self, fresh: Fresh) -> Callable[[], Var]:
        """A gradient goes back to what is trained only: one number that is added makes it go as far as this tensor."""
        values = random_tensor(self._numbers, fresh.operand.shape)
        if not fresh.operand.grad:
            return lambda: values
        nudge = parameter([0.0])
        setattr(self.root, f"nudge{fresh.value}", nudge)
        return lambda: F.add(values, nudge)

    def _action(self, node: Node) -> Callable[..., Var]:
        if node.trailing is not None:
            return trailing_action(node.trailing, node.reads[0].shape)
        built = build_layer(node.layer, self._numbers)
        if built.module is not None:
            self._modules.append(built.module)
            if node.layer.trainable and node.layer.config.get("parameters") != 0:
                self._train(node.layer, built.module, built.tensors)
        return built.forward

    def _train(self, layer: Layer, module: Any, tensors: int) -> None:
        trained = Trained(f"layer{len(self.trained)}", layer, tuple(module.parameters), tensors)
        setattr(self.root, trained.name, module)
        for variable in trained.variables:
            variable.name = trained.name
        self.trained.append(trained)


def _viewed(x: Var, read: Read) -> Var:
    if read.parts > 1:
        return part_of(x, read.parts, read.part, read.shape)
    return last_of(x, read.last_of) if read.last_of else x


def training_loss(output: Var, shape: Shape) -> Var:
    """Cross entropy for class scores; else the mean of squares."""
    if len(shape) != 2 or shape[1] < 2:
        return mean_of_squares(output, shape)
    labels = np.random.RandomState(SEED).randint(shape[1], size=shape[0])
    scores = F.softmax(plain(output, shape), -1)
    return nn.loss.cross_entropy(scores, constant(np.eye(shape[1])[labels]))


def mean_of_squares(output: Var, shape: Shape) -> Var:
    return F.reduce_mean(F.square(plain(output, shape)), [], False)
