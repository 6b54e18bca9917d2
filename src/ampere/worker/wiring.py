"""Which tensor each layer of a described network reads: a network's layers are known, its wires are not.

A layer reads the most recent value if it has as many values as the layer needs (reshaped, which
is free); else the most recent one of exactly its shape; else a fresh random tensor. Values with and
without gradient are not taken for each other, so each layer's backward is exactly the described one.
"""

from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..network import KINDS, Layer, Network, TailOp
from ..network.kinds.kind import Shape, product
from .tails import TailPlan, plan_tail

FREE_OF_PARAMETERS = ("matmul", "attention", "glue")


class Fresh(NamedTuple):
    """A tensor that no layer produces: random numbers, or token numbers below `tokens`."""

    value: int
    shape: Shape
    grad: bool
    tokens: int


class Read(NamedTuple):
    value: int
    shape: Shape  # as the reader wants it
    reshaped: bool


class Node(NamedTuple):
    """Value number `writes` is made by a layer, or by an operation of a layer's tail."""

    writes: int
    shape: Shape
    reads: Tuple[Read, ...]
    layer: Layer
    tail: Optional[TailPlan]  # None where the layer itself is meant


class Wiring(NamedTuple):
    fresh: Tuple[Fresh, ...]
    nodes: Tuple[Node, ...]
    frees: Tuple[Tuple[int, ...], ...]  # for each node, the values that it is the last to read
    dangling: Tuple[int, ...]  # made with gradient, read by nobody, and not the output, which is the last value


def wire(network: Network) -> Wiring:
    wirer = _Wirer()
    for layer in network.layers:
        wirer.add_layer(layer, last=layer is network.layers[-1])
    return wirer.finish()


class _Wirer:
    def __init__(self) -> None:
        self.shapes: List[Shape] = []
        self.grads: List[bool] = []
        self.fresh: Dict[int, Fresh] = {}
        self.nodes: List[Node] = []
        self.read: Set[int] = set()

    def add_layer(self, layer: Layer, last: bool) -> None:
        reads = self._operands(layer)
        grad = layer.input_grad or (layer.trainable and layer.kind not in FREE_OF_PARAMETERS)
        shape = reads[0].shape if layer.kind == "glue" else KINDS[layer.kind].shape_out(layer)
        current = self._add_node(shape, grad, reads, layer, None)
        for tail in without_loss(layer.tail) if last else layer.tail:
            current = self._add_tail(tail, current, layer)

    def finish(self) -> Wiring:
        output = len(self.shapes) - 1
        made = [node.writes for node in self.nodes]
        dangling = tuple(i for i in made if i not in self.read and self.grads[i] and i != output)
        return Wiring(tuple(self.fresh.values()), tuple(self.nodes), self._frees(), dangling)

    def _frees(self) -> Tuple[Tuple[int, ...], ...]:
        last_reader = {read.value: number for number, node in enumerate(self.nodes) for read in node.reads}
        return tuple(
            tuple(v for v in last_reader if last_reader[v] == number and v not in self.fresh)
            for number in range(len(self.nodes))
        )

    def _operands(self, layer: Layer) -> Tuple[Read, ...]:
        reads: List[Read] = []
        for shape in operand_shapes(layer):
            found = None if layer.kind == "embedding" else self._find(shape, layer.input_grad, reads)
            reads.append(found or self._new(shape, layer.input_grad, tokens=_tokens(layer)))
        return tuple(reads)

    def _add_tail(self, tail: TailOp, current: int, layer: Layer) -> int:
        plan = plan_tail(tail, self.shapes[current])
        reads = [Read(current, self.shapes[current], False)]
        if plan.partner:
            grad = self.grads[current]
            reads.append(self._find_exact(plan.partner, grad, reads) or self._new(plan.partner, False))
        return self._add_node(plan.shape, self.grads[current], tuple(reads), layer, plan)

    def _add_node(
        self, shape: Shape, grad: bool, reads: Tuple[Read, ...], layer: Layer, tail: Optional[TailPlan]
    ) -> int:
        self.read.update(read.value for read in reads)
        index = self._add_value(shape, grad)
        self.nodes.append(Node(index, self.shapes[index], reads, layer, tail))
        return index

    def _add_value(self, shape: Shape, grad: bool) -> int:
        self.shapes.append(tuple(shape))
        self.grads.append(grad)
        return len(self.shapes) - 1

    def _new(self, shape: Shape, grad: bool, tokens: int = 0) -> Read:
        index = self._add_value(shape, grad and not tokens)
        self.fresh[index] = Fresh(index, tuple(shape), grad and not tokens, tokens)
        return Read(index, tuple(shape), False)

    def _find(self, shape: Shape, grad: bool, taken: Sequence[Read]) -> Optional[Read]:
        free = [node.writes for node in self.nodes if self._fits(node.writes, grad, taken)]
        if free and product(self.shapes[free[-1]]) == product(shape):
            return Read(free[-1], shape, self.shapes[free[-1]] != shape)
        return self._find_exact(shape, grad, taken)

    def _find_exact(self, shape: Shape, grad: bool, taken: Sequence[Read]) -> Optional[Read]:
        recent = reversed(range(len(self.shapes)))
        fits = (i for i in recent if self.shapes[i] == shape and self._fits(i, grad, taken))
        return next((Read(i, shape, False) for i in fits), None)

    def _fits(self, index: int, grad: bool, taken: Sequence[Read]) -> bool:
        tokens = index in self.fresh and self.fresh[index].tokens
        return self.grads[index] == grad and not tokens and all(index != read.value for read in taken)


def operand_shapes(layer: Layer) -> Tuple[Shape, ...]:
    first, c = KINDS[layer.kind].shape_in(layer), layer.config
    if layer.kind == "matmul":
        return (first, (c["batch"], layer.channels_in, layer.channels_out))
    if layer.kind == "attention":
        keys = (c["batch"], c["heads"], c["keys"], layer.channels_in)
        return (first, keys, keys)
    if layer.kind == "glue":
        return (_glue_shape(layer),)
    return (tuple(first),)


def _glue_shape(layer: Layer) -> Shape:
    """A glue layer is all tail: its input is what the first operation reads."""
    batch = layer.config["batch"]
    values = layer.tail[0].values_in if layer.tail else batch
    return (batch, max(1, round(values / batch)))


def _tokens(layer: Layer) -> int:
    return layer.channels_in if layer.kind == "embedding" else 0


def without_loss(tail: Tuple[TailOp, ...]) -> Tuple[TailOp, ...]:
    """The last layer's reduction to one value ends the loss, which the runtime computes itself."""
    if not tail or tail[-1].op != "reduce" or tail[-1].values_out > 1:
        return tail
    # Before it comes a softmax (cross entropy) or a square (mean of squares).
    before = tail[:-1]
    return before[:-1] if before and before[-1].op in ("reduce", "elementwise") else before
