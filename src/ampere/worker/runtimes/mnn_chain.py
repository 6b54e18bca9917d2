"""A described network in MNN: the graph of its loss is built anew for every step, as in training loops of MNN's own."""

from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import MNN.nn as nn
import numpy as np

from ...network import Layer, Network
from ...network.kinds.kind import Shape
from ..errors import WorkerError
from ..wiring import Fresh, Node, Read, wire
from .mnn_layers import build_layer
from .mnn_tails import last_of, part_of, tail_action
from .mnn_tensors import DoesNotFit, F, Var, constant, parameter, plain, random_tensor, shape_of

SEED = 0


class Root(nn.Module):  # type: ignore[misc]
    """All that the optimiser trains."""


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
    name: str  # of its variables too: gradients are told by name
    layer: Layer
    variables: Tuple[Var, ...]
    tensors: int  # of those, so many get a gradient; the others are statistics


class Chain:
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
        if node.tail is not None:
            return tail_action(node.tail, node.reads[0].shape)
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
