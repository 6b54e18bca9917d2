"""The paper's layer parsing: a network as an input unit, hidden units and an output unit.

    group   a layer with weights of its own, and what follows it: norms, scales, attention, other operations
    block   consecutive groups up to the sum that ends a shortcut: a residual block, an encoder layer
    unit    a block, or a group that is in none

A unit's channels are those that go into its first layer and those that come out of its last one with weights. What is
inside a block must follow from these: a width that is fixed, or always the same multiple of one of them, is *tied*. A
block with a width that is free (a feed-forward width of its own, pruned channels) is cut into its groups, because a
Gaussian process over three or more widths would need far more points than the paper's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ampere.core import KINDS, Layer, Network
from ampere.core.trailing_ops import TWO_OPERANDS, with_dropout

Kind = tuple[Any, ...]
Group = tuple[Layer, ...]
Tie = tuple[
    str, Fraction
]  # which of a unit's channels a width is a multiple of ("in", "out", FIXED: 1), and the factor
Ties = tuple[frozenset[Tie], ...]  # all ties that hold, for each width of a block

MOST_GROUPS = 24  # of a block: what runs on for longer than that is no block
FIXED = "fixed"
ATTENDS = ("attention", "matmul")


@lru_cache(maxsize=65536)
def kind_of(layer: Layer) -> Kind:
    """A layer's kind as the paper defines it: type, hyperparameters and trailing operations; all but the channels."""
    if layer.kind == "opaque":
        return ("opaque", *(layer.config.get(key) for key in ("class", "flops", "values")))
    config = dict(layer.config)
    if layer.kind == "scale":  # its size grows with its channels
        config["values"] = round(config["values"] / layer.channels_out, 6)
    tail: Kind = layer.trailing if layer.kind == "nonparametric" else tuple(op.op for op in layer.trailing)
    return (layer.kind, tuple(sorted(config.items())), tail, layer.trainable, layer.input_grad)


@dataclass(frozen=True)
class Unit:
    """Consecutive layers that are measured and estimated as one."""

    groups: tuple[Group, ...]
    output: bool = False  # whether it ends the network: only that is trained alone

    @property
    def layers(self) -> tuple[Layer, ...]:
        return tuple(layer for group in self.groups for layer in group)

    @property
    def kind(self) -> Kind:
        """What stays the same when channels change. An unknown module is trained alone wherever it stands."""
        layers = self.layers
        return (self.output and layers[0].kind != "opaque", *map(kind_of, layers))

    @property
    def channels(self) -> tuple[int, int]:
        """Channels in and out."""
        return main_of(self.groups[0]).channels_in, main_of(self.groups[-1]).channels_out

    @property
    def widths(self) -> tuple[int, ...]:
        """Channels in and out of each layer."""
        return tuple(width for layer in self.layers for width in (layer.channels_in, layer.channels_out))

    @property
    def ties(self) -> Ties:
        """The ways in which each width may follow from the unit's channels."""
        return _ties(self.widths, *self.channels)

    def fits(self, ties: Ties) -> bool:
        """Whether every width follows from the channels in one of the given ways."""
        return all(own & known for own, known in zip(self.ties, ties, strict=True))


@lru_cache(maxsize=65536)
def _ties(widths: tuple[int, ...], channels_in: int, channels_out: int) -> Ties:
    ends = (("in", max(1, channels_in)), ("out", max(1, channels_out)), (FIXED, 1))
    return tuple(frozenset((end, Fraction(width, own)) for end, own in ends) for width in widths)


def common_ties(units: Iterable[Unit]) -> Ties:
    """The ties that hold in all units of one kind; an empty set for a width that is free."""
    first, *others = {unit.ties for unit in units}
    return tuple(each.intersection(*(other[place] for other in others)) for place, each in enumerate(first))


def is_grouped(layer: Layer) -> bool:
    """Whether a layer goes with the one before it."""
    kind = KINDS[layer.kind]
    return kind.grouped or not kind.parametric


def main_of(group: Group) -> Layer:
    """The layer with weights of its own; the first where there is none."""
    return next((layer for layer in group if not is_grouped(layer)), group[0])


def groups_of(layers: Sequence[Layer]) -> list[Group]:
    """Each layer with weights of its own, with what follows it; what comes before the first goes with that."""
    found: list[list[Layer]] = []
    for layer in layers:
        if found and (is_grouped(layer) or not any(map(_has_weights, found[-1]))):
            found[-1].append(layer)
        else:
            found.append([layer])
    return [tuple(group) for group in found]


def _has_weights(layer: Layer) -> bool:
    return not is_grouped(layer)


def ends_shortcut(group: Group) -> bool:
    """Whether an operation of the group reads two tensors of the size that it writes, as a shortcut's sum does."""
    return any(
        op.op == "elementwise" and op.backward and op.values_in >= TWO_OPERANDS * op.values_out
        for layer in group
        for op in with_dropout(layer.trailing)
    )


def blocks_of(groups: Sequence[Group]) -> list[Unit]:
    """The groups as blocks, and one by one where no sum ends a block.

    The sum behind an attention does not end one: the feed-forward layers that follow belong to the same encoder layer.
    """
    found: list[Unit] = []
    waiting: list[Group] = []
    since_sum: list[Group] = []
    for group in groups:
        waiting.append(group)
        since_sum.append(group)
        if not ends_shortcut(group):
            continue
        attends = any(layer.kind in ATTENDS for each in since_sum for layer in each)
        since_sum = []
        if not attends:
            found += [Unit(tuple(waiting))] if len(waiting) <= MOST_GROUPS else alone(waiting)
            waiting = []
    return [*found, *alone(waiting)]


def alone(groups: Sequence[Group]) -> list[Unit]:
    """Each group as a unit."""
    return [Unit((group,)) for group in groups]


def units_of(network: Network, whole: Callable[[Unit], bool] = lambda _: True) -> list[Unit]:
    """A network's units in their order; `whole` says which blocks are not cut into their groups. Opaque layers last."""
    opaque = [Unit(((layer,),)) for layer in network.layers if layer.kind == "opaque"]
    groups = groups_of([layer for layer in network.layers if layer.kind != "opaque"])
    if not groups:
        return opaque
    *first, last = groups
    hidden = [part for block in blocks_of(first[1:]) for part in (alone(block.groups) if not whole(block) else [block])]
    return [*alone(first[:1]), *hidden, Unit((last,), output=True), *opaque]


def variant_units(network: Network) -> list[Unit] | None:
    """The one to three units of a variant; None for another network."""
    units = units_of(network)
    return units if len(units) <= 3 else None
