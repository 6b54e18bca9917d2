"""Convolutions of 1, 2 and 3 dimensions: dense, grouped, depthwise, transposed.

config: batch, size_in, kernel, stride, padding, dilation (tuples), bias, and for transposed ones
output_padding. `groups` is the number of groups, or 0 for depthwise (a group for every input channel).
"""

from typing import Any, Callable, Dict, Iterator, Optional, Sequence, Tuple

from ampere.core.layer import Layer

from .kind import Draft, Kind, Shape, Work, beyond_vectors, one_input, padded, passes, product

SMALL_IMAGE = 20480  # values
COLOURS = 3  # input channels that runtimes have kernels of their own for, which fill no vector with zeros


def usual_config(batch: int, size: int) -> Dict[str, Any]:
    """The configuration of a 3x3 convolution that keeps the size of its square images."""
    return example("conv", (size, size), batch=batch).config  # type: ignore[return-value]


def example(
    kind: str = "conv",
    size: Tuple[int, ...] = (8, 8),
    groups: int = 1,
    channels: Tuple[int, int] = (4, 8),
    **more: Any,
) -> Layer:
    """A small convolution of width 3 along each dimension."""
    n = len(size)
    config: Dict[str, Any] = {
        "batch": 3,
        "size_in": size,
        "kernel": (3,) * n,
        "stride": (1,) * n,
        "padding": (1,) * n,
        "dilation": (1,) * n,
        "groups": groups,
        "bias": True,
    }
    return Layer(kind, {**config, **more}, *channels)


def transposed_example(output_padding: Tuple[int, int] = (0, 0), groups: int = 1) -> Layer:
    return example("conv_transposed", groups=groups, stride=(2, 2), output_padding=output_padding)


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


def _multiplies_each_image(layer: Layer) -> bool:
    """Of few images, each is multiplied with the weights by itself, along its places instead of its channels."""
    c: Any = layer.config
    return bool(product(c["kernel"]) == 1 and product(c["stride"]) == 1 and c["batch"] < 16)


def is_direct(layer: Layer) -> bool:
    """A plain matrix product, or a single small image: PyTorch hands neither to its convolution library."""
    c: Any = layer.config
    if _multiplies_each_image(layer):
        return True
    small = layer.channels_in * product(c["size_in"]) <= SMALL_IMAGE
    return bool(c["batch"] == 1 and max(c["kernel"]) <= 3 and small)


def _wide_in(channels: Any, width: int) -> Any:
    """Input channels as the vector unit sees them."""
    return padded(channels, width) - (channels == COLOURS) * (padded(COLOURS, width) - COLOURS)


def _work(layer: Layer, width: int) -> Work:
    c: Any = layer.config
    places_in, places_out = product(c["size_in"]), product(size_out(layer))
    places = places_in if layer.kind == "conv_transposed" else places_out
    once = c["batch"] * places * product(c["kernel"])
    window = once * passes(layer)
    cin, cout, groups = layer.channels_in, layer.channels_out, c["groups"] or layer.channels_in
    wide_in, wide_out = _wide_in(cin, width), cout if layer.kind == "conv_grouped" else padded(cout, width)
    weights = product(c["kernel"]) * cin * cout // groups
    visited, vectors = product(c["kernel"]) * wide_in * wide_out // groups, window * wide_in * wide_out // groups
    if layer.kind == "conv" and _multiplies_each_image(layer):
        visited, vectors = c["batch"] * weights, c["batch"] * padded(places, width) * passes(layer) * weights
    # The library goes over all places of the input to pass gradients on through strided groups.
    half_window = (
        window if layer.kind != "conv_grouped" else c["batch"] * places_in * product(c["kernel"]) * passes(layer)
    )
    return Work(
        launches=1 + int(layer.backward),
        flops=2 * window * cin * cout // groups,
        padded_flops=2 * vectors,
        half_padded_flops=2 * half_window * cin * wide_out // groups,
        values=c["batch"] * (places_in * cin + places_out * cout) * passes(layer),
        padded_values=c["batch"] * (places_in * wide_in + places_out * wide_out) * passes(layer),
        parameters=(weights + (cout if c["bias"] else 0)) * int(layer.trainable),
        parameter_tensors=(1 + int(bool(c["bias"]))) * int(layer.trainable),
        weights=visited * passes(layer),
        remainder_flops=2 * once * beyond_vectors(layer, width) if layer.kind == "conv" else 0,
    )


def _coordinates(layer: Layer, width: int) -> Tuple[Any, ...]:
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


def _shape_in(layer: Layer) -> Shape:
    return (layer.config["batch"], layer.channels_in, *layer.config["size_in"])


def _shape_out(layer: Layer) -> Shape:
    return (layer.config["batch"], layer.channels_out, *size_out(layer))


def _name(transposed: bool, groups: int) -> str:
    return "conv_transposed" if transposed else "conv" if groups == 1 else "conv_grouped"


