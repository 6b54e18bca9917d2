"""Normalisations, and parameters that scale or shift.

norm_batch  config: batch, size (places per channel), bias; groups of statistics are the channels
norm_layer  config: lead, bias; layer and root-mean-square norms, group norms (with `groups`)
scale       config: values; a product or sum with a parameter that has channels_out values. Tracing takes every
            operation on a parameter that begins no layer of another kind for one.
"""

from typing import Any, Callable, Sequence

from ampere.core.layer import Layer

from .kind import FIXED, TIED, Draft, Kind, Shape, Work, one_input, passes, present, product

Owned = Callable[[Any], bool]


def _norm_work(layer: Layer, values: Any) -> Work:
    affine = 1 + int(bool(layer.config.get("bias", True)))
    return Work(
        launches=1 + int(layer.backward),
        values=values * (2 + 3 * int(layer.backward)),
        parameters=affine * layer.channels_out * int(layer.trainable),
        parameter_tensors=affine * int(layer.trainable),
    )


def _norm_batch_work(layer: Layer, width: int) -> Work:
    return _norm_work(layer, layer.config["batch"] * product(layer.config["size"]) * layer.channels_out)


def _norm_batch_shape(layer: Layer) -> Shape:
    return (layer.config["batch"], layer.channels_in, *layer.config["size"])


def _batch_norm(args: Sequence[Any], result: Any, owned: Owned) -> Draft:
    x, weight, bias = args[:3]
    channels = int(x.shape[1])
    config = {"batch": int(x.shape[0]), "size": tuple(x.shape[2:]), "bias": bias is not None}
    return Draft("norm_batch", config, channels, channels, present(weight, bias), (x,))


NORM_BATCH = Kind(
    "norm_batch",
    "batch norm",
    _norm_batch_work,
    lambda layer, width: (layer.channels_out, product(layer.config["size"]), layer.config["batch"]),
    one_input(_norm_batch_shape),
    _norm_batch_shape,
    ("torch", "jax", "mnn"),
    tuple(Layer("norm_batch", {"batch": 3, "size": (4,) * n}, 6, 6) for n in range(4)),
    torch=dict.fromkeys(
        (
            "native_batch_norm",
            "_native_batch_norm_legit",
            "_native_batch_norm_legit_functional",
            "_native_batch_norm_legit_no_training",
            "_batch_norm_with_update",
            "_batch_norm_no_update",
        ),
        _batch_norm,
    ),
    widths=TIED,
    grouped=True,
)


def _norm_layer_work(layer: Layer, width: int) -> Work:
    return _norm_work(layer, product(layer.config["lead"]) * layer.channels_out)


def _norm_layer_shape(layer: Layer) -> Shape:
    return (*layer.config["lead"], layer.channels_in)


def _layer_norm(args: Sequence[Any], result: Any, owned: Owned) -> Draft:
    return _over_last(args[0], args[1], args[2], args[3])


def _rms_norm(args: Sequence[Any], result: Any, owned: Owned) -> Draft:
    return _over_last(args[0], args[1], args[2], None)


def _over_last(x: Any, shape: Sequence[int], weight: Any, bias: Any) -> Draft:
    channels = product(tuple(shape))
    config = {"lead": tuple(x.shape[: x.dim() - len(shape)]), "bias": bias is not None}
    return Draft("norm_layer", config, channels, channels, present(weight, bias), (x,))


def _group_norm(args: Sequence[Any], result: Any, owned: Owned) -> Draft:
    x, weight, bias, batch, channels, places, groups = args[:7]
    config = {"lead": (int(batch), int(places)), "groups": int(groups), "bias": bias is not None}
    return Draft("norm_layer", config, int(channels), int(channels), present(weight, bias), (x,))


NORM_LAYER = Kind(
    "norm_layer",
    "layer norm",
    _norm_layer_work,
    lambda layer, width: (layer.channels_out, product(layer.config["lead"])),
    one_input(_norm_layer_shape),
    _norm_layer_shape,
    ("torch", "jax", "mnn"),
    tuple(Layer("norm_layer", {"lead": (3, 5), **each}, 6, 6) for each in ({}, {"bias": False}, {"groups": 2})),
    torch={"native_layer_norm": _layer_norm, "_fused_rms_norm": _rms_norm, "native_group_norm": _group_norm},
    widths=TIED,
    grouped=True,
)


def _scale_work(layer: Layer, width: int) -> Work:
    values: Any = layer.config["values"]
    return Work(
        launches=1 + passes(layer),
        values=2 * values * passes(layer),
        parameters=layer.channels_out * int(layer.trainable),
        parameter_tensors=int(layer.trainable),
    )


def _scale_shape(layer: Layer) -> Shape:
    return (layer.config["values"],)


SCALE = Kind(
    "scale",
    "scale",
    _scale_work,
    lambda layer, width: (layer.channels_out, layer.config["values"]),
    one_input(_scale_shape),
    _scale_shape,
    ("torch", "jax", "mnn"),
    tuple(Layer("scale", {"values": values}, 6, 6) for values in (24, 25, 4)),
    widths=FIXED,
    grouped=True,
)

KINDS = (NORM_BATCH, NORM_LAYER, SCALE)
