"""The yardstick as a described network: the same small convolutional network in every runtime."""

from typing import Any, Dict

from ..network import Layer, Network, TailOp

BATCH = 10


def _conv(channels_in: int, channels_out: int, size: int, input_grad: bool) -> Layer:
    config: Dict[str, Any] = {
        "batch": BATCH,
        "size_in": (size, size),
        "kernel": (3, 3),
        "stride": (1, 1),
        "padding": (1, 1),
        "dilation": (1, 1),
        "groups": 1,
        "bias": True,
    }
    values = float(BATCH * channels_out * size * size)
    tail = (TailOp("elementwise", values, values), TailOp("pool", values, values / 4))
    return Layer("conv", config, channels_in, channels_out, tail, input_grad=input_grad)


def _last(channels_in: int, classes: int) -> Layer:
    values = float(BATCH * classes)
    loss = (TailOp("reduce", values, values), TailOp("reduce", values, 1.0))
    return Layer("linear", {"lead": (BATCH,), "bias": True}, channels_in, classes, loss)


YARDSTICK = Network((_conv(1, 8, 28, False), _conv(8, 16, 14, True), _last(16 * 7 * 7, 10)), BATCH, "yardstick")
