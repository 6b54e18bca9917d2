"""The table of layer kinds.

A kind is one entry in a file of this package: its name, its words for people, the shapes it reads and makes, its
work, its coordinates, how tracing recognises it, and small examples of it. Each runtime that it names has a builder of
it in `ampere.runtimes`; the others refuse it by name.
"""

from typing import Dict, FrozenSet

from ampere.core.layer import Layer

from . import convolution, lookups, norms, operations, other, products, recurrent, sequences
from .kind import FIXED, FREE, OUTPUT, TIED, USUAL_WIDTH, VECTOR_WIDTHS, Draft, Kind, Operand, Work

KINDS: Dict[str, Kind] = {
    kind.name: kind
    for file in (convolution, products, recurrent, norms, lookups, sequences, operations, other)
    for kind in file.KINDS
}

# Layers that share prices and a surface: a kind, or a part of one that runtimes take another path for.
OF_KIND = {"conv_direct": "conv", "conv_depthwise": "conv_grouped"}
WORDS = {"conv_direct": "small convolution", "conv_depthwise": "depthwise convolution"}
GROUPS = (*KINDS, *OF_KIND)

SHARED_VISITS = 4  # of a gradient's values: written, read with those of the sum, and written to it


def group(layer: Layer) -> str:
    if layer.kind == "conv":
        return "conv_direct" if convolution.is_direct(layer) else "conv"
    return "conv_depthwise" if layer.kind == "conv_grouped" and layer.config["groups"] == 0 else layer.kind


def words(group: str) -> str:
    """What people call the layers of a group."""
    return WORDS[group] if group in WORDS else KINDS[group].words


def kind_of_group(group: str) -> Kind:
    return KINDS[OF_KIND.get(group, group)]


def work(layer: Layer, width: int = USUAL_WIDTH) -> Work:
    """A layer that shares parameters, or has others than its kind, says in its config how many are its own."""
    counted = KINDS[layer.kind].work(layer, width)
    if "parameters" not in layer.config:
        return counted
    own, tensors = layer.config["parameters"], layer.config["parameter_tensors"]
    shared = max(0, counted.parameters - own)  # whose gradient is made here too, and added to that of their first use
    return counted._replace(
        launches=counted.launches + max(0, counted.parameter_tensors - tensors),
        values=counted.values + SHARED_VISITS * shared,
        parameters=own,
        parameter_tensors=tensors,
    )


def built_by(runtime: str) -> FrozenSet[str]:
    """The kinds that name this runtime as one that builds them."""
    return frozenset(name for name, kind in KINDS.items() if runtime in kind.runtimes)


def resized(layer: Layer, channels_in: int, channels_out: int) -> Layer:
    """The layer with these channels, as far as its kind lets them change."""
    widths = KINDS[layer.kind].widths
    if widths == FIXED:
        return layer
    if widths == OUTPUT:
        return layer.with_channels(layer.channels_in, channels_out)
    if widths == TIED or layer.config.get("groups") == 0:  # depthwise
        return layer.with_channels(channels_in, channels_in * layer.channels_out // layer.channels_in)
    return layer.with_channels(channels_in, channels_out)


__all__ = [
    "FIXED",
    "FREE",
    "GROUPS",
    "KINDS",
    "OUTPUT",
    "TIED",
    "USUAL_WIDTH",
    "VECTOR_WIDTHS",
    "Draft",
    "Kind",
    "Operand",
    "Work",
    "built_by",
    "group",
    "kind_of_group",
    "resized",
    "words",
    "work",
]
