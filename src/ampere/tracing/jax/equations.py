"""A jaxpr as one list of equations: the class and the FLOPs of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
from jax.extend import core

from .scopes import backward_in, path_in

# The class of an equation. What no class knows is `UNKNOWN`, and is never passed over.
#
# A function that JAX itself gives a name to (relu, softmax, mean) is one operation, as it is in PyTorch.

FREE, PRODUCT, LOOP, UNKNOWN = "free", "product", "loop", "unknown"
POINTWISE = ("elementwise", "transcendental")

_PRIMITIVES = {
    FREE: """reshape squeeze expand_dims transpose broadcast_in_dim convert_element_type slice split iota copy_p
        stop_gradient sharding_constraint optimization_barrier bitcast_convert_type random_wrap random_unwrap
        random_fold_in random_clone copy dynamic_slice create_token pvary""",
    PRODUCT: "dot_general conv_general_dilated ragged_dot_general",
    LOOP: "scan while cond",
    "transcendental": """exp exp2 log log1p expm1 tanh sin cos tan asin acos atan sinh cosh asinh acosh atanh atan2 erf
        erfc erf_inv lgamma digamma logistic""",
    "elementwise": """add sub mul div rem neg sign abs max min pow integer_pow sqrt rsqrt cbrt floor ceil round clamp
        select_n eq ne lt le gt ge and or not xor is_finite square nextafter real imag conj complex shift_left
        shift_right_logical shift_right_arithmetic population_count add_any reduce_precision""",
    "dropout": "random_bits threefry2x32 random_seed rng_bit_generator rng_uniform random_split",
    "pool": "reduce_window reduce_window_max reduce_window_min reduce_window_sum select_and_scatter_add",
    "reduce": """reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or argmax argmin reduce
        cumsum cumprod cummax cummin cumlogsumexp""",
    "copy": "gather concatenate pad dynamic_update_slice scatter scatter_add rev sort top_k tie_in scatter-add",
}
_FUNCTIONS = {
    "copy": "take",
    "transcendental": "gelu silu swish sigmoid softplus elu celu selu log_sigmoid mish glu tanh",
    "elementwise": "relu relu6 hard_sigmoid hard_tanh hard_silu hard_swish soft_sign leaky_relu squareplus clip where",
    "dropout": "bernoulli uniform normal truncated_normal",
    "reduce": "softmax log_softmax logsumexp mean var std standardize",
}
BODIES = ("jaxpr", "call_jaxpr", "fun_jaxpr")
PRIMITIVES = {name: group for group, names in _PRIMITIVES.items() for name in names.split()}
FUNCTIONS = {name: group for group, names in _FUNCTIONS.items() for name in names.split()}


def function_class(name: str) -> str | None:
    """The class of a function that JAX compiles by name, such as `_mean`, which users know as `mean`."""
    return FUNCTIONS.get(name.lstrip("_"))


def flops_of(equation: Any) -> int:
    """FLOPs of an equation, with those of the equations inside it; a multiply-add is two.

    Zeros that a stride puts in are not multiplied.
    """
    name = equation.primitive.name
    if name == "dot_general":
        return _dot(equation)
    if name == "conv_general_dilated":
        return _convolution(equation)
    inside = sum(flops_of(inner) for body in bodies(equation) for inner in body.eqns)
    return inside * int(equation.params.get("length", 1) if name == "scan" else 1)


def bodies(equation: Any) -> list[Any]:
    """The jaxprs inside an equation; of the branches of a condition all, since it is not known which one runs."""
    found: list[Any] = []
    for value in equation.params.values():
        for one in value if isinstance(value, (tuple, list)) else (value,):
            jaxpr = getattr(one, "jaxpr", one)
            if hasattr(jaxpr, "eqns"):
                found.append(jaxpr)
    return found


def _dot(equation: Any) -> int:
    (contracted, _), _ = equation.params["dimension_numbers"]
    left = equation.invars[0].aval.shape
    return 2 * prod(equation.outvars[0].aval.shape) * prod(left[i] for i in contracted)


def _convolution(equation: Any) -> int:
    numbers, (x, kernel) = equation.params["dimension_numbers"], (v.aval.shape for v in equation.invars)
    if any(d != 1 for d in equation.params["lhs_dilation"]):  # each value that is there meets the kernel once
        places = prod(kernel[i] for i in numbers.rhs_spec[2:])
        return int(2 * prod(x) * places * kernel[numbers.rhs_spec[0]] // equation.params["feature_group_count"])
    window = prod(kernel[i] for i in numbers.rhs_spec[1:])  # channels of a group, then places
    return int(2 * prod(equation.outvars[0].aval.shape) * window)


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
    """All equations of a closed jaxpr in order. Functions are opened, but for those that are one operation by name."""
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
