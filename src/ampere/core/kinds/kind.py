"""What a table entry says of a layer kind.

All functions are plain arithmetic on the layer's numbers, so the same code serves one layer and,
with arrays of channels in place of integers, a million of them at once.
"""

from typing import Any, Callable, NamedTuple, Tuple

from ampere.core.layer import Layer

VECTOR_WIDTHS = (4, 8, 16, 32)  # values a vector unit takes at once; costs step at multiples of it
USUAL_WIDTH = 8


class Work(NamedTuple):
    """What a layer asks of a device in one training step, forward and backward."""

    launches: Any = 0  # operations started: each has a price, however small its tensors
    flops: Any = 0  # a multiply-add is two
    padded_flops: Any = 0  # the same with channels rounded up to the vector width
    half_padded_flops: Any = 0  # the same with only the output channels rounded up
    values: Any = 0  # activations and gradients read and written
    padded_values: Any = 0  # the same with channels rounded up to the vector width
    parameters: Any = 0  # trainable values, which the optimiser visits
    parameter_tensors: Any = 0
    remainders: Any = 0  # values beyond the last full vector, which go one by one
    remainder_flops: Any = 0  # FLOPs of channels beyond the last full vector, which some runtimes do one by one
    weights: Any = 0  # weight values as they are laid out for the vector unit, in every pass


Shape = Tuple[int, ...]


class Kind(NamedTuple):
    """One layer kind: its work, where it lies among its like, and the shapes that go in and out."""

    work: Callable[[Layer, int], Work]  # on a device of the given vector width
    coordinates: Callable[[Layer, int], Tuple[Any, ...]]  # positive numbers; the surrogate takes logarithms
    shape_in: Callable[[Layer], Shape]
    shape_out: Callable[[Layer], Shape]


def padded(channels: Any, width: int) -> Any:
    """Channels as the vector unit sees them."""
    return -(-channels // width) * width


def passes(layer: Layer) -> int:
    """How many products of the forward pass's size a step has: forward, gradient of input, of weight."""
    return 1 + int(layer.input_grad) + int(layer.trainable)


def beyond_vectors(layer: Layer, width: int) -> Any:
    """Pairs of channels, over all passes, that end in no full vector: a product's rows are channels of its result."""
    cin, cout = layer.channels_in, layer.channels_out
    return (1 + int(layer.trainable)) * cin * (cout % width) + int(layer.input_grad) * cout * (cin % width)


def product(values: "Tuple[Any, ...]") -> Any:
    result: Any = 1
    for value in values:
        result = result * value
    return result
