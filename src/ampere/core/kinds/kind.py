"""What an entry of the table of layer kinds says.

Work and coordinates are plain arithmetic on the layer's numbers, so the same code serves one layer and,
with arrays of channels in place of integers, a million of them at once.
"""

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from ampere.core.layer import Layer

VECTOR_WIDTHS = (4, 8, 16, 32)  # values a vector unit takes at once; costs step at multiples of it
USUAL_WIDTH = 8

Shape = Tuple[int, ...]


class Work(NamedTuple):
    """What a layer asks of a device in one training step, forward and backward."""

    launches: Any = 0  # operations started: each has a price, however small its tensors
    flops: Any = 0  # a multiply-add is two
    padded_flops: Any = 0  # the same with channels rounded up to the vector width
    half_padded_flops: Any = 0  # the same with only the output channels rounded up
    values: Any = 0  # activations and gradients read and written
    padded_values: Any = 0  # the same with channels rounded up to the vector width
    parameters: Any = 0  # trainable values, which the optimizer visits
    parameter_tensors: Any = 0
    remainders: Any = 0  # values beyond the last full vector, which go one by one
    remainder_flops: Any = 0  # FLOPs of channels beyond the last full vector, which some runtimes do one by one
    weights: Any = 0  # weight values as they are laid out for the vector unit, in every pass


class Operand(NamedTuple):
    """A tensor that a layer reads."""

    shape: Shape
    grad: bool
    tokens: int = 0  # whole numbers below it, where not 0


@dataclass
class Draft:
    """A layer as tracing recognises it, before it is known whether a gradient reaches it.

    A gradient with respect to any of `weights` makes it trainable; one with respect to any of
    `sources` goes on to what is before it.
    """

    kind: str
    config: Dict[str, Any]
    channels_in: int
    channels_out: int
    weights: Tuple[Any, ...] = ()
    sources: Tuple[Any, ...] = ()
    trainable: bool = field(default=False, init=False)
    input_grad: bool = field(default=False, init=False)

    def settle(self, has_gradient: Callable[[Any], bool]) -> "Draft":
        """Notes which operands get a gradient, and lets go of them."""
        self.trainable = any(map(has_gradient, self.weights))
        self.input_grad = any(map(has_gradient, self.sources))
        self.weights = self.sources = ()
        return self


# Of PyTorch: an aten operation's arguments, its result, and whether a tensor is computed from parameters alone.
TorchRecogniser = Callable[[Sequence[Any], Any, Callable[[Any], bool]], Optional[Draft]]
# Of JAX: an equation, as ampere.tracing.jax.equations has it.
JaxRecogniser = Callable[[Any], Optional[Draft]]

FREE, OUTPUT, TIED, FIXED = "free", "output", "tied", "fixed"


@dataclass(frozen=True)
class Kind:
    """One layer kind: everything about it but how a library builds it, which is in the file of each runtime."""

    name: str
    words: str  # for people
    work: Callable[[Layer, int], Work]  # on a device of the given vector width
    coordinates: Callable[[Layer, int], Tuple[Any, ...]]  # positive numbers; the surrogate takes logarithms
    operands: Callable[[Layer], Tuple[Operand, ...]]  # the tensors that it reads
    shape_out: Callable[[Layer], Shape]
    runtimes: Tuple[str, ...] = ()  # that have a builder of it
    examples: Tuple[Layer, ...] = ()  # small ones, which every runtime in `runtimes` is tested with
    torch: Mapping[str, TorchRecogniser] = field(default_factory=dict)  # aten operations that begin such a layer
    jax: Mapping[str, JaxRecogniser] = field(default_factory=dict)  # equations that do
    parametric: bool = True
    grouped: bool = False  # has parameters, but goes with the layer before it, as a norm does
    described: bool = True  # can be built from its description, without the user's code
    widths: str = FREE  # which channels may be changed: both, the output's, both in their ratio (TIED), or none (FIXED)
    has_surface: bool = True  # its cost is a function of its channels
    waste: Tuple[int, ...] = ()  # which coordinates say how far channels are from a multiple of the vector width
    products: int = 0  # matrix products in forward that are one operation each
    # Values of trailing operations inside the layer, by their class, forward and backward.
    inside: Callable[[Layer], Mapping[str, Any]] = lambda layer: {}


def one_input(shape: Callable[[Layer], Shape]) -> Callable[[Layer], Tuple[Operand, ...]]:
    """The operands of a kind that reads one tensor of activations."""
    return lambda layer: (Operand(tuple(shape(layer)), layer.input_grad),)


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


def present(*tensors: Any) -> Tuple[Any, ...]:
    """Those that are given."""
    return tuple(tensor for tensor in tensors if tensor is not None)
