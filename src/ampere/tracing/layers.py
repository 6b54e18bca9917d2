"""From operations to layers: each begins with a parametric operation and is followed by non-parametric ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from torch import Tensor, nn

from ampere.core import Layer, TrailingOp, work
from ampere.core.network import InputSpec

from .operations import UNKNOWN
from .recorder import Call, Cost, Operation, tensors_in
from .usual_costs import SCALING, weight

# Bookkeeping on a few whole numbers does not make a module a stranger.
SMALL = 1 << 16
VIEWS_FROM = 0.2  # of all values that a step moves; what fewer cost is in the prices of layers that views go with


def drafted(operation: Operation) -> Layer:
    """The layer that an operation begins, now that it is known whether a gradient reaches it."""
    draft = operation.draft
    assert draft is not None
    trainable, input_grad = draft.trainable and operation.backward, draft.input_grad and operation.backward
    channels, config = (draft.channels_in, draft.channels_out), draft.config
    if operation.op_class == UNKNOWN:
        config = {
            **config,
            "launches": operation.cost.launches,
            "flops": operation.cost.flops,
            "values": operation.cost.values,
        }
    return Layer(draft.kind, config, *channels, trainable=trainable, input_grad=input_grad)


def with_parameters(layer: Layer, values: int, tensors: int) -> Layer:
    """The layer, with its parameters in its config where its kind would count others."""
    counted = work(layer)
    visits_rows = bool(layer.config.get("sparse")) and tensors == 1  # of its table, whose size says nothing
    if visits_rows or (counted.parameters, counted.parameter_tensors) == (values, tensors):
        return layer
    return replace(layer, config={**layer.config, "parameters": values, "parameter_tensors": tensors})


def find_opaque(operations: list[Operation]) -> dict[Operation, Call]:
    """Modules that no kind describes, which are measured as they are: the outermost such call around each operation.

    A module call is opaque if it directly runs an operation of unknown class, or a product whose FLOPs
    are not those of its kind. Everything that runs inside the call then belongs to one layer.
    """
    strange = [o for o in operations if _is_strange(o)]
    marked = {o.call for o in strange if o.call.parent is not None}
    covering: dict[Operation, Call] = {}
    for operation in operations:
        around = [call for call in operation.call.chain() if call in marked]
        if around:
            covering[operation] = around[-1]
    for operation in strange:
        if operation.call.parent is None and (operation.parameters or operation.cost.flops):
            covering[operation] = Call("", operation.call.module, None)
    return covering


def _is_strange(operation: Operation) -> bool:
    if operation.op_class == UNKNOWN:
        return operation.draft is None and _counts(operation)
    if operation.trusted:
        return False
    return not _agrees(operation)


def _counts(operation: Operation) -> bool:
    return operation.backward or bool(operation.parameters) or operation.cost.values > SMALL


def _agrees(operation: Operation) -> bool:
    counted = work(drafted(operation)).flops if operation.draft else 0
    return abs(float(counted) - operation.cost.flops) <= 1e-3 * operation.cost.flops


def opaque_layer(call: Call, operations: list[Operation], values: int, tensors: int) -> Layer:
    cost = Cost()
    for operation in operations:
        cost.add(operation.cost)
    inputs, outputs = tensors_in((call.args, call.kwargs)), tensors_in(call.output)
    shape_in, shape_out = _shape(inputs), _shape(outputs)
    config: dict[str, Any] = {
        "path": call.path,
        "class": type(call.module).__name__ if call.path else operations[0].name,
        "launches": cost.launches,
        "flops": cost.flops,
        "values": cost.values,
        "parameters": values,
        "parameter_tensors": tensors,
        "shape_in": shape_in,
        "shape_out": shape_out,
        "batch": shape_in[0],
        "inputs": _arguments(call),
    }
    backward = any(o.backward for o in operations)
    return Layer(
        "opaque",
        config,
        _channels(shape_in),
        _channels(shape_out),
        name=call.path or operations[0].name,
        trainable=tensors > 0,
        input_grad=backward and any(t.requires_grad for t in inputs),
    )


def _arguments(call: Call) -> tuple[str, ...]:
    """The tensors it is called with, as people write them: `8x16`, or `mask=8x8:bool` if named."""
    named = [f"{name}={_spec(value)}" for name, value in call.kwargs.items() if isinstance(value, Tensor)]
    return (*(str(_spec(tensor)) for tensor in tensors_in(call.args)), *named)


def _spec(tensor: Tensor) -> InputSpec:
    return InputSpec(tuple(tensor.shape), str(tensor.dtype).replace("torch.", ""))


def _shape(tensors: list[Tensor]) -> tuple[int, ...]:
    return tuple(tensors[0].shape) if tensors and tensors[0].dim() else (1,)


def _channels(shape: tuple[int, ...]) -> int:
    """The second dimension of images, the last of anything else."""
    return shape[1] if len(shape) > 3 else shape[-1]


@dataclass
class Group:
    """The operations of one layer: its own (several if it is opaque) and its trailing operations'."""

    own: list[Operation]
    opaque: Call | None = None
    trailing: list[Operation] = field(default_factory=list)
    apart: str = ""  # "weights" or "views", of the whole step: operations that belong to no layer


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
            config = {"batch": self.batch, **self._size(group)}
            layer = Layer("nonparametric", config, 1, 1, name=group.apart, trainable=False, input_grad=False)
        return replace(layer, trailing=(*_beyond_scaling(layer, group), *_trailing(group)))

    def _size(self, group: Group) -> dict[str, Any]:
        """Operations on weights and views differ in size, and each is built as large as they are on average."""
        if not group.apart:
            return {}
        read = fmean(op.values_in for op in _trailing(group))
        return {"size": (max(1, round(read / self.batch)),)}

    def _drafted(self, operation: Operation) -> Layer:
        layer = drafted(operation)
        return replace(layer, name=self._name(operation))

    def _name(self, operation: Operation) -> str:
        if operation.op_class == UNKNOWN and operation.draft is not None:
            return f"{operation.call.path}.{operation.name}".lstrip(".")
        if operation.trusted or not operation.parameters:
            return operation.call.path or operation.name
        name = self.names[max(operation.parameters, key=lambda p: p.numel())]
        module, _, attribute = name.rpartition(".")
        return module if module and attribute in ("weight", "bias") else name

    def _parameters(self, operations: list[Operation]) -> tuple[int, int]:
        """How many parameters these operations are the first to train: the optimizer visits each once."""
        used = [p for o in operations if o.backward for p in o.parameters if p.requires_grad]
        new = [p for p in dict.fromkeys(used) if p not in self.counted]
        self.counted.update(new)
        return sum(p.numel() for p in new), len(new)


