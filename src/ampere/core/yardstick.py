"""The yardstick as a described network: the same small convolutional network in every runtime."""

from ampere.core.kinds.convolution import usual_config

from .layer import Layer, TrailingOp
from .network import Network

BATCH = 10


def _conv(channels_in: int, channels_out: int, size: int, input_grad: bool) -> Layer:
    values = float(BATCH * channels_out * size * size)
    trailing = (TrailingOp("elementwise", values, values), TrailingOp("pool", values, values / 4))
    return Layer("conv", usual_config(BATCH, size), channels_in, channels_out, trailing, input_grad=input_grad)


def _last(channels_in: int, classes: int) -> Layer:
    values = float(BATCH * classes)
    loss = (TrailingOp("reduce", values, values), TrailingOp("reduce", values, 1.0))
    return Layer("linear", {"lead": (BATCH,), "bias": True}, channels_in, classes, loss)


YARDSTICK = Network((_conv(1, 8, 28, False), _conv(8, 16, 14, True), _last(16 * 7 * 7, 10)), BATCH, "yardstick")
