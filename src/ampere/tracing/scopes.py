"""Attention and recurrent modules: many operations that are one layer.

On meta tensors they are not even run: a stand-in with the same outputs and gradients takes their place.
"""

from __future__ import annotations

from math import prod
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ampere.core.kinds import Draft

from .operations import UNKNOWN
from .recorder import Call, Cost, Operation, Recorder, requires_grad, tensors_in

_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_OPTIONS = ("attn_mask", "dropout_p", "is_causal")
_attention = torch.nn.functional.scaled_dot_product_attention
_multi_head: Any = torch.nn.functional.multi_head_attention_forward


class StandIn(torch.autograd.Function):
    """Outputs of the given shapes that depend on all the given tensors."""

    @staticmethod
    def forward(ctx: Any, shapes: list[tuple[int, ...]], *tensors: Tensor) -> Any:
        ctx.save_for_backward(*tensors)
        return tuple(tensors[0].new_empty(shape) for shape in shapes)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        asked = ctx.needs_input_grad[1:]
        return (None, *(torch.empty_like(t) if a else None for t, a in zip(ctx.saved_tensors, asked, strict=True)))


class Scopes(TorchFunctionMode):
    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder
        recorder.calls.entered = self._entered
        recorder.calls.left = self._left

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is _attention and self.recorder.scope is None:
            return self._attend(*args, **(kwargs or {}))
        if func is _multi_head:
            func = _seeing(_multi_head, self._attend)
        if self.recorder.scope is not None and getattr(func, "__name__", "") in _RECURRENT:
            return self._recur(func, args)
        return func(*args, **(kwargs or {}))

    def _open(self, name: str, draft: Draft | None) -> Operation:
        group = UNKNOWN if draft is None else "attention"
        scope = Operation(name, group, self.recorder.calls.current, 0, 0, Cost(), draft, trusted=True)
        self.recorder.operations.append(scope)
        self.recorder.scope = scope
        return scope

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(_OPTIONS, args, strict=False)), **kwargs}
        scope = self._open("attention", attention(query, key, value, given))
        try:
            if query.is_meta and scope.draft is not None:
                shape = (*query.shape[:-1], value.shape[-1])
                return self._stand_in([shape], [query, key, value, *tensors_in(given.get("attn_mask"))])[0]
            return _attention(query, key, value, **given)
        finally:
            self.recorder.scope = None

    def _stand_in(self, shapes: list[tuple[int, ...]], tensors: list[Tensor]) -> Any:
        with self.recorder.pause():
            outputs = StandIn.apply(shapes, *tensors)  # type: ignore[no-untyped-call]
        if outputs[0].grad_fn is not None and self.recorder.scope is not None:
            self.recorder.scope.nodes.append(outputs[0].grad_fn._sequence_nr())
        return outputs

    def _entered(self, call: Call) -> None:
        """Begins a layer; packed sequences and projections are operations one by one, as a loop of cells is."""
        draft = recurrent(call) if isinstance(call.module, nn.RNNBase) and self.recorder.scope is None else None
        if draft is not None:
            scope = self._open(call.path, draft)
            scope.parameters = list(call.module.parameters())

    def _left(self, call: Call) -> None:
        if isinstance(call.module, nn.RNNBase):
            self.recorder.scope = None

    def _recur(self, func: Any, args: Any) -> Any:
        scope, module = self.recorder.scope, self.recorder.calls.current.module
        if scope is None or scope.draft is None or not args[0].is_meta or not isinstance(module, nn.RNNBase):
            return func(*args)
        directions = 2 if module.bidirectional else 1
        states = [tuple(t.shape) for t in tensors_in(args[1])]
        out = (*args[0].shape[:-1], module.hidden_size * directions)
        made = self._stand_in([out, *states], tensors_in(args[:3]))
        return made


def _seeing(func: Any, attend: Any) -> Any:
    """The same function with our attention in it: torch switches a mode off inside the functions it is asked about."""
    names = {**func.__globals__, "scaled_dot_product_attention": attend, "has_torch_function": lambda operands: False}
    return FunctionType(func.__code__, names, func.__name__, func.__defaults__, func.__closure__)


def attention(query: Tensor, key: Tensor, value: Tensor, given: dict[str, Any]) -> Draft | None:
    """None where only some operands ask for a gradient: the kind has all or none."""
    if len({query.requires_grad, key.requires_grad, value.requires_grad}) > 1:
        return None
    config = {
        "batch": prod(query.shape[:-3]),
        "heads": int(query.shape[-3]) if query.dim() > 2 else 1,
        "queries": int(query.shape[-2]),
        "keys": int(key.shape[-2]),
        **({"causal": True} if given.get("is_causal") else {}),
        **({"dropout": True} if given.get("dropout_p") else {}),
    }
    draft = Draft("attention", config, int(query.shape[-1]), int(value.shape[-1]), (), (query, key, value))
    return draft.settle(requires_grad)


def recurrent(call: Call) -> Draft | None:
    """None for packed sequences and projections, which the kind does not cover."""
    module, x = call.module, call.args[0] if call.args else call.kwargs.get("input")
    assert isinstance(module, nn.RNNBase)
    if not isinstance(x, Tensor) or module.proj_size:
        return None
    state = call.args[1] if len(call.args) > 1 else call.kwargs.get("hx")
    lead = tuple(x.shape[:-1]) if x.dim() == 3 else (1, x.shape[0]) if module.batch_first else (x.shape[0], 1)
    batch, length = lead if module.batch_first else lead[::-1]
    config = {
        "batch": int(batch),
        "length": int(length),
        "layers": module.num_layers,
        "directions": 2 if module.bidirectional else 1,
        "bias": bool(module.bias),
    }
    if any(t.requires_grad for t in tensors_in(state)):
        config["state_grad"] = True
    if module.dropout and module.num_layers > 1:
        config["dropout"] = True
    kind = {"LSTM": "lstm", "GRU": "gru"}.get(module.mode, "rnn")
    draft = Draft(kind, config, module.input_size, module.hidden_size, tuple(module.parameters()), (x,))
    return draft.settle(requires_grad)
