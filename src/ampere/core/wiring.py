"""Which tensor each layer of a described network reads: a network's layers are known, its wires are not.

A layer reads, in this order of preference, without computing anything:
  the most recent value, if it has as many values as the layer needs, reshaped;
  one of two or three equal parts of it, where heads of attention are read;
  the most recent value of exactly its shape;
  the last entries of the most recent value along a dimension;
  a fresh random tensor.
Values with and without gradient are not taken for each other, so that each layer's backward is exactly the described
one.
"""

from dataclasses import replace
from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from ampere.core.kinds import KINDS
from ampere.core.kinds.kind import Operand, Shape, product

from .layer import Layer, TrailingOp
from .network import Network
from .trailing_ops import (
    TrailingPlan,
    carried_out,
    dimensions_to_drop,
    plan_trailing,
    usual_loss,
    with_dropout,
    without_dimensions,
    without_loss,
)


def operands(layer: Layer) -> Tuple[Operand, ...]:
    """The tensors that a layer reads."""
    return KINDS[layer.kind].operands(layer)


def shape_out(layer: Layer) -> Shape:
    return tuple(KINDS[layer.kind].shape_out(layer))


def has_gradient(layer: Layer) -> bool:
    """Whether a gradient comes back into the layer's output."""
    return layer.input_grad or (layer.trainable and KINDS[layer.kind].parametric)


class Fresh(NamedTuple):
    """A tensor that no layer produces."""

    value: int
    operand: Operand


class Read(NamedTuple):
    value: int
    shape: Shape  # in which it is read
    parts: int = 1  # into which the value is cut,
    part: int = 0  # and which of them is read
    last_of: Tuple[int, ...] = ()  # dimensions of which only the last entry is read


class Node(NamedTuple):
    """Value number `writes` is made by a layer, or by one of its trailing operations."""

    writes: int
    shape: Shape
    reads: Tuple[Read, ...]
    layer: Layer
    trailing: Optional[TrailingPlan]  # None where the layer itself is meant
    carries_out: Tuple[TrailingOp, ...] = ()  # what the plan amounts to: an operation may not find what it describes


class Wiring(NamedTuple):
    shapes: Tuple[Shape, ...]  # of each value
    fresh: Tuple[Fresh, ...]
    nodes: Tuple[Node, ...]
    frees: Tuple[Tuple[int, ...], ...]  # for each node, the values that it is the last to read
    dangling: Tuple[int, ...]  # made with gradient, read by nobody, and not the output, which is the last value


def wire(network: Network) -> Wiring:
    wirer = _Wirer()
    following = [*network.layers[1:], None]
    for layer, after in zip(network.layers, following):
        wirer.add_layer(layer, after)
    return wirer.finish()


def as_built(network: Network) -> Network:
    """The network with the trailing operations that are carried out where it is built from its layers, and a loss.

    A few layers of a network may lack what their trailing operations read, such as the image that a gate scales.
    """
    built: List[Layer] = []
    nodes = wire(network).nodes
    for node in nodes:
        if node.trailing is None:
            built.append(replace(node.layer, trailing=()))
        else:
            built[-1] = replace(built[-1], trailing=(*built[-1].trailing, *node.carries_out))
    described = network.layers[-1].trailing
    loss = described[len(without_loss(described)) :] or usual_loss(nodes[-1].shape)
    last = replace(built[-1], trailing=(*built[-1].trailing, *loss))
    return replace(network, layers=(*built[:-1], last))


