"""How arrays lie in memory in JAX: images with their channels last, heads of attention after their places.

A described network knows shapes as PyTorch has them. What a layer reads is made up, so another order of its values
costs nothing: every array is stored as its own layer likes it, and read by a reshape, never by a transposition.
"""

from typing import Tuple

from ...network import Layer
from ...network.kinds.kind import Shape

IMAGES = ("conv", "conv_grouped", "conv_transposed", "norm_batch", "glue")
HEADS = ("attention",)


def axis(dimension: int, rank: int, layer: Layer) -> int:
    """Where a dimension of a layer's array is stored."""
    if layer.kind in IMAGES and rank > 2 and dimension > 0:
        return rank - 1 if dimension == 1 else dimension - 1
    if layer.kind in HEADS and rank == 4:
        return (0, 2, 1, 3)[dimension]
    return dimension


def axes(dimensions: Tuple[int, ...], rank: int, layer: Layer) -> Tuple[int, ...]:
    return tuple(axis(dimension, rank, layer) for dimension in dimensions)


def stored(shape: Shape, layer: Layer) -> Shape:
    found = list(shape)
    for dimension, size in enumerate(shape):
        found[axis(dimension, len(shape), layer)] = size
    return tuple(found)
