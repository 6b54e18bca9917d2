"""An input unit for images of another size, so that it can feed a hidden unit from deeper in the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ampere.core import Layer
from ampere.core.kinds.kind import Shape, product
from ampere.core.trailing_ops import plan_trailing
from ampere.core.wiring import shape_out
from ampere.estimation.units import Unit, main_of

LARGEST = 4  # times the input's own size: beyond that no size is looked for


def with_places(unit: Unit, places: Sequence[int]) -> Unit | None:
    """The unit with such an image size that it makes images of so many places along each dimension; None without one.

    Only a convolution, with norms, pools and elementwise operations behind it, has an image size.
    """
    main = main_of(unit.groups[0])
    own = main.config.get("size_in", ())
    if len(unit.groups) > 1 or unit.layers[0] is not main or not own or len(own) != len(places):
        return None
    chosen = []
    for axis, wanted in enumerate(places):
        natural = _places_after(unit, axis, own[axis])
        if not natural:
            return None
        in_proportion = own[axis] * wanted / natural
        sizes = sorted(range(1, LARGEST * max(*own, *places) + 1), key=lambda size: abs(size - in_proportion))
        fitting = next((size for size in sizes if _places_after(unit, axis, size) == wanted), None)
        if fitting is None:
            return None
        chosen.append(fitting)
    found = _resized(unit, tuple(chosen))
    return found[0] if found else None


def _places_after(unit: Unit, axis: int, size: int) -> int:
    """Places along one dimension after the unit, with this image size along it; 0 where that is too small."""
    own = main_of(unit.groups[0]).config["size_in"]
    found = _resized(unit, (*own[:axis], size, *own[axis + 1 :]))
    return int(found[1][2 + axis]) if found else 0


def _resized(unit: Unit, size: tuple[int, ...]) -> tuple[Unit, Shape] | None:
    """The unit with this image size, and the shape that it then makes; None where that cannot be."""
    main, *others = unit.layers
    layer = replace(main, config={**main.config, "size_in": size})
    before, shape = shape_out(main), shape_out(layer)
    if min(shape) < 1:
        return None
    found: list[Layer] = []
    for old in (main, *others):
        fitted = layer if old is main else _fitted(old, shape, product(shape) / product(before))
        if fitted is None:
            return None
        trailing = []
        for op in old.trailing:
            after = plan_trailing(op, before).shape
            if len(after) != len(before):
                return None
            following = tuple(n // max(1, b // a) for n, b, a in zip(shape, before, after, strict=True))
            if min(following) < 1:
                return None
            grow_in, grow_out = product(shape) / product(before), product(following) / product(after)
            trailing.append(op.grown(grow_in, grow_out))
            before, shape = after, following
        found.append(replace(fitted, trailing=tuple(trailing)))
    return replace(unit, groups=(tuple(found),)), shape


def _fitted(layer: Layer, shape: Shape, grow: float) -> Layer | None:
    """A layer behind the convolution, for images of this shape."""
    config = dict(layer.config)
    if layer.kind == "norm_batch":
        config["size"] = tuple(shape[2:])
    elif layer.kind == "norm_layer" and "groups" in config:
        config["lead"] = (shape[0], product(shape[2:]))
    elif layer.kind == "scale" and layer.channels_out == shape[1]:
        config["values"] = round(config["values"] * grow)
    else:
        return None
    return replace(layer, config=config)
