"""Layers that read or write rows at places which whole numbers name.

embedding  config: lead (tokens); channels_in is the vocabulary
"""

from typing import Any, Callable, Optional, Sequence, Tuple

from ampere.core.layer import Layer

from .kind import OUTPUT, Draft, Kind, Operand, Work, product

Owned = Callable[[Any], bool]


def _embedding_work(layer: Layer, width: int) -> Work:
    tokens, table = product(layer.config["lead"]), layer.channels_in * layer.channels_out
    return Work(
        launches=1 + 2 * int(layer.trainable),
        values=2 * tokens * layer.channels_out * (1 + int(layer.trainable)) + table * int(layer.trainable),
        parameters=table * int(layer.trainable),
        parameter_tensors=int(layer.trainable),
    )


def _tokens(layer: Layer) -> Tuple[Operand, ...]:
    return (Operand(tuple(layer.config["lead"]), False, layer.channels_in),)


def _embedding(args: Sequence[Any], result: Any, owned: Owned) -> Optional[Draft]:
    table, tokens = args[:2]
    if not owned(table):
        return None
    return Draft("embedding", {"lead": tuple(tokens.shape)}, int(table.shape[0]), int(table.shape[1]), (table,))


def _embedding_from_jax(equation: Any) -> Optional[Draft]:
    table, out = equation.inputs[0], equation.outputs[0]
    if not table.owners or len(table.shape) != 2 or not out.shape or out.shape[-1] != table.shape[1]:
        return None
    vocabulary, width = table.shape
    return Draft("embedding", {"lead": out.shape[:-1]}, vocabulary, width, (table,))


EMBEDDING = Kind(
    "embedding",
    "embedding",
    _embedding_work,
    lambda layer, width: (layer.channels_in, layer.channels_out, product(layer.config["lead"])),
    _tokens,
    lambda layer: (*layer.config["lead"], layer.channels_out),
    ("torch", "jax"),
    (Layer("embedding", {"lead": (3, 5)}, 11, 6, input_grad=False),),
    torch={"embedding": _embedding},
    jax=dict.fromkeys(("gather", "take"), _embedding_from_jax),
    widths=OUTPUT,
)

KINDS = (EMBEDDING,)
