"""Layers that are no operation of their own.

nonparametric  config: batch; no parameters: operations before the first parametric one, all of them trailing;
               `size` where the shape of what they read is known
opaque         config: what the tracer counted of a module that no kind describes, and where to find it
"""

from typing import Any, Tuple

from ampere.core.layer import Layer

from .kind import FIXED, Kind, Operand, Shape, Work, one_input


def _what_the_first_reads(layer: Layer) -> Tuple[Operand, ...]:
    batch, size = layer.config["batch"], layer.config.get("size")
    if size is not None:
        return (Operand((batch, *size), layer.input_grad),)
    values = layer.trailing[0].values_in if layer.trailing else batch
    return (Operand((batch, max(1, round(values / batch))), layer.input_grad),)


def _unchanged(layer: Layer) -> Shape:
    return _what_the_first_reads(layer)[0].shape


NONPARAMETRIC = Kind(
    "nonparametric",
    "other operations",
    lambda layer, width: Work(),
    lambda layer, width: (1,),
    _what_the_first_reads,
    _unchanged,
    ("torch", "jax", "mnn"),
    (Layer("nonparametric", {"batch": 3}, 1, 1),),
    parametric=False,
    widths=FIXED,
    has_surface=False,
)


def _opaque_work(layer: Layer, width: int) -> Work:
    c: Any = layer.config
    return Work(
        launches=c["launches"],
        flops=c["flops"],
        values=c["values"],
        parameters=c["parameters"],
        parameter_tensors=c["parameter_tensors"],
    )


OPAQUE = Kind(
    "opaque",
    "unknown module",
    _opaque_work,
    lambda layer, width: (1 + layer.config["flops"], 1 + layer.config["values"]),
    one_input(lambda layer: layer.config["shape_in"]),
    lambda layer: layer.config["shape_out"],
    described=False,
    widths=FIXED,
    has_surface=False,
)

KINDS = (NONPARAMETRIC, OPAQUE)
