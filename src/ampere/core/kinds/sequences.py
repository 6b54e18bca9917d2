"""Operations along one dimension of an activation, without parameters.

sort   all values in their order                  aten sort
top_k  the largest (or smallest) of them          aten topk
scan   running sums                               aten cumsum

Others like them (a median, a running product) cost several times as much, and are replayed as they are.

config: outer, inner; an activation of outer x length x inner values, whose lengths are channels_in and channels_out.
Values that lie inner apart are slower to reach than neighbours.
"""

from math import log2
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from ampere.core.layer import Layer

from .kind import FIXED, Draft, Kind, Operand, TorchRecogniser, Work, product

Owned = Callable[[Any], bool]
SMALL = 1 << 16  # values: fewer whole numbers than that are bookkeeping
INDEX = 2  # values of the size of an index, which is a whole number of 64 bits


def _sizes(layer: Layer) -> Tuple[Any, Any]:
    """The values that are read and written."""
    sequences = layer.config["outer"] * layer.config["inner"]
    return sequences * layer.channels_in, sequences * layer.channels_out


def _levels(layer: Layer) -> float:
    """How often each value of a sequence is visited to bring it into order."""
    return max(1.0, log2(max(2, layer.channels_in)))


def _ordered(layer: Layer, width: int) -> Work:
    """Backward adds the gradients to the places that the values came from."""
    read, written = _sizes(layer)
    back = int(layer.input_grad)
    values = read * _levels(layer) + written * (1 + INDEX) + back * (written * (1 + INDEX) + read)
    return Work(launches=1 + 2 * back, values=values)


def _scanned(layer: Layer, width: int) -> Work:
    """Backward is a running sum from the other end: two flips around the same operation."""
    read, written = _sizes(layer)
    back = int(layer.input_grad)
    return Work(launches=1 + 3 * back, values=(1 + 3 * back) * (read + written))


def _shape(layer: Layer, length: int) -> Tuple[int, ...]:
    outer, inner = layer.config["outer"], layer.config["inner"]
    return (outer, length) if inner == 1 else (outer, length, inner)


def _dimension(x: Any, dim: int) -> Tuple[int, int, int]:
    """How many values are before a dimension, along it and behind it."""
    shape = tuple(x.shape) or (1,)
    place = dim % len(shape)
    return int(product(shape[:place])), int(shape[place]), int(product(shape[place + 1 :]))


def _draft(kind: str, x: Any, dim: int, length: int, owned: Owned) -> Optional[Draft]:
    counts = x.is_floating_point() or x.numel() > SMALL
    if owned(x) or not counts or not x.numel():
        return None
    outer, before, inner = _dimension(x, dim)
    return Draft(kind, {"outer": outer, "inner": inner}, before, length, (), (x,))


def _argument(args: Sequence[Any], place: int, usual: int) -> int:
    return int(args[place]) if len(args) > place and args[place] is not None else usual


def _sort(args: Sequence[Any], result: Any, owned: Owned) -> Optional[Draft]:
    stable = len(args) > 1 and (args[1] is None or isinstance(args[1], bool))  # sort.stable(x, stable, dim)
    dim = _argument(args, 2 if stable else 1, -1)
    return _draft("sort", args[0], dim, _dimension(args[0], dim)[1], owned)


def _top(args: Sequence[Any], result: Any, owned: Owned) -> Optional[Draft]:
    return _draft("top_k", args[0], _argument(args, 2, -1), int(args[1]), owned)


def _scan(args: Sequence[Any], result: Any, owned: Owned) -> Optional[Draft]:
    dim = int(args[1])
    return _draft("scan", args[0], dim, _dimension(args[0], dim)[1], owned)


def _kind(
    name: str,
    words: str,
    work: Callable[[Layer, int], Work],
    examples: Tuple[Layer, ...],
    torch: Dict[str, TorchRecogniser],
) -> Kind:
    return Kind(
        name,
        words,
        work,
        lambda layer, width: (layer.config["outer"], layer.channels_in, layer.channels_out, layer.config["inner"]),
        lambda layer: (Operand(_shape(layer, layer.channels_in), layer.input_grad),),
        lambda layer: _shape(layer, layer.channels_out),
        ("torch",),
        examples,
        torch,
        parametric=False,
        widths=FIXED,
    )


def _examples(kind: str, length: int) -> Tuple[Layer, ...]:
    return tuple(Layer(kind, {"outer": 3, "inner": inner}, 7, length) for inner in (1, 4))


KINDS = (
    _kind("sort", "sorting", _ordered, _examples("sort", 7), {"sort": _sort}),
    _kind("top_k", "largest values", _ordered, _examples("top_k", 2), {"topk": _top}),
    _kind("scan", "running sum", _scanned, _examples("scan", 7), {"cumsum": _scan}),
)
