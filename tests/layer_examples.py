"""Layers of every kind that can be built from a description."""

from ampere.network import Layer


def conv(kind="conv", size=(8, 8), groups=1, channels=(4, 8), **more):
    n = len(size)
    config = {
        "batch": 3,
        "size_in": size,
        "kernel": (3,) * n,
        "stride": (1,) * n,
        "padding": (1,) * n,
        "dilation": (1,) * n,
        "bias": True,
        "groups": groups,
    }
    return Layer(kind, {**config, **more}, *channels)


def recurrent(kind):
    config = {"batch": 3, "length": 5, "layers": 2, "directions": 2, "bias": True}
    return [Layer(kind, {**config, **more}, 6, 7) for more in ({}, {"state_grad": True})]


EXAMPLES = {
    "conv": [conv(), conv(size=(9,)), conv(size=(4, 4, 4)), conv(stride=(2, 2), bias=False)],
    "conv_grouped": [conv("conv_grouped", groups=2), conv("conv_grouped", groups=0)],
    "conv_transposed": [conv("conv_transposed", stride=(2, 2), output_padding=(1, 1))],
    "linear": [Layer("linear", {"lead": (3, 5), "bias": True}, 8, 4)],
    "matmul": [Layer("matmul", {"batch": 6, "rows": 5, **more}, 4, 7) for more in ({}, {"gradients": 1})],
    "attention": [
        Layer("attention", {"batch": 3, "heads": 2, "queries": 5, "keys": 6, **more}, 8, 7)
        for more in ({}, {"dropout": True}, {"causal": True})
    ],
    "lstm": recurrent("lstm"),
    "gru": recurrent("gru"),
    "rnn": recurrent("rnn"),
    "norm_batch": [Layer("norm_batch", {"batch": 3, "size": (4,) * n}, 6, 6) for n in range(4)],
    "norm_layer": [
        Layer("norm_layer", {"lead": (3, 5), **more}, 6, 6) for more in ({}, {"bias": False}, {"groups": 2})
    ],
    "embedding": [Layer("embedding", {"lead": (3, 5)}, 11, 6, input_grad=False)],
    "scale": [Layer("scale", {"values": values}, 6, 6) for values in (24, 25, 4)],
    "glue": [Layer("glue", {"batch": 3}, 1, 1)],
}
