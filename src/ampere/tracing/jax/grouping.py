"""From equations to groups: each begins with a parameter or a product, or is one flax module."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

from flax import nnx

from ampere.core import KINDS
from ampere.core.kinds import Draft
from ampere.core.kinds.kind import JaxRecogniser

from .equations import FREE, LOOP, POINTWISE, PRODUCT, UNKNOWN, Equation, Value
from .scopes import Calls

RECOGNISERS: dict[str, list[JaxRecogniser]] = {}  # of each equation, those of the kinds that may begin with it
for kind in KINDS.values():
    for name, recogniser in kind.jax.items():
        RECOGNISERS.setdefault(name, []).append(recogniser)


def draft_of(equation: Equation) -> Draft | None:
    """The layer that an equation begins, if it begins one."""
    drafts = (recognise(equation) for recognise in RECOGNISERS.get(equation.name, ()))
    draft = next((found for found in drafts if found is not None), None)
    if draft is None and equation.name not in RECOGNISERS:
        draft = _scale(equation)
    return draft.settle(has_gradient) if draft else None


def has_gradient(value: Value) -> bool:
    return value.grad


def _scale(equation: Equation) -> Draft | None:
    """A product or sum of data with a parameter."""
    if equation.op_class not in POINTWISE or not equation.owners:
        return None
    data = tuple(value for value in equation.inputs if value.owners is None and value.shape)
    if not data:
        return None
    values = equation.outputs[0].size
    width = min(values, max(value.size for value in equation.inputs if value.owners))
    return Draft("scale", {"values": values}, width, width, (), data)


def _data(equation: Equation) -> tuple[Value, ...]:
    return tuple(value for value in equation.inputs if value.owners is None)


# Modules of flax that are one layer, though their jaxpr has many equations: norms, attention, recurrent ones.

NORMS = (nnx.BatchNorm, nnx.LayerNorm, nnx.RMSNorm, nnx.GroupNorm)
CELLS = ((nnx.LSTMCell, "lstm"), (nnx.OptimizedLSTMCell, "lstm"), (nnx.GRUCell, "gru"), (nnx.SimpleCell, "rnn"))


def norm_draft(module: Any, shapes: tuple[Any, ...], first: Equation) -> Draft | None:
    """The norm that this is the first equation of."""
    if not isinstance(module, NORMS) or not shapes or not shapes[0]:
        return None
    shape = shapes[0]
    channels, places = shape[-1], shape[1:-1]
    bias = getattr(module, "bias", None) is not None
    kind, config = "norm_layer", {"lead": shape[:-1], "bias": bias}
    if isinstance(module, nnx.BatchNorm):
        kind, config = "norm_batch", {"batch": shape[0], "size": places, "bias": bias}
    elif isinstance(module, nnx.GroupNorm):
        config = {"lead": (shape[0], prod(places)), "groups": module.num_groups, "bias": bias}
    return Draft(kind, config, channels, channels, (), _data(first)).settle(has_gradient)


def attention_draft(module: Any, products: list[Equation]) -> Draft | None:
    """Attention, from the two products between its activations: queries with keys, weights with values."""
    if not isinstance(module, nnx.MultiHeadAttention) or len(products) != 2:
        return None
    scores, mixed = (_sizes(product) for product in products)
    pairs, heads = scores[0], int(module.num_heads)
    config: dict[str, Any] = {"batch": pairs // heads, "heads": heads, "queries": scores[1], "keys": scores[3]}
    if getattr(module, "dropout_rate", 0) > 0:
        config["dropout"] = True
    head_values = mixed[1] * mixed[3] // scores[1] if scores[1] in (mixed[1], mixed[3]) else mixed[3]
    return Draft("attention", config, scores[2], head_values, (), tuple(products[0].inputs)).settle(has_gradient)


def recurrent_draft(module: Any, shapes: tuple[Any, ...], loop: Equation) -> Draft | None:
    """A cell that a loop carries along a sequence; its own initial state has no gradient."""
    cell: Any = module.cell if isinstance(module, nnx.RNN) else None
    kind = next((kind for known, kind in CELLS if isinstance(cell, known)), None)
    if kind is None or not shapes or len(shapes[0] or ()) != 3:
        return None
    batch, length, channels = shapes[0] if not module.time_major else (shapes[0][1], shapes[0][0], shapes[0][2])
    config = {"batch": batch, "length": length, "layers": 1, "directions": 1, "bias": True}
    return Draft(kind, config, channels, int(cell.hidden_features), (), _data(loop)).settle(has_gradient)


def _sizes(product: Equation) -> tuple[int, int, int, int]:
    """Batch, rows, inner, last."""
    left, right = product.inputs
    (inner_left, _), (batch_left, _) = product.parameters["dimension_numbers"]
    batch, inner = prod(left.shape[i] for i in batch_left), prod(left.shape[i] for i in inner_left)
    return batch, left.size // (batch * inner), inner, right.size // (batch * inner)


AVERAGED = ("reduce", "pool")  # a sum that is divided is one operation


@dataclass
class Group:
    """The equations of one layer: its own, and its trailing operations'. `draft` is None where no kind knows it."""

    path: str
    own: list[Equation]
    draft: Draft | None
    trailing: list[list[Equation]] = field(default_factory=list)  # each of them one operation

    @property
    def owners(self) -> set[str]:
        return set().union(*(equation.owners for equation in self.own))