def _from_torch(args: Sequence[Any], result: Any, owned: Callable[[Any], bool]) -> Draft:
    x, weight, bias, stride, padding, dilation, transposed, output_padding, groups = args[:9]
    spatial = x.dim() - 2
    channels_in = int(x.shape[1])
    channels_out = int(weight.shape[1] * groups if transposed else weight.shape[0])
    config: Dict[str, Any] = {
        "batch": int(x.shape[0]),
        "size_in": tuple(x.shape[2:]),
        "kernel": tuple(weight.shape[2:]),
        "stride": _each(stride, spatial),
        "padding": _each(padding, spatial),
        "dilation": _each(dilation, spatial),
        "groups": 0 if groups > 1 and groups == channels_in else int(groups),
        "bias": bias is not None,
    }
    if transposed:
        config["output_padding"] = _each(output_padding, spatial)
    return Draft(_name(transposed, groups), config, channels_in, channels_out, (weight,), (x,))


def _each(values: Sequence[int], dimensions: int) -> Tuple[int, ...]:
    return tuple(int(v) for v in values) * (dimensions // len(values))


def _from_jax(equation: Any) -> Optional[Draft]:
    x, kernel = equation.inputs[:2]
    p, numbers = equation.parameters, equation.parameters["dimension_numbers"]
    if not kernel.owners or p["batch_group_count"] != 1:
        return None
    of_x, of_kernel = numbers.lhs_spec, numbers.rhs_spec
    channels_in, channels_out = x.shape[of_x[1]], kernel.shape[of_kernel[0]]
    groups = int(p["feature_group_count"])
    transposed = any(d != 1 for d in p["lhs_dilation"])
    config: Dict[str, Any] = {
        "batch": x.shape[of_x[0]],
        "size_in": tuple(x.shape[i] for i in of_x[2:]),
        "kernel": tuple(kernel.shape[i] for i in of_kernel[2:]),
        "stride": tuple(map(int, p["window_strides"])),
        "padding": tuple(_padding(*map(int, sizes)) for sizes in _windows(equation)),
        "dilation": tuple(map(int, p["rhs_dilation"])),
        "groups": 0 if groups > 1 and groups == channels_in else groups,
        "bias": False,
    }
    if transposed:
        config.update(_enlarging(equation))
    return Draft(_name(transposed, groups), config, channels_in, channels_out, (kernel,), (x,))


def _enlarging(equation: Any) -> Dict[str, Any]:
    """A transposed convolution's sizes in PyTorch's words: its stride is how far JAX pulls the input apart."""
    stride, padding, more = [], [], []
    for place, (_, _, size, reach, _, result) in enumerate(_windows(equation)):
        pulled = int(equation.parameters["lhs_dilation"][place])
        cut = (size - 1) * pulled + reach + 1 - result  # what padding takes away, less what is added at the end
        stride.append(pulled)
        padding.append((cut + 1) // 2)
        more.append(cut % 2)
    return {"stride": tuple(stride), "padding": tuple(padding), "output_padding": tuple(more)}


def _windows(equation: Any) -> Iterator[Tuple[int, int, int, int, int, int]]:
    """Before, after, size, reach, stride and result along each dimension of an image."""
    (x, kernel), p, out = equation.inputs[:2], equation.parameters, equation.outputs[0]
    numbers = p["dimension_numbers"]
    for place, (before, after) in enumerate(p["padding"]):
        reach = p["rhs_dilation"][place] * (kernel.shape[numbers.rhs_spec[2 + place]] - 1)
        size, result = x.shape[numbers.lhs_spec[2 + place]], out.shape[numbers.out_spec[2 + place]]
        yield before, after, size, reach, p["window_strides"][place], result


def _padding(before: int, after: int, size: int, reach: int, stride: int, result: int) -> int:
    """The same on both sides, so that as much comes out: with a stride, SAME pads one side by one more."""
    narrow, wide = (before + after) // 2, (before + after + 1) // 2
    return wide if (size + 2 * wide - reach - 1) // stride + 1 == result else narrow


def _convolution(name: str, words: str, examples: Tuple[Layer, ...], **more: Any) -> Kind:
    return Kind(
        name,
        words,
        _work,
        _coordinates,
        one_input(_shape_in),
        _shape_out,
        ("torch", "jax", "mnn"),
        examples,
        waste=(2, 3),
        products=1,
        **more,
    )


KINDS = (
    _convolution(
        "conv",
        "convolution",
        (example(), example(size=(9,)), example(size=(4, 4, 4)), example(stride=(2, 2), bias=False)),
        torch={"convolution": _from_torch},
        jax={"conv_general_dilated": _from_jax},
    ),
    _convolution(
        "conv_grouped",
        "grouped convolution",
        (example("conv_grouped", groups=2), example("conv_grouped", groups=0)),
    ),
    _convolution(
        "conv_transposed",
        "transposed convolution",
        (transposed_example((1, 1)), transposed_example(), transposed_example(groups=2)),
    ),
)