class _Wirer:
    def __init__(self) -> None:
        self.shapes: List[Shape] = []
        self.grads: List[bool] = []
        self.fresh: Dict[int, Fresh] = {}
        self.nodes: List[Node] = []
        self.read: Set[int] = set()

    def add_layer(self, layer: Layer, following: Optional[Layer]) -> None:
        reads: List[Read] = []
        for operand in operands(layer):
            reads.append(self._find(operand, reads) or self._new(operand))
        current = self._add_node(shape_out(layer), has_gradient(layer), reads, layer, None)
        wanted = product(operands(following)[0].shape) if following else 0
        for op in with_dropout(layer.trailing if following else without_loss(layer.trailing)):
            current = self._add_trailing(op, current, layer, wanted)

    def finish(self) -> Wiring:
        output = len(self.shapes) - 1
        made = [node.writes for node in self.nodes]
        dangling = tuple(i for i in made if i not in self.read and self.grads[i] and i != output)
        return Wiring(tuple(self.shapes), tuple(self.fresh.values()), tuple(self.nodes), self._frees(), dangling)

    def _frees(self) -> Tuple[Tuple[int, ...], ...]:
        last_reader = {read.value: number for number, node in enumerate(self.nodes) for read in node.reads}
        freed: List[List[int]] = [[] for _ in self.nodes]
        for value, number in last_reader.items():
            if value not in self.fresh:
                freed[number].append(value)
        return tuple(map(tuple, freed))

    def _add_trailing(self, op: TrailingOp, current: int, layer: Layer, wanted: int) -> int:
        grad, shape = self.grads[current], self.shapes[current]
        plan = plan_trailing(op, shape, grad, wanted)
        reads = [Read(current, shape)]
        if plan.partner is not None:
            operand = Operand(plan.partner, grad)
            reads.append(self._find_partner(operand, current) or self._new(operand._replace(grad=False)))
        read = sum(product(read.shape) for read in reads)
        return self._add_node(plan.shape, grad, reads, layer, plan, carried_out(op, plan, read, grad))

    def _add_node(
        self,
        shape: Shape,
        grad: bool,
        reads: Sequence[Read],
        layer: Layer,
        plan: Optional[TrailingPlan],
        carries_out: Tuple[TrailingOp, ...] = (),
    ) -> int:
        self.read.update(read.value for read in reads)
        writes = self._add_value(shape, grad)
        self.nodes.append(Node(writes, shape, tuple(reads), layer, plan, carries_out))
        return writes

    def _add_value(self, shape: Shape, grad: bool) -> int:
        self.shapes.append(tuple(shape))
        self.grads.append(grad)
        return len(self.shapes) - 1

    def _new(self, operand: Operand) -> Read:
        value = self._add_value(operand.shape, operand.grad)
        self.fresh[value] = Fresh(value, operand)
        return Read(value, operand.shape)

    def _find(self, operand: Operand, taken: Sequence[Read]) -> Optional[Read]:
        if operand.tokens:
            return None
        if taken and taken[-1].part + 1 < taken[-1].parts:
            return self._part_of(taken[-1].value, operand.shape, taken[-1].part + 1)
        made = (node.writes for node in reversed(self.nodes) if self._may_read(node.writes, operand, taken))
        recent = next(made, None)
        if recent is None:
            return self._find_exact(operand, taken)
        if product(self.shapes[recent]) == product(operand.shape):
            return Read(recent, operand.shape)
        cut, exact = self._part_of(recent, operand.shape, 0), self._find_exact(operand, taken)
        return cut or exact or self._last_of(recent, operand.shape)

    def _find_exact(self, operand: Operand, taken: Sequence[Read]) -> Optional[Read]:
        recent = reversed(range(len(self.shapes)))
        fits = (v for v in recent if self.shapes[v] == operand.shape and self._may_read(v, operand, taken))
        return next((Read(v, operand.shape) for v in fits), None)

    def _may_read(self, value: int, operand: Operand, taken: Sequence[Read]) -> bool:
        tokens = value in self.fresh and self.fresh[value].operand.tokens
        return self.grads[value] == operand.grad and not tokens and all(value != read.value for read in taken)

    def _part_of(self, value: int, shape: Shape, part: int) -> Optional[Read]:
        """Queries, keys and values are often made by one layer, and then cut."""
        parts, rest = divmod(product(self.shapes[value]), product(shape))
        return Read(value, shape, parts, part) if len(shape) == 4 and parts in (2, 3) and not rest else None

    def _last_of(self, value: int, shape: Shape) -> Optional[Read]:
        """The last entries of a value, where they fit: of a sequence's outputs often only the last is read."""
        whole = self.shapes[value]
        gone = dimensions_to_drop(whole, product(shape))
        fits = gone is not None and 0 not in gone and without_dimensions(whole, gone) == shape
        return Read(value, shape, last_of=gone) if fits and gone else None

    def _find_partner(self, operand: Operand, current: int) -> Optional[Read]:
        """A tensor from before the layer, best of all one that nothing has read yet: the other end of a shortcut."""
        layer = self.nodes[-1].layer
        made = [
            node.writes for node in self.nodes if node.layer is not layer and self.grads[node.writes] == operand.grad
        ]
        fitting = [v for v in reversed(made) if product(self.shapes[v]) == product(operand.shape) and v != current]
        unread = [v for v in fitting if v not in self.read]
        return next((Read(v, operand.shape) for v in [*unread, *fitting]), None)
