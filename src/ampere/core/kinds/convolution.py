"""Convolutions of 1, 2 and 3 dimensions: dense, grouped, depthwise, transposed.

config: batch, size_in, kernel, stride, padding, dilation (tuples), bias, and for transposed ones
output_padding. `groups` is the number of groups, or 0 for depthwise (a group for every input channel).
"""

from typing import Any, Dict, Tuple

from ampere.core.layer import Layer

from .kind import Kind, Shape, Work, beyond_vectors, padded, passes, product

SMALL_IMAGE = 20480  # values
COLOURS = 3  # input channels that runtimes have kernels of their own for, which fill no vector with zeros


def usual_config(batch: int, size: int) -> Dict[str, Any]:
    """Of a 3x3 convolution that keeps the size of its square images."""
    return {
        "batch": batch,
        "size_in": (size, size),
        "kernel": (3, 3),
        "stride": (1, 1),
        "padding": (1, 1),
        "dilation": (1, 1),
        "groups": 1,
        "bias": True,
    }


def size_out(layer: Layer) -> Tuple[int, ...]:
    c: Any = layer.config
    if layer.kind == "conv_transposed":
        return tuple(
            (n - 1) * s - 2 * p + d * (k - 1) + o + 1
            for n, k, s, p, d, o in zip(
                c["size_in"], c["kernel"], c["stride"], c["padding"], c["dilation"], c["output_padding"]
            )
        )
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(c["size_in"], c["kernel"], c["stride"], c["padding"], c["dilation"])
    )


def _groups(layer: Layer) -> Any:
    return layer.config["groups"] or layer.channels_in


def _wide_in(channels: Any, width: int) -> Any:
    """Input channels as the vector unit sees them."""
    return padded(channels, width) - (channels == COLOURS) * (padded(COLOURS, width) - COLOURS)


def is_direct(layer: Layer) -> bool:
    """A plain matrix product, or a single small image: PyTorch hands neither to its convolution library."""
    c: Any = layer.config
    if product(c["kernel"]) == 1 and product(c["stride"]) == 1 and c["batch"] < 16:
        return True
    small = layer.channels_in * product(c["size_in"]) <= SMALL_IMAGE
    return bool(c["batch"] == 1 and max(c["kernel"]) <= 3 and small)


def work(layer: Layer, width: int) -> Work:
    c: Any = layer.config
    places_in, places_out = product(c["size_in"]), product(size_out(layer))
    places = places_in if layer.kind == "conv_transposed" else places_out
    once = c["batch"] * places * product(c["kernel"])
    window = once * passes(layer)
    cin, cout, groups = layer.channels_in, layer.channels_out, _groups(layer)
    wide_in, wide_out = _wide_in(cin, width), cout if layer.kind == "conv_grouped" else padded(cout, width)
    weights = product(c["kernel"]) * cin * cout // groups
    return Work(
        launches=1 + int(layer.backward),
        flops=2 * window * cin * cout // groups,
        padded_flops=2 * window * wide_in * wide_out // groups,
        half_padded_flops=2 * window * cin * wide_out // groups,
        values=c["batch"] * (places_in * cin + places_out * cout) * passes(layer),
        padded_values=c["batch"] * (places_in * wide_in + places_out * wide_out) * passes(layer),
        parameters=(weights + (cout if c["bias"] else 0)) * int(layer.trainable),
        parameter_tensors=(1 + int(bool(c["bias"]))) * int(layer.trainable),
        weights=product(c["kernel"]) * wide_in * wide_out // groups * passes(layer),
        remainder_flops=2 * once * beyond_vectors(layer, width) if layer.kind == "conv" else 0,
    )


def coordinates(layer: Layer, width: int) -> Tuple[Any, ...]:
    c: Any = layer.config
    cin, cout = layer.channels_in, layer.channels_out
    return (
        cin,
        cout,
        _wide_in(cin, width) / cin,
        padded(cout, width) / cout,
        product(size_out(layer)),
        product(c["kernel"]),
        product(c["stride"]),
        c["batch"],
        passes(layer),
    )


def shape_in(layer: Layer) -> Shape:
    c: Any = layer.config
    return (c["batch"], layer.channels_in, *c["size_in"])


def shape_out(layer: Layer) -> Shape:
    return (layer.config["batch"], layer.channels_out, *size_out(layer))


CONVOLUTION = Kind(work, coordinates, shape_in, shape_out)
