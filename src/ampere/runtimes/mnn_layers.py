"""Layer kinds in MNN: its own modules where it has them, else its operations; and the tensors that they read.

The functions of `MNN.expr` cast what they are given, and a cast has no gradient: what comes before it is silently not
trained. So the functions underneath are called here, which cast nothing.
"""

from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence, Tuple

import MNN.expr
import MNN.nn as nn
import numpy as np

from ampere.core import Layer
from ampere.core.wiring import operands, shape_out

from .table import checked_builders

F: Any = MNN.expr._F
PADDED = MNN.expr.Padding_Mode.CAFFE  # without it, MNN ignores the padding that it is given
UNPADDED = MNN.expr.Padding_Mode.VALID

DROPOUT = 0.1  # the usual share
EPSILON = 1e-5

Var = Any
Numbers = Any  # where random numbers come from

F.lazy_eval(True)  # otherwise nothing is trained, and nothing says so


class DoesNotFit(Exception):
    """MNN prints a line and goes on with a value that has no shape."""


def shape_of(x: Var) -> Tuple[int, ...]:
    shape = None if x is None else x.shape
    if shape is None or min(shape, default=1) < 1:
        raise DoesNotFit
    return tuple(shape)


def random_tensor(numbers: Numbers, shape: Sequence[int], spread: float = 1.0) -> Var:
    return constant(spread * numbers.standard_normal(tuple(shape)))


def constant(values: Any) -> Var:
    array = np.asarray(values, dtype=np.float32)
    return F.const(array, list(array.shape), F.NCHW, F.float)


def parameter(values: Any) -> Var:
    made = constant(values)
    made.fix_as_trainable()
    return made


def array_of(variable: Var) -> Any:
    """Its values now, with the dimensions that other libraries keep: of a vector one, of a sequence's kernel three."""
    values = np.array(variable.read())
    if sum(n > 1 for n in values.shape) < 2:
        return values.reshape(-1)
    return values.squeeze(2) if values.ndim == 4 and values.shape[2] == 1 else values


def plain(x: Var, shape: Sequence[int]) -> Var:
    """Values in the order of their dimensions."""
    known = shape_of(x)
    if x.data_format == F.NC4HW4:
        x = F.convert(x, F.NCHW)
    return x if known == tuple(shape) else F.reshape(x, list(shape), F.NCHW)


def image(x: Var, shape: Sequence[int]) -> Var:
    """Channels by fours, as convolutions and pools read them; a sequence is an image of one row."""
    whole = as_image(shape)
    if shape_of(x) != whole:
        x = plain(x, whole)
    return x if x.data_format == F.NC4HW4 else F.convert(x, F.NC4HW4)


def as_image(shape: Sequence[int]) -> Tuple[int, ...]:
    rows = (1,) * (4 - len(shape))
    return (*shape[:2], *rows, *shape[2:])


def across_down(sizes: Sequence[int], missing: int) -> "list[int]":
    """MNN names the width first; a sequence has no height."""
    down, across = sizes if len(sizes) == 2 else (missing, *sizes)
    return [across, down]


class Built(NamedTuple):
    """A layer, ready to be called."""

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


BUILDERS: Dict[str, Callable[[Layer, Numbers], Built]] = checked_builders(
    "mnn",
    {
        "conv": _convolution,
        "conv_grouped": _convolution,
        "conv_transposed": _transposed,
        "linear": _linear,
        "matmul": _matmul,
        "attention": _attention,
        "norm_batch": _norm_batch,
        "norm_layer": _norm_layer,
        "scale": _scale,
        "nonparametric": lambda layer, numbers: Built(lambda x: plain(x, shape_out(layer))),
    },
)
