"""Layers that read or write rows at places which whole numbers name.

embedding  config: lead (tokens), sparse where its gradient holds only the rows that were read; channels_in is the
           vocabulary
embedding_bag
           config: tokens, bags; the rows of each bag are added up, or averaged where `mean`, or the largest of
           their values taken where `largest`; channels_in is the vocabulary
gather     config: rows_in, rows_out; reads rows_out of the rows of an activation; channels are the values that one
           index moves in one piece: 1 where every value has an index of its own; `indexed` where PyTorch's indexing
           reads them (x[i]), which is another and slower operation than selecting rows
scatter    config: rows_in, rows_out; adds rows_in rows to those of rows_out that the indices name; channels as above
"""

from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from ampere.core.layer import Layer

from .kind import OUTPUT, TIED, Draft, JaxRecogniser, Kind, Operand, TorchRecogniser, Work, product

Owned = Callable[[Any], bool]


def _embedding_work(layer: Layer, width: int) -> Work:
    tokens, table = product(layer.config["lead"]), layer.channels_in * layer.channels_out
    if layer.config.get("sparse"):
        table = tokens * layer.channels_out  # rows that the gradient holds, and the optimizer visits
    return Work(
        launches=1 + 2 * int(layer.trainable),
        values=2 * tokens * layer.channels_out * (1 + int(layer.trainable)) + table * int(layer.trainable),
        parameters=table * int(layer.trainable),
        parameter_tensors=int(layer.trainable),
    )


def _embedding_coordinates(layer: Layer, width: int) -> Tuple[Any, ...]:
    tokens = product(layer.config["lead"])
    return tokens if layer.config.get("sparse") else layer.channels_in, layer.channels_out, tokens


def _tokens(layer: Layer) -> Tuple[Operand, ...]:
    return (Operand(tuple(layer.config["lead"]), False, layer.channels_in),)


def _embedding(args: Sequence[Any], result: Any, owned: Owned) -> Optional[Draft]:
    table, tokens = args[:2]
    if not owned(table):
        return None
    sparse = {"sparse": True} if len(args) > 4 and args[4] else {}
    config = {"lead": tuple(tokens.shape), **sparse}
    return Draft("embedding", config, int(table.shape[0]), int(table.shape[1]), (table,))


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
    _embedding_coordinates,
    _tokens,
    lambda layer: (*layer.config["lead"], layer.channels_out),
    ("torch", "jax"),
    (Layer("embedding", {"lead": (3, 5)}, 11, 6, input_grad=False),),
    torch={"embedding": _embedding},
    jax=dict.fromkeys(("gather", "take"), _embedding_from_jax),
    widths=OUTPUT,
)

BAG_MODES: Tuple[Dict[str, Any], ...] = ({}, {"mean": True}, {"largest": True})  # as PyTorch numbers them


def _bag_work(layer: Layer, width: int) -> Work:
    table, (tokens, bags) = layer.channels_in * layer.channels_out, (layer.config["tokens"], layer.config["bags"])
    moved = (tokens + bags) * layer.channels_out
    return Work(
        launches=1 + 2 * int(layer.trainable),
        values=moved * (1 + int(layer.trainable)) + table * int(layer.trainable),
        parameters=table * int(layer.trainable),
        parameter_tensors=int(layer.trainable),
    )


def _bag(args: Sequence[Any], result: Any, owned: Owned) -> Optional[Draft]:
    table, tokens, mode = args[0], args[1], args[4] if len(args) > 4 else 0
    if not owned(table):
        return None
    config = {"tokens": int(tokens.numel()), "bags": int(result[0].shape[0]), **BAG_MODES[mode]}
    return Draft("embedding_bag", config, int(table.shape[0]), int(table.shape[1]), (table,))


EMBEDDING_BAG = Kind(
    "embedding_bag",
    "embedding bag",
    _bag_work,
    lambda layer, width: (layer.channels_in, layer.channels_out, layer.config["tokens"], layer.config["bags"]),
    lambda layer: (Operand((layer.config["tokens"],), False, layer.channels_in),),
    lambda layer: (layer.config["bags"], layer.channels_out),
    ("torch", "jax"),
    tuple(Layer("embedding_bag", {"tokens": 17, "bags": 5, **mode}, 11, 6, input_grad=False) for mode in BAG_MODES),
    torch={"_embedding_bag": _bag},
    widths=OUTPUT,
)

INDEX = 2  # values of the size of an index, which is a whole number of 64 bits


def _moved(layer: Layer, width: int) -> Work:
    """The work of a gather or a scatter, each of which is the other's backward."""
    rows_in, rows_out = layer.config["rows_in"], layer.config["rows_out"]
    named, others = (rows_out, rows_in) if layer.kind == "gather" else (rows_in, rows_out)
    read = named * (2 * layer.channels_out + INDEX)
    added = named * (3 * layer.channels_out + INDEX) + others * layer.channels_out  # to rows that are zero at first
    gathers = 1 if layer.kind == "gather" else int(layer.input_grad)
    scatters = 1 if layer.kind == "scatter" else int(layer.input_grad)
    return Work(launches=gathers + 2 * scatters, values=gathers * read + scatters * added)


def _row_operands(layer: Layer) -> Tuple[Operand, ...]:
    rows_in, rows_out = layer.config["rows_in"], layer.config["rows_out"]
    named, below = (rows_out, rows_in) if layer.kind == "gather" else (rows_in, rows_out)
    return Operand((rows_in, layer.channels_in), layer.input_grad), Operand((named,), False, below)


