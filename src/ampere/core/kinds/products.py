"""Matrix products: linear layers, products of two activations, attention.

linear     config: lead (the dimensions before the features), bias
matmul     config: batch, rows; channels are the inner and the last dimension; `gradients`: 1 where only one
           of the two factors gets a gradient. A factor may be parameters that differ from matrix to matrix,
           and of experts each has the rows that it is given
attention  config: batch, heads, queries, keys; channels are a head's width in queries and keys, and in values;
           `causal` and `dropout` where True; recognised in ampere.tracing, since it is many operations
"""

from typing import Any, Callable, Dict, Mapping, Sequence, Tuple

from ampere.core.layer import Layer

from .kind import FIXED, Draft, Kind, Operand, Shape, Work, beyond_vectors, one_input, padded, passes, product

Owned = Callable[[Any], bool]

ROW_TILES = (8, 32)  # rows that kernels of accelerators compute at once: costs step at multiples of them
ONE_BY_ONE = 128  # multiply-adds that each matrix of a batch costs at least, or all of its own: no vectors, no reuse


def _linear_work(layer: Layer, width: int) -> Work:
    c: Any = layer.config
    rows = product(c["lead"])
    cin, cout = layer.channels_in, layer.channels_out
    return Work(
        launches=1 + int(layer.input_grad) + int(layer.trainable) * (1 + int(bool(c["bias"]))),
        flops=2 * rows * cin * cout * passes(layer),
        padded_flops=2 * rows * padded(cin, width) * padded(cout, width) * passes(layer),
        half_padded_flops=2 * rows * cin * padded(cout, width) * passes(layer),
        values=rows * (cin + cout) * passes(layer),
        parameters=(cin * cout + (cout if c["bias"] else 0)) * int(layer.trainable),
        parameter_tensors=(1 + int(bool(c["bias"]))) * int(layer.trainable),
        weights=cin * cout * passes(layer),
        remainder_flops=2 * rows * beyond_vectors(layer, width),
    )


def _linear_coordinates(layer: Layer, width: int) -> Tuple[Any, ...]:
    cin, cout = layer.channels_in, layer.channels_out
    lead: Any = layer.config["lead"]
    rows = product(lead)
    tiles = [padded(rows, tile) / rows for tile in ROW_TILES]
    return (cin, cout, padded(cin, width) / cin, padded(cout, width) / cout, rows, passes(layer), *tiles)


def _matrix_product(a: Any, b: Any, owned: Owned, bias: bool = False) -> Draft:
    """`a` is (..., rows, inner), `b` is (..., inner, last); a single matrix of parameters makes a linear layer."""
    batch, last = product(a.shape[:-2]), int(b.shape[-1])
    rows, inner = int(a.shape[-2]), int(a.shape[-1])
    if owned(b) and batch == 1:
        return Draft("linear", {"lead": (rows,), "bias": bias}, inner, last, (b,), (a,))
    if owned(a) and batch == 1:
        return Draft("linear", {"lead": (last,), "bias": bias}, inner, rows, (a,), (b,))
    config: Dict[str, Any] = {"batch": batch, "rows": rows}
    if a.requires_grad != b.requires_grad:
        config["gradients"] = 1
    return Draft("matmul", config, inner, last, (), (a, b))


def _plain_product(args: Sequence[Any], result: Any, owned: Owned) -> Draft:
    return _matrix_product(args[0], args[1], owned)


def _added_product(args: Sequence[Any], result: Any, owned: Owned) -> Draft:
    return _matrix_product(args[1], args[2], owned, bias=owned(args[0]))


def _product_from_jax(equation: Any) -> Draft:
    left, right = equation.inputs
    (in_left, _), (batch_left, batch_right) = equation.parameters["dimension_numbers"]
    inner = product(tuple(left.shape[i] for i in in_left))
    batch = product(tuple(left.shape[i] for i in batch_left))
    rows = left.size // max(1, inner * batch)
    last = right.size // max(1, inner * batch)
    if right.owners and not batch_right:
        return Draft("linear", {"lead": (rows,), "bias": False}, inner, last, (right,), (left,))
    if left.owners and not batch_left:
        return Draft("linear", {"lead": (last,), "bias": False}, inner, rows, (left,), (right,))
    config: Dict[str, Any] = {"batch": batch, "rows": rows}
    if left.grad != right.grad:
        config["gradients"] = 1
    return Draft("matmul", config, inner, last, (), (left, right))


