"""Records every operation of a step, forward and backward: what it is, in which module call it runs, what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from ampere.core.kinds import Draft

from .describing import describe
from .operations import (
    FREE,
    LAYER,
    OPERANDS_IN_ORDER,
    RECOGNISERS,
    UNKNOWN,
    Ownership,
    copied_first,
    flops_of,
    op_class,
    visits,
)
from .standins import stand_in
from .usual_costs import nanoseconds


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors among arguments or results."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for part in value if not isinstance(part, (int, float)) for t in tensors_in(part)]
    if isinstance(value, dict):
        return tensors_in(list(value.values()))
    return []


def requires_grad(tensor: Tensor) -> bool:
    return tensor.requires_grad


@dataclass(eq=False)
class Call:
    """One call of one module; `parent` is None for the model itself."""

    path: str
    module: nn.Module
    parent: Call | None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    output: Any = None

    def chain(self) -> Iterator[Call]:
        """This call and the ones around it, the model's own left out."""
        call: Call = self
        while call.parent is not None:
            yield call
            call = call.parent


class CallTracker:
    """Follows the calls through hooks on every module of a copy of the model."""

    def __init__(self, model: nn.Module) -> None:
        self.root = Call("", model, None)
        self.current = self.root
        self.entered: Callable[[Call], None] = lambda call: None
        self.left: Callable[[Call], None] = lambda call: None
        self._handles: list[Any] = []
        for path, module in model.named_modules():
            self._hook(path, module)

    def _hook(self, path: str, module: nn.Module) -> None:
        def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            call = Call(path, module, self.current) if path else self.root
            call.args, call.kwargs = args, kwargs
            self.current = call
            self.entered(call)

        def leave(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            call = self._find(module)
            call.output = output
            self.left(call)
            self.current = call.parent or self.root

        self._handles.append(module.register_forward_pre_hook(enter, with_kwargs=True))
        self._handles.append(module.register_forward_hook(leave))

    def release(self) -> None:
        """Leave modules that are no copies as they were."""
        for handle in self._handles:
            handle.remove()

    def _find(self, module: nn.Module) -> Call:
        """A user's `try` may have skipped the leaving of inner calls."""
        for call in self.current.chain():
            if call.module is module:
                return call
        return self.root


@dataclass
class Cost:
    """What operations cost, as far as they were seen: of one, or of an autograd node's backward."""

    launches: int = 0
    flops: int = 0
    values: int = 0
    nanoseconds: float = 0.0  # on a known processor

    def add(self, other: Cost) -> None:
        self.launches += other.launches
        self.flops += other.flops
        self.values += other.values
        self.nanoseconds += other.nanoseconds


@dataclass(eq=False)
class Operation:
    """A forward operation. `nodes` are the sequence numbers of its autograd nodes."""

    name: str
    op_class: str
    call: Call
    values_in: int
    values_out: int
    cost: Cost
    draft: Draft | None = None
    parameters: list[nn.Parameter] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    in_function: bool = False  # inside a torch.autograd.Function, where gradients are off
    trusted: bool = False  # its kind's FLOPs hold, though not each operation inside was seen
    on_weights: bool = False  # outside of models, as clipping and averages of weights are
    inside: bool = False  # copies that other operations make before they begin, forward and backward
    view: bool = False  # free in forward; the gradient of a part is written into zeros as large as the whole
    backward: bool = False


def run(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The result of an operation, made at once where a stand-in will do."""
    out = stand_in(func, args, kwargs) if args else None
    if out is not None:
        return out
    try:
        return func(*args, **kwargs)
    except RuntimeError:
        tensors = tensors_in((args, kwargs))
        if func._schema.is_mutable or len({t.device for t in tensors}) < 2 or not any(t.is_meta for t in tensors):
            raise
        # A tensor made without naming a device is on the CPU, while the model is on none.
        return func(*_on_meta(args), **_on_meta(kwargs))


def _on_meta(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.to("meta")
    if isinstance(value, (list, tuple)):
        return type(value)(map(_on_meta, value))
    return {k: _on_meta(v) for k, v in value.items()} if isinstance(value, dict) else value


def _unusual(tensors: Sequence[Tensor]) -> bool:
    """Whether an operand is sparse or complex: kinds are of dense real numbers."""
    return any(t.layout != torch.strided or t.is_complex() for t in tensors)


def values_of(tensors: Sequence[Tensor]) -> int:
    """How many real numbers they hold; of a sparse one only its entries."""
    return sum((t.numel() if t.layout == torch.strided else t._nnz()) << t.is_complex() for t in tensors)


def _copying(name: str, args: Sequence[Any]) -> Cost:
    """What an operation's copies of its operands cost, read and written."""
    cost = Cost()
    for tensor in copied_first(name, args):
        values, ordered = 2 * tensor.numel(), torch.empty(tensor.shape, device="meta")
        cost.add(Cost(1, 0, values, nanoseconds("clone", "copy", (tensor,), values, ordered)))
    return cost


_sequence_number = torch._C._autograd._get_sequence_nr
_current_node = torch._C._current_autograd_node
ACCUMULATE = "torch::autograd::AccumulateGrad"  # the node that gives a parameter its gradient
_GATHERS = ("index", "gather", "index_select", "embedding", "take", "_unsafe_index")


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every operation of a step.

    forward    operation ------------> Operation(class, module call, operands, node)
                  |  autograd gives each differentiable operation a node with a sequence number
    backward   node n runs its operations --> cost_of_node[n]
    """

    def __init__(self, model: nn.Module, calls: CallTracker, whole_step: bool = False) -> None:
        """In a `whole_step` weights are also read and written outside of models, as an average of them does."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls = calls
        self._whole_step = whole_step
        self.owned = Ownership(model)
        self.operations: list[Operation] = []
        self.cost_of_node: dict[int, Cost] = {}
        self.scope: Operation | None = None
        self.paused = False
        self._last_node = _sequence_number()
        self._function_node = -1
        self._latest: Operation | None = None

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """The compiler is not in use here, and importing it takes seconds."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.is_inference_mode_enabled():  # where operations arrive before they are taken apart
            with self:
                out = func.decompose(*args, **(kwargs or {}))
            if out is not NotImplemented:
                return out
        with torch._C.DisableTorchFunction():
            out = run(func, args, kwargs or {})
            if not self.paused:
                self._note(func, args, kwargs or {}, out)
        return out

    def _note(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any], out: Any) -> None:
        node = _current_node()
        group, name = op_class(func)
        # Gradients are on inside backward only where a checkpoint runs forward again.
        if node is not None and not torch.is_grad_enabled():
            if group != FREE and self._whole_step and node.name() == ACCUMULATE:
                self._accumulate(name, group, func, args, out)
            elif group != FREE:
                self._backward(node, func, args, out)
            return
        nodes, in_function = self._new_nodes()
        if group == FREE:
            if nodes and not in_function and self.scope is None:
                view = Operation(name, "elementwise", self.calls.current, 0, 0, Cost(), nodes=nodes, view=True)
                self.operations.append(view)
            return
        tensors = tensors_in((args, kwargs))
        outputs = tensors_in(args[:1] if out is None else out)  # None is returned in place of many tensors
        operation = self._operation(name, group, func, args, tensors, outputs, out)
        operation.nodes, operation.in_function = nodes, in_function
        if self._whole_step and operation.call is self.calls.root and not nodes:
            operation.on_weights = bool(operation.parameters) or self.owned.holds_gradient(tensors)
        self._latest = operation
        if self.scope is not None:
            self._absorb(operation)
        elif not (len(tensors) == 1 and id(tensors[0]) in self.owned.counters):
            self._begin(operation, args, out, tensors)
            if operation.op_class == UNKNOWN:
                self._describe(operation, func, args, kwargs, outputs)
            if not self._is_bias(operation, tensors):
                self.operations.append(operation)
            if name in OPERANDS_IN_ORDER:
                copies = _copying(name, args)
                nodes = [~node for node in nodes]  # to which backward brings its own
                self.operations.append(
                    Operation("clone", "copy", operation.call, 0, 0, copies, nodes=nodes, inside=True)
                )
            self.owned.derive(tensors, outputs)

    def _new_nodes(self) -> tuple[list[int], bool]:
        """The node that autograd has just made for this operation, if any."""
        number = _sequence_number()
        advanced = number - self._last_node
        if advanced > 1 and self._latest is not None:
            # Writing into a view makes one more node, after the operation.
            self._latest.nodes += range(self._last_node, number - 1)
        self._last_node, self._latest = number, None
        if torch.is_grad_enabled():
            return ([number - 1] if advanced else []), False
        if advanced:
            self._function_node = number
        return ([number - 1], True) if self._function_node == number else ([], False)

    def _operation(
        self, name: str, group: str, func: Any, args: Any, tensors: list[Tensor], outputs: list[Tensor], out: Any
    ) -> Operation:
        values_out = values_of(outputs)  # a max pool also writes where it found each value
        values_in = values_out if name in _GATHERS else values_of(tensors)
        often = visits(name, args, out) if group == UNKNOWN else 1.0
        took = nanoseconds(name, group, args, values_in + values_out, out)
        cost = Cost(1, flops_of(func, args, out), round(often * (values_in + values_out)), took)
        parameters = self.owned.parameters(tensors)
        return Operation(name, group, self.calls.current, values_in, values_out, cost, parameters=parameters)

    def _begin(self, operation: Operation, args: Sequence[Any], out: Any, tensors: list[Tensor]) -> None:
        """Makes the operation the beginning of a layer if a kind fits it."""
        if _unusual(tensors) and (operation.op_class == LAYER or operation.parameters):
            operation.op_class = UNKNOWN
        if operation.op_class == UNKNOWN:
            return
        drafts = (recognise(args, out, self.owned.owns) for recognise in RECOGNISERS.get(operation.name, ()))
        draft = next((found for found in drafts if found is not None), None)
        if draft is None and operation.name in _GATHERS and operation.parameters:
            operation.op_class = UNKNOWN
            return
        if draft is None and operation.parameters and not operation.on_weights:
            draft = self._scale(operation, tensors)
        if draft is not None:
            operation.draft = draft.settle(requires_grad)
        elif operation.op_class == LAYER:
            operation.op_class = UNKNOWN

    def _describe(
        self, operation: Operation, func: Any, args: Sequence[Any], kwargs: dict[str, Any], outputs: list[Tensor]
    ) -> None:
        draft = describe(func, args, kwargs, outputs, self.owned.owns)
        operation.draft = draft and draft.settle(requires_grad)

    def _scale(self, operation: Operation, tensors: list[Tensor]) -> Draft:
        size = sum(p.numel() for p in operation.parameters)
        weights = tuple(t for t in tensors if self.owned.owns(t))
        sources = tuple(t for t in tensors if not self.owned.owns(t))
        return Draft("scale", {"values": operation.values_out}, size, size, weights, sources)

    def _is_bias(self, operation: Operation, tensors: list[Tensor]) -> bool:
        """Torch adds the bias of a linear layer apart if its input is not contiguous."""
        linear = next((known for known in reversed(self.operations) if not known.view), None)
        if operation.name != "add" or linear is None or linear.draft is None or linear.draft.kind != "linear":
            return False
        sizes = [t.numel() for t in tensors if self.owned.owns(t)]
        if sizes != [linear.draft.channels_out] or linear.draft.config["bias"] or linear.call is not operation.call:
            return False
        linear.draft.config["bias"] = True
        linear.nodes += operation.nodes
        linear.parameters += operation.parameters
        return True

    def _absorb(self, operation: Operation) -> None:
        assert self.scope is not None
        self.scope.cost.add(operation.cost)
        self.scope.nodes += operation.nodes
        self.scope.parameters = list(dict.fromkeys(self.scope.parameters + operation.parameters))

    def _backward(self, node: Any, func: Any, args: Sequence[Any], out: Any) -> None:
        group, name = op_class(func)
        often = visits(name, args, out) if group == UNKNOWN else 1.0
        values = values_of(tensors_in(args)) + values_of(tensors_in(out))
        took = nanoseconds(name, group, args, values, out)
        cost = self.cost_of_node.setdefault(node._sequence_nr(), Cost())
        cost.add(Cost(1, flops_of(func, args, out), round(often * values), took))
        if name in OPERANDS_IN_ORDER and (copies := _copying(name, args)).launches:
            self.cost_of_node.setdefault(~node._sequence_nr(), Cost()).add(copies)

    def _accumulate(self, name: str, group: str, func: Any, args: Sequence[Any], out: Any) -> None:
        """A gradient is added to one that is there already, as each batch but the first of several does."""
        operation = self._operation(name, group, func, args, tensors_in(args), tensors_in(out), out)
        operation.call, operation.parameters, operation.on_weights = self.calls.root, [], True
        self.operations.append(operation)

    @contextmanager
    def pause(self) -> Iterator[None]:
        self.paused = True
        try:
            yield
        finally:
            self.resume()

    def resume(self) -> None:
        self.paused = False
        self._last_node = _sequence_number()
