"""Layer kinds in MNN: its own modules where it has them, else its operations."""

from typing import Any, Callable, Dict, NamedTuple, Optional

import MNN.nn as nn
import numpy as np

from ...network import Layer
from ..operands import operands, shape_out
from .mnn_tensors import PADDED, F, Numbers, Var, across_down, constant, image, parameter, plain

DROPOUT = 0.1  # the usual share
EPSILON = 1e-5


class Built(NamedTuple):
    forward: Callable[..., Var]
    module: Optional[Any] = None  # whose parameters are trained
    tensors: int = 0  # so many of them


class Held(nn.Module):  # type: ignore[misc]
    """Parameters of an operation that MNN has no module for."""

    def __init__(self, **parameters: Var) -> None:
        super().__init__()
        for name, value in parameters.items():
            setattr(self, name, value)


def build_layer(layer: Layer, numbers: Numbers) -> Built:
    return BUILDERS[layer.kind](layer, numbers)


def _convolution(layer: Layer, numbers: Numbers) -> Built:
    c, shape = layer.config, operands(layer)[0].shape
    module = nn.conv(
        layer.channels_in,
        layer.channels_out,
        across_down(c["kernel"], 1),
        across_down(c["stride"], 1),
        across_down(c["padding"], 0),
        across_down(c["dilation"], 1),
        c["groups"] == 0,
        bool(c["bias"]),
        PADDED,
    )
    return _started(module, lambda x: image(x, shape), numbers)


def _transposed(layer: Layer, numbers: Numbers) -> Built:
    c, shape = layer.config, operands(layer)[0].shape
    across, down = across_down(c["kernel"], 1)
    weights = parameter(_usual(numbers, (layer.channels_in, layer.channels_out, down, across)))
    bias = parameter(np.zeros(layer.channels_out))
    stride, padding, dilation = (across_down(c[n], m) for n, m in (("stride", 1), ("padding", 0), ("dilation", 1)))
    held = Held(weight=weights, bias=bias) if c["bias"] else Held(weight=weights)

    def forward(x: Var) -> Var:
        return F.conv2d_transpose(image(x, shape), weights, bias, stride, padding, dilation, 1, PADDED)

    return Built(forward, held, 1 + int(bool(c["bias"])))


def _linear(layer: Layer, numbers: Numbers) -> Built:
    shape = operands(layer)[0].shape
    if not layer.config["bias"]:
        weights = parameter(_usual(numbers, (layer.channels_out, layer.channels_in)))
        return Built(lambda x: F.matmul(plain(x, shape), weights, False, True), Held(weight=weights), 1)
    module = nn.linear(layer.channels_in, layer.channels_out)
    return _started(module, lambda x: plain(x, shape), numbers)


def _started(module: Any, view: Callable[[Var], Var], numbers: Numbers) -> Built:
    """MNN's own first weights differ from run to run: these do not."""
    for weight in module.parameters:
        is_bias = sum(n > 1 for n in weight.shape) < 2
        weight.write(np.zeros(weight.shape, np.float32) if is_bias else _usual(numbers, weight.shape))
    return Built(lambda x: module.forward(view(x)), module, len(module.parameters))


def _usual(numbers: Numbers, shape: Any) -> Any:
    return (numbers.standard_normal(tuple(shape)) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def _norm_batch(layer: Layer, numbers: Numbers) -> Built:
    shape = operands(layer)[0].shape
    places = int(np.prod(shape[2:]))
    module = nn.batch_norm(layer.channels_in)
    return Built(lambda x: module.forward(image(x, (*shape[:2], places))), module, 2)


def _norm_layer(layer: Layer, numbers: Numbers) -> Built:
    shape, groups = operands(layer)[0].shape, layer.config.get("groups")
    parts = (shape[0], groups, int(np.prod(shape[1:])) // groups) if groups else shape
    weight, bias = parameter(np.ones(layer.channels_in)), parameter(np.zeros(layer.channels_in))
    shifted = bool(layer.config.get("bias", True))

    def forward(x: Var) -> Var:
        scaled = F.multiply(plain(_standard(plain(x, parts)), shape), weight)
        return F.add(scaled, bias) if shifted else scaled

    return Built(forward, Held(weight=weight, bias=bias) if shifted else Held(weight=weight), 1 + int(shifted))


def _standard(x: Var) -> Var:
    """Mean 0 and variance 1 along the last dimension."""
    last = [len(x.shape) - 1]
    centred = F.subtract(x, F.reduce_mean(x, last, True))
    variance = F.reduce_mean(F.square(centred), last, True)
    return F.divide(centred, F.sqrt(F.add(variance, constant([EPSILON]))))


def _scale(layer: Layer, numbers: Numbers) -> Built:
    values, width = layer.config["values"], layer.channels_out
    weight, rows = parameter(np.ones(width)), -(-values // width)
    if values % width == 0:
        return Built(lambda x: F.multiply(plain(x, (rows, width)), weight), Held(weight=weight), 1)
    sizes = [values, rows * width - values]

    def forward(x: Var) -> Var:
        repeated = plain(F.multiply(constant(np.ones((rows, 1))), weight), (rows * width,))
        return F.multiply(plain(x, (values,)), F.split(repeated, sizes, 0)[0])

    return Built(forward, Held(weight=weight), 1)


def _matmul(layer: Layer, numbers: Numbers) -> Built:
    left, right = (operand.shape for operand in operands(layer))
    return Built(lambda a, b: F.matmul(plain(a, left), plain(b, right), False, False))


def _attention(layer: Layer, numbers: Numbers) -> Built:
    """MNN's fused attention has no gradient: these are its products and its softmax."""
    shapes, c = [operand.shape for operand in operands(layer)], layer.config
    scale = constant([layer.channels_in**-0.5])
    later = np.triu(np.ones((c["queries"], c["keys"])), 1)
    mask = constant(-1e9 * later) if c.get("causal") else None
    drop = nn.dropout(DROPOUT) if c.get("dropout") else None

    def forward(*given: Var) -> Var:
        query, key, value = (plain(x, shape) for x, shape in zip(given, shapes))
        scores = F.multiply(F.matmul(query, key, False, True), scale)
        weights = F.softmax(scores if mask is None else F.add(scores, mask), -1)
        return F.matmul(drop.forward(weights) if drop else weights, value, False, False)

    return Built(forward)


BUILDERS: Dict[str, Callable[[Layer, Numbers], Built]] = {
    "conv": _convolution,
    "conv_grouped": _convolution,
    "conv_transposed": _transposed,
    "linear": _linear,
    "matmul": _matmul,
    "attention": _attention,
    "norm_batch": _norm_batch,
    "norm_layer": _norm_layer,
    "scale": _scale,
    "glue": lambda layer, numbers: Built(lambda x: plain(x, shape_out(layer))),
}
