"""A jaxpr as one list of equations: functions inside it are opened, but those that are one operation by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
from jax.extend import core

from .classes import LOOP, PRIMITIVES, UNKNOWN, function_class
from .flops import flops_of
from .scopes import backward_in, path_in

BODIES = ("jaxpr", "call_jaxpr", "fun_jaxpr")


@dataclass(eq=False)
class Value:
    """A tensor: where it comes from says what training does with it."""

    shape: tuple[int, ...]
    floating: bool
    grad: bool = False  # a gradient comes back to it
    owners: frozenset[str] | None = None  # the parameters that alone it is computed from; None where data is in it

    @property
    def size(self) -> int:
        total = 1
        for n in self.shape:
            total *= n
        return total


@dataclass(eq=False)
class Equation:
    name: str
    op_class: str
    path: str  # of the module that it runs in
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    parameters: Mapping[str, Any]
    flops: int
    backward: bool  # it runs in the backward pass

    @property
    def values_in(self) -> int:
        return sum(value.size for value in self.inputs)

    @property
    def values_out(self) -> int:
        return sum(value.size for value in self.outputs)

    @property
    def owners(self) -> frozenset[str]:
        """All parameters among what it reads."""
        return frozenset().union(*(value.owners or () for value in self.inputs))

    @property
    def grad(self) -> bool:
        return any(value.grad for value in self.outputs)


def value_of(aval: Any) -> Value:
    shape = tuple(int(n) for n in getattr(aval, "shape", ()))
    dtype = getattr(aval, "dtype", None)
    return Value(shape, dtype is not None and jax.numpy.issubdtype(dtype, jax.numpy.floating))


def constant_of(aval: Any) -> Value:
    """Neither data nor a parameter is in it."""
    value = value_of(aval)
    value.owners = frozenset()
    return value


def flattened(closed: Any, inputs: list[Value]) -> list[Equation]:
    """All equations of a closed jaxpr on these inputs, in order."""
    constants = [constant_of(variable.aval) for variable in closed.jaxpr.constvars]
    reader = _Reader()
    return list(reader.read(closed.jaxpr, [*constants, *inputs], ""))


class _Reader:
    def __init__(self) -> None:
        self.results: list[Value] = []

    def read(self, jaxpr: Any, given: list[Value], around: str) -> Iterator[Equation]:
        """Leaves what the jaxpr returns in `results`."""
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], given, strict=True))

        def look(variable: Any) -> Value:
            return constant_of(variable.aval) if isinstance(variable, core.Literal) else known[variable]

        for equation in jaxpr.eqns:
            inputs = [look(variable) for variable in equation.invars]
            stack = f"{around}/{equation.source_info.name_stack}"
            yield from self._equation(equation, inputs, stack)
            known.update(zip(equation.outvars, self.results, strict=True))
        self.results = [look(variable) for variable in jaxpr.outvars]

    def _equation(self, equation: Any, inputs: list[Value], stack: str) -> Iterator[Equation]:
        body = next((equation.params[key] for key in BODIES if key in equation.params), None)
        name, group = equation.primitive.name, PRIMITIVES.get(equation.primitive.name)
        if body is not None and group != LOOP:
            called = str(equation.params.get("name", ""))
            group = function_class(called)
            if group is None:
                yield from self._open(body, inputs, stack)
                return
            name = called.lstrip("_")
        outputs = tuple(_followed(value_of(v.aval), name, inputs) for v in equation.outvars)
        self.results = list(outputs)
        flops = flops_of(equation)
        yield Equation(
            name, group or UNKNOWN, path_in(stack), tuple(inputs), outputs, equation.params, flops, backward_in(stack)
        )

    def _open(self, body: Any, inputs: list[Value], stack: str) -> Iterator[Equation]:
        jaxpr = getattr(body, "jaxpr", body)
        constants = [constant_of(variable.aval) for variable in jaxpr.constvars]
        yield from self.read(jaxpr, [*constants, *inputs], stack)


def _followed(output: Value, name: str, inputs: list[Value]) -> Value:
    """Gradients and ownership go on from what is read to what is made."""
    output.grad = output.floating and name != "stop_gradient" and any(value.grad for value in inputs)
    if all(value.owners is not None for value in inputs):
        output.owners = frozenset().union(*(value.owners or () for value in inputs))
    return output
