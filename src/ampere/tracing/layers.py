"""From operations to layers: each begins with a parametric operation, and what follows is its tail."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from torch import nn

from ampere.network import Layer, TailOp

from .calls import Call
from .drafts import drafted, with_parameters
from .opaque import find_opaque, opaque_layer
from .ops import UNKNOWN
from .record import Cost, Operation


@dataclass
class Group:
    """The operations of one layer: its own (several if it is opaque) and its tail's."""

    own: list[Operation]
    opaque: Call | None = None
    tail: list[Operation] = field(default_factory=list)


class Layers:
    def __init__(self, batch: int, names: dict[nn.Parameter, str]) -> None:
        self.batch = batch
        self.names = names
        self.counted: set[nn.Parameter] = set()

    def build(self, operations: Iterable[Operation]) -> list[Layer]:
        return [self._layer(group) for group in grouped(list(operations))]

    def _layer(self, group: Group) -> Layer:
        values, tensors = self._parameters(group.own)
        if group.opaque is not None:
            layer = opaque_layer(group.opaque, group.own, values, tensors)
        elif group.own:
            layer = with_parameters(self._drafted(group.own[0]), values, tensors)
        else:
            layer = Layer("glue", {"batch": self.batch}, 1, 1, trainable=False, input_grad=False)
        return replace(layer, tail=tuple(map(_tail, group.tail)))

    def _drafted(self, operation: Operation) -> Layer:
        layer = drafted(operation)
        return replace(layer, name=self._name(operation))

    def _name(self, operation: Operation) -> str:
        if operation.trusted or not operation.parameters:
            return operation.call.path or operation.name
        name = self.names[max(operation.parameters, key=lambda p: p.numel())]
        module, _, attribute = name.rpartition(".")
        return module if module and attribute in ("weight", "bias") else name

    def _parameters(self, operations: list[Operation]) -> tuple[int, int]:
        """How many parameters these operations are the first to train: the optimiser visits each once."""
        used = [p for o in operations if o.backward for p in o.parameters if p.requires_grad]
        new = [p for p in dict.fromkeys(used) if p not in self.counted]
        self.counted.update(new)
        return sum(p.numel() for p in new), len(new)


def grouped(operations: list[Operation]) -> list[Group]:
    groups = [Group([])]
    covering = find_opaque(operations)
    by_call: dict[Call, Group] = {}
    for operation in operations:
        call = covering.get(operation)
        if call is not None and call in by_call:
            by_call[call].own.append(operation)
        elif call is not None:
            by_call[call] = Group([operation], call)
            groups.append(by_call[call])
        elif operation.draft is not None:
            groups.append(Group([operation]))
        else:
            groups[-1].tail.append(operation)
    return groups if groups[0].tail else groups[1:]


def _tail(operation: Operation) -> TailOp:
    name = "other" if operation.op_class == UNKNOWN else operation.op_class
    return TailOp(name, operation.values_in, operation.values_out, operation.backward)


def settle(operations: list[Operation], reached: dict[int, bool], cost_of_node: dict[int, Cost]) -> None:
    """Brings backward to the operations it belongs to."""
    ran = set(cost_of_node)
    for operation in operations:
        nodes = [n for n in operation.nodes if _runs(n, operation, reached, ran)]
        operation.backward = bool(nodes)
        for node in nodes:
            operation.cost.add(cost_of_node.pop(node, Cost()))


def _runs(node: int, operation: Operation, reached: dict[int, bool], ran: set[int]) -> bool:
    """The nodes of a checkpoint's second forward are not in the loss's graph; a Function's may do nothing."""
    if operation.in_function:
        return reached.get(node, False) and node in ran
    return node in reached or node in ran
