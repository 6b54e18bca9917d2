"""Matrix products: linear layers, products of two activations, attention.

linear     config: lead (the dimensions before the features), bias
matmul     config: batch, rows; channels are the inner and the last dimension; no parameters; `gradients`: 1 where
           only one of the two factors gets a gradient
attention  config: batch, heads, queries, keys; channels are a head's width in queries and keys, and in values;
           `causal` and `dropout` where True
"""

from typing import Any, Tuple

from ampere.core.layer import Layer

from .kind import Kind, Shape, Work, beyond_vectors, padded, passes, product


def linear_work(layer: Layer, width: int) -> Work:
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


def linear_coordinates(layer: Layer, width: int) -> Tuple[Any, ...]:
    cin, cout = layer.channels_in, layer.channels_out
    lead: Any = layer.config["lead"]
    return (cin, cout, padded(cin, width) / cin, padded(cout, width) / cout, product(lead), passes(layer))


def _lead(layer: Layer) -> Tuple[int, ...]:
    return layer.config["lead"]


LINEAR = Kind(
    linear_work,
    linear_coordinates,
    lambda layer: (*_lead(layer), layer.channels_in),
    lambda layer: (*_lead(layer), layer.channels_out),
)


def matmul_work(layer: Layer, width: int) -> Work:
    c: Any = layer.config
    products = 1 + c.get("gradients", 2) * int(layer.input_grad)
    inner, last = layer.channels_in, layer.channels_out
    return Work(
        launches=products,
        flops=2 * c["batch"] * c["rows"] * inner * last * products,
        padded_flops=2 * c["batch"] * c["rows"] * padded(inner, width) * padded(last, width) * products,
        values=c["batch"] * (c["rows"] * inner + inner * last + c["rows"] * last) * products,
    )


def matmul_coordinates(layer: Layer, width: int) -> Tuple[Any, ...]:
    c: Any = layer.config
    return (layer.channels_in, layer.channels_out, c["rows"], c["batch"], passes(layer))


def _matmul_in(layer: Layer) -> Shape:
    c: Any = layer.config
    return (c["batch"], c["rows"], layer.channels_in)


def _matmul_out(layer: Layer) -> Shape:
    c: Any = layer.config
    return (c["batch"], c["rows"], layer.channels_out)


MATMUL = Kind(matmul_work, matmul_coordinates, _matmul_in, _matmul_out)


def attention_work(layer: Layer, width: int) -> Work:
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


def attention_coordinates(layer: Layer, width: int) -> Tuple[Any, ...]:
    c: Any = layer.config
    return (layer.channels_in, c["batch"] * c["heads"], c["queries"], c["keys"], passes(layer))


def _attention_in(layer: Layer) -> Shape:
    c: Any = layer.config
    return (c["batch"], c["heads"], c["queries"], layer.channels_in)


def _attention_out(layer: Layer) -> Shape:
    c: Any = layer.config
    return (c["batch"], c["heads"], c["queries"], layer.channels_out)


ATTENTION = Kind(attention_work, attention_coordinates, _attention_in, _attention_out)