def _product_of_experts(args: Sequence[Any], result: Any, owned: Owned) -> Draft:
    """Each of many matrices is multiplied with some of the rows: with as many as the others, as far as shapes tell."""
    a, b = args[0], args[1]
    if (a.dim(), b.dim()) != (2, 3):
        return _matrix_product(a, b, owned)
    rows, experts = int(a.shape[0]), int(b.shape[0])
    config: Dict[str, Any] = {"batch": min(rows, experts), "rows": -(-rows // experts)}
    if a.requires_grad != b.requires_grad:
        config["gradients"] = 1
    return Draft("matmul", config, int(a.shape[1]), int(b.shape[2]), (), (a, b))


LINEAR = Kind(
    "linear",
    "linear",
    _linear_work,
    _linear_coordinates,
    one_input(lambda layer: (*layer.config["lead"], layer.channels_in)),
    lambda layer: (*layer.config["lead"], layer.channels_out),
    ("torch", "jax", "mnn"),
    (Layer("linear", {"lead": (3, 5), "bias": True}, 8, 4),),
    torch={
        "mm": _plain_product,
        "bmm": _plain_product,
        "addmm": _added_product,
        "baddbmm": _added_product,
        "_grouped_mm": _product_of_experts,
    },
    jax={"dot_general": _product_from_jax},
    waste=(2, 3, 6, 7),
    products=1,
)


def _matmul_work(layer: Layer, width: int) -> Work:
    c: Any = layer.config
    products = 1 + c.get("gradients", 2) * int(layer.input_grad)
    inner, last = layer.channels_in, layer.channels_out
    return Work(
        launches=products,
        flops=2 * c["batch"] * c["rows"] * inner * last * products,
        padded_flops=2 * c["batch"] * c["rows"] * padded(inner, width) * padded(last, width) * products,
        values=c["batch"] * (c["rows"] * inner + inner * last + c["rows"] * last) * products,
        remainders=c["batch"] * _at_most(c["rows"] * inner * last, ONE_BY_ONE) * products,
    )


def _at_most(amounts: Any, most: int) -> Any:
    return (amounts + most - abs(amounts - most)) // 2


def _matmul_operands(layer: Layer) -> Tuple[Operand, ...]:
    c: Any = layer.config
    both = c.get("gradients", 2) == 2
    left = Operand((c["batch"], c["rows"], layer.channels_in), layer.input_grad)
    return left, Operand((c["batch"], layer.channels_in, layer.channels_out), layer.input_grad and both)


def _matmul_out(layer: Layer) -> Shape:
    return (layer.config["batch"], layer.config["rows"], layer.channels_out)


_MATMUL = {"batch": 6, "rows": 5}
MATMUL = Kind(
    "matmul",
    "matrix product",
    _matmul_work,
    lambda layer, width: (
        layer.channels_in,
        layer.channels_out,
        layer.config["rows"],
        layer.config["batch"],
        passes(layer),
    ),
    _matmul_operands,
    _matmul_out,
    ("torch", "jax", "mnn"),
    (Layer("matmul", _MATMUL, 4, 7), Layer("matmul", {**_MATMUL, "gradients": 1}, 4, 7)),
    parametric=False,
    widths=FIXED,
    products=1,
)


def _attention_work(layer: Layer, width: int) -> Work:
    c: Any = layer.config
    products = 1 + 2 * int(layer.input_grad)
    pairs = c["batch"] * c["heads"] * c["queries"] * c["keys"]
    widths = layer.channels_in + layer.channels_out
    return Work(
        launches=1 + int(layer.input_grad),
        flops=2 * pairs * widths * products,
        padded_flops=2 * pairs * (padded(layer.channels_in, width) + padded(layer.channels_out, width)) * products,
        values=(c["batch"] * c["heads"] * (c["queries"] + c["keys"]) * widths + pairs) * passes(layer),
    )


def _attention_inside(layer: Layer) -> Mapping[str, Any]:
    """With dropout all pairs are written down, drawn, and read again; without, they never leave the cache."""
    c: Any = layer.config
    pairs = c["batch"] * c["heads"] * c["queries"] * c["keys"]
    back = 1 + int(layer.input_grad)
    written = {"dropout": 2 * pairs, "reduce": 7 * back * pairs, "elementwise": 4 * back * pairs}
    return written if c.get("dropout") else {}


def _attention_coordinates(layer: Layer, width: int) -> Tuple[Any, ...]:
    c: Any = layer.config
    return (layer.channels_in, c["batch"] * c["heads"], c["queries"], c["keys"], passes(layer))


def _queries_keys_values(layer: Layer) -> Tuple[Operand, ...]:
    c: Any = layer.config
    lead = (c["batch"], c["heads"])
    shapes = (
        (*lead, c["queries"], layer.channels_in),
        (*lead, c["keys"], layer.channels_in),
        (*lead, c["keys"], layer.channels_out),
    )
    return tuple(Operand(shape, layer.input_grad) for shape in shapes)


def _attention_out(layer: Layer) -> Shape:
    c: Any = layer.config
    return (c["batch"], c["heads"], c["queries"], layer.channels_out)


_ATTENTION = {"batch": 3, "heads": 2, "queries": 5, "keys": 6}
ATTENTION = Kind(
    "attention",
    "attention",
    _attention_work,
    _attention_coordinates,
    _queries_keys_values,
    _attention_out,
    ("torch", "jax", "mnn"),
    tuple(Layer("attention", {**_ATTENTION, **each}, 8, 7) for each in ({}, {"dropout": True}, {"causal": True})),
    parametric=False,
    widths=FIXED,
    products=2,
    inside=_attention_inside,
)

KINDS = (LINEAR, MATMUL, ATTENTION)
