"""Small layers of every kind that can be built from a description."""

from typing import Any, Dict, List, Tuple

from ...network import Layer


def conv(
    kind: str = "conv",
    size: Tuple[int, ...] = (8, 8),
    groups: int = 1,
    channels: Tuple[int, int] = (4, 8),
    **more: Any,
) -> Layer:
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


def transposed(output_padding: Tuple[int, int] = (0, 0), groups: int = 1) -> Layer:
    return conv("conv_transposed", groups=groups, stride=(2, 2), output_padding=output_padding)


def recurrent(kind: str) -> List[Layer]:
    config = {"batch": 3, "length": 5, "layers": 2, "directions": 2, "bias": True}
    more: List[Dict[str, Any]] = [{}, {"state_grad": True}]
    return [Layer(kind, {**config, **each}, 6, 7) for each in more]


def variants(kind: str, config: Dict[str, Any], channels: Tuple[int, int], *more: Dict[str, Any]) -> List[Layer]:
    return [Layer(kind, {**config, **each}, *channels) for each in more]


EXAMPLES: Dict[str, List[Layer]] = {
    "conv": [conv(), conv(size=(9,)), conv(size=(4, 4, 4)), conv(stride=(2, 2), bias=False)],
    "conv_grouped": [conv("conv_grouped", groups=2), conv("conv_grouped", groups=0)],
    "conv_transposed": [transposed((1, 1)), transposed(), transposed(groups=2)],
    "linear": [Layer("linear", {"lead": (3, 5), "bias": True}, 8, 4)],
    "matmul": variants("matmul", {"batch": 6, "rows": 5}, (4, 7), {}, {"gradients": 1}),
    "attention": variants(
        "attention", {"batch": 3, "heads": 2, "queries": 5, "keys": 6}, (8, 7), {}, {"dropout": True}, {"causal": True}
    ),
    "lstm": recurrent("lstm"),
    "gru": recurrent("gru"),
    "rnn": recurrent("rnn"),
    "norm_batch": [Layer("norm_batch", {"batch": 3, "size": (4,) * n}, 6, 6) for n in range(4)],
    "norm_layer": variants("norm_layer", {"lead": (3, 5)}, (6, 6), {}, {"bias": False}, {"groups": 2}),
    "embedding": [Layer("embedding", {"lead": (3, 5)}, 11, 6, input_grad=False)],
    "scale": [Layer("scale", {"values": values}, 6, 6) for values in (24, 25, 4)],
    "glue": [Layer("glue", {"batch": 3}, 1, 1)],
}
