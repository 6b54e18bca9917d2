"""Layers without products: norms, embeddings, parameters that scale or shift, and what the input goes through first.

norm_batch  config: batch, size (places per channel), bias; groups of statistics are the channels
norm_layer  config: lead, bias; layer and root-mean-square norms, group norms (with `groups`)
embedding   config: lead (tokens); channels_in is the vocabulary
scale       config: values; a product or sum with a parameter that has channels_out values
nonparametric        config: batch; no parameters: operations before the first parametric one, all of them in the tail
            `size` where the shape of what they read is known
opaque      config: what the tracer counted of a module that no table knows, and where to find it
"""

from typing import Any

from ampere.core.layer import Layer

from .kind import Kind, Shape, Work, passes, product


def _affine(layer: Layer) -> int:
    return 1 + int(bool(layer.config.get("bias", True)))


def norm_batch_work(layer: Layer, width: int) -> Work:
    c: Any = layer.config
    values = c["batch"] * product(c["size"]) * layer.channels_out
    return Work(
        launches=1 + int(layer.backward),
        values=values * (2 + 3 * int(layer.backward)),
        parameters=_affine(layer) * layer.channels_out * int(layer.trainable),
        parameter_tensors=_affine(layer) * int(layer.trainable),
    )


def _norm_batch_shape(layer: Layer) -> Shape:
    c: Any = layer.config
    return (c["batch"], layer.channels_in, *c["size"])


NORM_BATCH = Kind(
    norm_batch_work,
    lambda layer, width: (layer.channels_out, product(layer.config["size"]), layer.config["batch"]),
    _norm_batch_shape,
    _norm_batch_shape,
)


def norm_layer_work(layer: Layer, width: int) -> Work:
    lead: Any = layer.config["lead"]
    values = product(lead) * layer.channels_out
    return Work(
        launches=1 + int(layer.backward),
        values=values * (2 + 3 * int(layer.backward)),
        parameters=_affine(layer) * layer.channels_out * int(layer.trainable),
        parameter_tensors=_affine(layer) * int(layer.trainable),
    )


def _norm_layer_shape(layer: Layer) -> Shape:
    lead: Any = layer.config["lead"]
    return (*lead, layer.channels_in)


NORM_LAYER = Kind(
    norm_layer_work,
    lambda layer, width: (layer.channels_out, product(layer.config["lead"])),
    _norm_layer_shape,
    _norm_layer_shape,
)


def embedding_work(layer: Layer, width: int) -> Work:
    lead: Any = layer.config["lead"]
    tokens = product(lead)
    table = layer.channels_in * layer.channels_out
    return Work(
        launches=1 + 2 * int(layer.trainable),
        values=2 * tokens * layer.channels_out * (1 + int(layer.trainable)) + table * int(layer.trainable),
        parameters=table * int(layer.trainable),
        parameter_tensors=int(layer.trainable),
    )


def _embedding_out(layer: Layer) -> Shape:
    lead: Any = layer.config["lead"]
    return (*lead, layer.channels_out)


EMBEDDING = Kind(
    embedding_work,
    lambda layer, width: (layer.channels_in, layer.channels_out, product(layer.config["lead"])),
    lambda layer: layer.config["lead"],
    _embedding_out,
)


def scale_work(layer: Layer, width: int) -> Work:
    values: Any = layer.config["values"]
    return Work(
        launches=1 + passes(layer),
        values=2 * values * passes(layer),
        parameters=layer.channels_out * int(layer.trainable),
        parameter_tensors=int(layer.trainable),
    )


SCALE = Kind(
    scale_work,
    lambda layer, width: (layer.channels_out, layer.config["values"]),
    lambda layer: (layer.config["values"],),
    lambda layer: (layer.config["values"],),
)


def _whole_batch(layer: Layer) -> Shape:
    return (layer.config["batch"],)


GLUE = Kind(lambda layer, width: Work(), lambda layer, width: (1,), _whole_batch, _whole_batch)


def opaque_work(layer: Layer, width: int) -> Work:
    c: Any = layer.config
    return Work(
        launches=c["launches"],
        flops=c["flops"],
        values=c["values"],
        parameters=c["parameters"],
        parameter_tensors=c["parameter_tensors"],
    )


OPAQUE = Kind(
    opaque_work,
    lambda layer, width: (1 + layer.config["flops"], 1 + layer.config["values"]),
    lambda layer: layer.config["shape_in"],
    lambda layer: layer.config["shape_out"],
)