def grouped(operations: list[Operation]) -> list[Group]:
    groups, weights, views = [Group([])], Group([], apart="weights"), Group([], apart="views")
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
        elif operation.on_weights:
            weights.trailing.append(operation)
        elif operation.view:
            views.trailing.append(operation)
        else:
            groups[-1].trailing.append(operation)
    found = groups if groups[0].trailing else groups[1:]
    # First: a network that is built ends in its loss.
    return [*(group for group in (weights, views) if group.trailing), *found]


def _beyond_scaling(layer: Layer, group: Group) -> tuple[TrailingOp, ...]:
    """What an operation with a parameter takes beyond a product with it, as PReLU does."""
    if layer.kind != "scale":
        return ()
    values, operation = float(layer.config["values"]), group.own[0]
    more = operation.cost.nanoseconds - SCALING * values
    if more < SCALING * values:
        return ()
    stands_for = weight("elementwise", more, 2 * values * (1 + operation.backward))
    return (TrailingOp("elementwise", values, values, operation.backward, stands_for),)


def _trailing(group: Group) -> tuple[TrailingOp, ...]:
    return tuple(op for operation in group.trailing for op in _trailing_ops(operation))


def _trailing_ops(operation: Operation) -> list[TrailingOp]:
    name, cost = "other" if operation.op_class == UNKNOWN else operation.op_class, operation.cost
    if operation.view:
        each = cost.values / cost.launches / 2
        return [TrailingOp(name, each, each, False)] * cost.launches
    nominal = (operation.values_in + operation.values_out) * (1 + operation.backward)
    stands_for = weight(name, cost.nanoseconds, nominal)
    return [TrailingOp(name, operation.values_in, operation.values_out, operation.backward, stands_for)]


def settle(operations: list[Operation], reached: dict[int, bool], cost_of_node: dict[int, Cost]) -> None:
    """Brings backward to the operations it belongs to."""
    ran = set(cost_of_node)
    for operation in operations:
        nodes = [n for n in operation.nodes if _runs(n, operation, reached, ran)]
        operation.backward = bool(nodes)
        for node in nodes:
            operation.cost.add(cost_of_node.pop(node, Cost()))
        if operation.op_class == UNKNOWN and not _counts(operation):
            operation.draft = None
    # The gradient of one part alone is little work; where a loop takes many parts, each is added to those before.
    parts = {o for o in operations if o.view and o.cost.launches > 1}
    counts = sum(o.cost.values for o in parts) > VIEWS_FROM * sum(o.cost.values for o in operations)
    operations[:] = [o for o in operations if not o.view or (counts and o in parts)]
    for copies in (o for o in operations if o.inside):
        copies.values_in = copies.values_out = copies.cost.values // 2
        copies.backward = False
    operations[:] = [o for o in operations if not o.inside or o.cost.launches]


def _runs(node: int, operation: Operation, reached: dict[int, bool], ran: set[int]) -> bool:
    """The nodes of a checkpoint's second forward are not in the loss's graph; a Function's may do nothing."""
    if operation.in_function:
        return reached.get(node, False) and node in ran
    return node in reached or node in ran
