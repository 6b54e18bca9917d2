"""From groups of equations to layers, and what people should know of a trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flax import nnx

from ampere.core import KINDS, Layer, TrailingOp, work
from ampere.core.layer import TRAILING_CLASSES
from ampere.core.trailing_ops import dropout, weight_of

from .equations import LOOP, PRODUCT, UNKNOWN, Equation
from .grouping import Group
from .scopes import Calls


def notes_of(
    paths: list[str],
    layers: list[Layer],
    forward: list[Equation],
    backward: dict[str, list[Equation]],
    idle: list[str],
) -> tuple[str, ...]:
    """What people should know of a trace: unknown operations, what is not trained, what differs from its kind."""
    strangers = [
        f"{e.name} in {e.path or 'the model itself'} is of no known class" for e in forward if e.op_class == UNKNOWN
    ]
    several = f" and {len(idle) - 1} more" if len(idle) > 1 else ""
    untrained = [f"no equation reads {idle[0]}{several}: not counted as trained"] if idle else []
    return tuple(dict.fromkeys((*strangers, *untrained, *_odd(paths, layers, backward))))


def _odd(paths: list[str], layers: list[Layer], backward: dict[str, list[Equation]]) -> list[str]:
    found = {path: sum(e.op_class == PRODUCT for e in equations) for path, equations in backward.items()}
    return [
        f"backward of {path or 'the model itself'} has {found.get(path, 0)} products, and not the {usual} of its kind"
        for path, usual in _products(paths, layers).items()
        if found.get(path, 0) != usual
    ]


def _products(paths: list[str], layers: list[Layer]) -> dict[str, int]:
    """How many the backward pass of each path has, by the table of kinds; of what is opaque nothing is known."""
    expected: dict[str, int] = defaultdict(int)
    opaque = {path for path, layer in zip(paths, layers, strict=True) if layer.kind == "opaque"}
    for path, layer in zip(paths, layers, strict=True):
        kind = KINDS[layer.kind]
        if path in opaque or not kind.products:
            continue
        gradients = layer.config.get("gradients", 2) * int(layer.input_grad)
        if kind.parametric:
            gradients = int(layer.trainable) + int(layer.input_grad)
        expected[path] += kind.products * gradients
    return expected


ATTRIBUTES = ("kernel", "bias", "scale", "embedding")  # what flax calls the parameters of its own modules


class Layers:
    """Makes layers of groups: what is trained, which parameters are counted, what no kind describes.

    `backward` are the equations of the backward pass, by the path of the module that they belong to.
    """

    def __init__(self, batch: int, sizes: Mapping[str, int], backward: Mapping[str, list[Equation]]) -> None:
        self.batch, self._sizes, self._backward = batch, sizes, dict(backward)
        self.counted: set[str] = set()

    def build(self, groups: list[Group], calls: Calls) -> list[Layer]:
        return [self._layer(group, calls) for group in groups]

    def _layer(self, group: Group, calls: Calls) -> Layer:
        trailing = tuple(t for operation in group.trailing for t in trailing_ops(operation, calls))
        if not group.own:
            return Layer("nonparametric", {"batch": self.batch}, 1, 1, trailing, trainable=False, input_grad=False)
        values, tensors = self._parameters(group)
        layer = self._drafted(group, values, tensors) or self._opaque(group, values, tensors)
        return replace(layer, trailing=trailing)

    def _parameters(self, group: Group) -> tuple[int, int]:
        """How many this group is the first to train: the optimizer visits each once."""
        new = [name for name in sorted(group.owners) if name not in self.counted and name in self._sizes]
        self.counted.update(new)
        return sum(self._sizes[name] for name in new), len(new)

    def _drafted(self, group: Group, values: int, tensors: int) -> Layer | None:
        draft = group.draft
        if draft is None:
            return None
        trainable = bool(group.owners & set(self._sizes))
        channels = draft.channels_in, draft.channels_out
        name = group.path or _module_of(group.owners) or group.own[0].name
        layer = Layer(draft.kind, draft.config, *channels, (), name, trainable, draft.input_grad)
        counted = work(layer)
        if not _agrees(layer, sum(e.flops for e in group.own)):
            return None
        if (counted.parameters, counted.parameter_tensors) == (values, tensors):
            return layer
        return replace(layer, config={**draft.config, "parameters": values, "parameter_tensors": tensors})

    def _opaque(self, group: Group, values: int, tensors: int) -> Layer:
        """Its equations as they are, forward and backward."""
        first, last = group.own[0], group.own[-1]
        every = [*group.own, *self._backward_of(group)]
        shape_in = next((v.shape for v in first.inputs if v.shape and v.owners is None), (1,))
        shape_out = last.outputs[0].shape or (1,)
        config: dict[str, Any] = {
            "path": group.path,
            "class": first.name,
            "launches": len(every),
            "flops": sum(e.flops for e in every),
            "values": sum(e.values_in + e.values_out for e in every),
            "parameters": values,
            "parameter_tensors": tensors,
            "shape_in": shape_in,
            "shape_out": shape_out,
            "batch": shape_in[0],
            "inputs": (),
        }
        grad = any(v.grad for v in first.inputs if v.owners is None)
        name = group.path or first.name
        return Layer("opaque", config, shape_in[-1], shape_out[-1], (), name, tensors > 0, grad)

    def _backward_of(self, group: Group) -> list[Equation]:
        """Each equation is somebody's once; in the model's own scope there are also those of trailing operations."""
        there = self._backward.get(group.path, [])
        own = [e for e in there if group.path or e.op_class in (PRODUCT, LOOP, UNKNOWN)]
        self._backward[group.path] = [e for e in there if e not in own]
        return own


def _agrees(layer: Layer, forward: int) -> bool:
    """The forward FLOPs of the jaxpr are those of the kind."""
    frozen = replace(layer, trainable=False, input_grad=False)
    counted = float(KINDS[layer.kind].work(frozen, 1).flops)
    return abs(counted - forward) <= 1e-3 * max(counted, forward)


def _module_of(owners: set[str]) -> str:
    name = min(owners, default="")
    module, _, attribute = name.rpartition(".")
    return module if module and attribute in ATTRIBUTES else name


def trailing_ops(operation: list[Equation], calls: Calls) -> list[TrailingOp]:
    first, last = operation[0], operation[-1]
    module = calls[first.path][0] if first.path in calls else None
    if isinstance(module, nnx.Dropout):
        return _dropout(operation)
    made = {id(value) for e in operation for value in e.outputs}
    read = {id(value): value.size for e in operation for value in e.inputs if value.shape and id(value) not in made}
    name = first.op_class if first.op_class in TRAILING_CLASSES else "other"
    if any(e.op_class == "transcendental" for e in operation):
        name = "transcendental"
    weight = weight_of("add", last.grad) if name == "elementwise" and len(read) > 1 else 1.0  # as where it is built
    return [TrailingOp(name, sum(read.values()), last.values_out, last.grad, weight)]


def _dropout(operation: list[Equation]) -> list[TrailingOp]:
    """Drawing a mask, and using it; scaling, which PyTorch does to the mask, is the operation in between."""
    last = operation[-1]
    drawn, scaled, used = dropout(last.values_out, last.grad)
    return [drawn if last.op_class == "dropout" else used if last.name == "select_n" else scaled]
