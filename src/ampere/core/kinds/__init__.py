"""The table of layer kinds. A new kind is one entry here and one builder in each runtime."""

from typing import Dict

from ampere.core.layer import Layer

from .convolution import CONVOLUTION, is_direct
from .kind import USUAL_WIDTH, VECTOR_WIDTHS, Kind, Work
from .pointwise import EMBEDDING, GLUE, NORM_BATCH, NORM_LAYER, OPAQUE, SCALE
from .products import ATTENTION, LINEAR, MATMUL
from .recurrent import RECURRENT

KINDS: Dict[str, Kind] = {
    "conv": CONVOLUTION,
    "conv_grouped": CONVOLUTION,
    "conv_transposed": CONVOLUTION,
    "linear": LINEAR,
    "matmul": MATMUL,
    "attention": ATTENTION,
    "lstm": RECURRENT,
    "gru": RECURRENT,
    "rnn": RECURRENT,
    "norm_batch": NORM_BATCH,
    "norm_layer": NORM_LAYER,
    "embedding": EMBEDDING,
    "scale": SCALE,
    "nonparametric": GLUE,
    "opaque": OPAQUE,
}


# Layers that share prices and a surface: a kind, or a part of one that runtimes take another path for.
GROUPS = (*KINDS, "conv_direct")


def group(layer: Layer) -> str:
    return "conv_direct" if layer.kind == "conv" and is_direct(layer) else layer.kind


def work(layer: Layer, width: int = USUAL_WIDTH) -> Work:
    """A layer that shares parameters, or has others than its kind, says in its config how many are its own."""
    told = KINDS[layer.kind].work(layer, width)
    if "parameters" not in layer.config:
        return told
    own, tensors = layer.config["parameters"], layer.config["parameter_tensors"]
    return told._replace(parameters=own, parameter_tensors=tensors)


__all__ = ["GROUPS", "KINDS", "USUAL_WIDTH", "VECTOR_WIDTHS", "Kind", "Work", "group", "work"]