def _gather_or_scatter(kind: str, moved: int, rows_in: int, rows_out: int, sources: Tuple[Any, ...]) -> Draft:
    return Draft(kind, {"rows_in": rows_in // moved, "rows_out": rows_out // moved}, moved, moved, (), sources)


def _gathered(moved: int, x: Any, result: Any, owned: Owned) -> Optional[Draft]:
    if owned(x) or not x.is_floating_point() or not result.numel():
        return None
    return _gather_or_scatter("gather", moved, x.numel(), result.numel(), (x,))


def _scattered(moved: int, values: int, base: Any, added: Any, owned: Owned) -> Optional[Draft]:
    sources = tuple(x for x in (base, added) if hasattr(x, "requires_grad"))
    if any(map(owned, sources)) or not base.is_floating_point() or not values:
        return None
    return _gather_or_scatter("scatter", moved, values, base.numel(), sources)


def _after(x: Any, dim: int) -> int:
    """How many values lie together behind each place along a dimension."""
    return int(product(tuple(x.shape[dim % max(1, x.dim()) + 1 :])))


def _last_indexed(indices: Sequence[Any]) -> int:
    """The last dimension that x[indices] indexes; a mask covers as many as it has itself."""
    place = last = -1
    for index in indices:
        masks = index is not None and index.element_size() == 1
        place += index.dim() if masks else 1
        last = last if index is None else place
    return last


def _select(args: Sequence[Any], result: Any, owned: Owned) -> Optional[Draft]:
    return _gathered(_after(args[0], args[1]), args[0], result, owned)


def _index(args: Sequence[Any], result: Any, owned: Owned) -> Optional[Draft]:
    draft = _gathered(_after(args[0], _last_indexed(args[1])), args[0], result, owned)
    if draft is not None:
        draft.config["indexed"] = True
    return draft


def _each(args: Sequence[Any], result: Any, owned: Owned) -> Optional[Draft]:
    return _gathered(1, args[0], result, owned)


def _activation_rows(args: Sequence[Any], result: Any, owned: Owned) -> Optional[Draft]:
    return _gathered(_after(args[0], 0), args[0], result, owned)


def _add_rows(args: Sequence[Any], result: Any, owned: Owned) -> Optional[Draft]:
    base, dim, _, added = args[:4]
    return _scattered(_after(base, dim), added.numel(), base, added, owned)


def _put(args: Sequence[Any], result: Any, owned: Owned) -> Optional[Draft]:
    base, indices, added = args[:3]
    moved = _after(base, _last_indexed(indices))
    places = max(index.numel() for index in indices if index is not None)
    return _scattered(moved, max(added.numel(), places * moved), base, added, owned)


def _add_each(args: Sequence[Any], result: Any, owned: Owned) -> Optional[Draft]:
    base, _, index, added = args[:4]
    return _scattered(1, index.numel(), base, added, owned)


def _gather_from_jax(equation: Any) -> Optional[Draft]:
    x, out = equation.inputs[0], equation.outputs[0]
    if x.owners is not None or not x.floating or not out.size:
        return None
    last = x.shape[-1] if x.shape[-1:] == out.shape[-1:] else 1
    moved = int(product(tuple(equation.parameters.get("slice_sizes", (last,)))))
    return _gather_or_scatter("gather", moved, x.size, out.size, (x,))


def _scatter_from_jax(equation: Any) -> Optional[Draft]:
    base, _, added = equation.inputs
    if base.owners or added.owners is not None or not base.floating or not added.size:
        return None
    windows = equation.parameters["dimension_numbers"].update_window_dims
    moved = int(product(tuple(added.shape[d] for d in windows)))
    return _gather_or_scatter("scatter", moved, added.size, base.size, (base, added))


def _rows(
    name: str,
    words: str,
    torch: Dict[str, TorchRecogniser],
    jax: Dict[str, JaxRecogniser],
    variants: Tuple[Dict[str, Any], ...] = ({},),
) -> Kind:
    return Kind(
        name,
        words,
        _moved,
        lambda layer, width: (layer.channels_out, layer.config["rows_in"], layer.config["rows_out"]),
        _row_operands,
        lambda layer: (layer.config["rows_out"], layer.channels_out),
        ("torch", "jax"),
        tuple(
            Layer(name, {"rows_in": 7, "rows_out": 15, **more}, width, width) for width in (6, 1) for more in variants
        ),
        torch,
        jax,
        parametric=False,
        widths=TIED,
    )


GATHER = _rows(
    "gather",
    "reading of rows",
    {
        "index": _index,
        "_unsafe_index": _index,
        "index_select": _select,
        "gather": _each,
        "take": _each,
        "embedding": _activation_rows,
    },
    {"gather": _gather_from_jax, "take": _gather_from_jax},
    ({}, {"indexed": True}),
)
SCATTER = _rows(
    "scatter",
    "adding to rows",
    {
        **dict.fromkeys(("index_add", "index_copy"), _add_rows),
        **dict.fromkeys(("index_put", "_unsafe_index_put"), _put),
        **dict.fromkeys(("scatter", "scatter_add"), _add_each),
    },
    {"scatter-add": _scatter_from_jax},
)

KINDS = (EMBEDDING, EMBEDDING_BAG, GATHER, SCATTER)