class Grouping:
    def __init__(self, equations: list[Equation], calls: Calls) -> None:
        self.calls = calls
        self.attentions = _attentions(equations, calls)
        self.groups = [Group("", [], None)]
        for equation in equations:
            self._add(equation)

    def found(self) -> list[Group]:
        return self.groups if self.groups[0].trailing else self.groups[1:]

    def _add(self, equation: Equation) -> None:
        last, module = self.groups[-1], self._module(equation)
        inside = bool(last.own) and last.path == equation.path
        if inside and (isinstance(module, NORMS) or self._in_attention(equation, last)):
            last.own.append(equation)
        elif equation.op_class == FREE or _is_bookkeeping(equation):
            return
        elif isinstance(module, NORMS):
            draft = norm_draft(module, self.calls[equation.path][1], equation)
            self.groups.append(Group(equation.path, [equation], draft))
        elif equation in self.attentions:
            self.groups.append(Group(equation.path, [equation], self.attentions[equation]))
        elif inside and _is_bias(equation, last):
            assert last.draft is not None
            last.draft.config["bias"] = True
            last.own.append(equation)
        else:
            self._begin_or_follow(equation, last)

    def _begin_or_follow(self, equation: Equation, last: Group) -> None:
        draft = self._loop(equation) if equation.op_class == LOOP else draft_of(equation)
        strange = equation.op_class in (LOOP, UNKNOWN) and (equation.grad or equation.flops or equation.owners)
        if draft is not None or equation.op_class == PRODUCT or strange:
            self.groups.append(Group(equation.path, [equation], draft))
        elif last.trailing and _continues(equation, last.trailing[-1]):
            last.trailing[-1].append(equation)
        else:
            last.trailing.append([equation])

    def _loop(self, equation: Equation) -> Draft | None:
        called = self.calls.get(equation.path)
        return recurrent_draft(*called, equation) if called else None

    def _module(self, equation: Equation) -> Any:
        return self.calls[equation.path][0] if equation.path in self.calls else None

    def _in_attention(self, equation: Equation, last: Group) -> bool:
        """Until its second product is there."""
        if last.draft is None or last.draft.kind != "attention":
            return False
        return sum(e.op_class == PRODUCT for e in last.own) < 2


def _attentions(equations: list[Equation], calls: Calls) -> dict[Equation, Draft]:
    """The first product of each attention."""
    found: dict[Equation, Draft] = {}
    for path, (module, _) in calls.items():
        products = [e for e in equations if e.path == path and e.op_class == PRODUCT and not e.owners]
        draft = attention_draft(module, products)
        if draft is not None:
            found[products[0]] = draft
    return found


def _is_bias(equation: Equation, last: Group) -> bool:
    """A parameter that is added at once, in the same module."""
    if last.draft is None or last.draft.config.get("bias", True) or last.trailing:
        return False
    owned = [value for value in equation.inputs if value.owners]
    return equation.name == "add" and len(owned) == 1 and owned[0].size == last.draft.channels_out


def _is_bookkeeping(equation: Equation) -> bool:
    """A number that is counted up, such as the draws of a dropout."""
    return not equation.grad and not equation.owners and all(value.size <= 1 for value in equation.outputs)


def _continues(equation: Equation, operation: list[Equation]) -> bool:
    """Elementwise equations that together are a function of the same tensors are one operation; so is a mean."""
    if equation.op_class not in POINTWISE or equation.path != operation[0].path:
        return False
    read = {id(value) for value in equation.inputs if value.shape}
    if operation[0].op_class in AVERAGED:
        return len(operation) == 1 and read == {id(operation[0].outputs[0])}
    known = {id(value) for e in operation for value in (*e.inputs, *e.outputs)}
    return operation[0].op_class in POINTWISE and read <= known
