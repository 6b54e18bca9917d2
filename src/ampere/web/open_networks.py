"""A traced network with what may change in it: widths that layers share, the batch, how often a block is repeated.

The trace says which layers run, not how they are connected; `core.wiring` finds that. A width is one number that all
layers on it share: those that write it, those that read it, and both ends of a shortcut.

    conv 1 -> 32 ----- conv 32 -> 64 ----- linear 64*49 -> 10            widths: conv 32, conv 64
                 ^32              ^64 (49 for each of 64)   ^10 fixed: what the data decides

What the wiring does not explain (concatenated tensors, attention heads, code of the user's own) stays as it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ampere.core import KINDS, Layer, Network
from ampere.core.errors import UsageError
from ampere.core.kinds import FIXED, OUTPUT, TIED
from ampere.core.kinds.kind import product
from ampere.core.wiring import Node, shape_out, wire
from ampere.estimation.lookup_table import Channels, Template

WIDER = 4  # times the original: as far as a width, a batch or a depth may be raised
MOST_BATCH, MOST_REPEATS, MOST_LAYERS = 65_536, 256, 20_000
MOST_LINKED = 5_000  # operations of a network whose widths may change: of more, finding what shares them takes long


@dataclass(frozen=True)
class Width:
    """A number of channels that may change."""

    name: str  # of the first layer that writes it
    value: int
    layers: tuple[int, ...]  # that write it

    @property
    def largest(self) -> int:
        return max(8, WIDER * self.value)


@dataclass(frozen=True)
class Repeat:
    """Equal blocks that follow each other."""

    name: str  # of the module that holds them, with the numbers of the blocks
    first: int  # layer
    layers: int  # of one block
    count: int

    @property
    def largest(self) -> int:
        return min(MOST_REPEATS, max(12, WIDER * self.count))


@dataclass(frozen=True)
class Changes:
    """What is changed of a network; what is not named stays as it was traced."""

    widths: Mapping[str, int]
    repeats: Mapping[str, int]
    batch: int | None = None

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Changes:
        batch = record.get("batch")
        if batch is not None and not _is_whole(batch):
            raise UsageError(f"batch must be a whole number, not {batch!r:.40}")
        return cls(_numbers(record, "widths"), _numbers(record, "repeats"), batch)


class OpenNetwork:
    """A network and everything that may change in it."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.widths, self._channels = _widths(network)
        self.repeats = _repeats(network)

    def to_json(self) -> dict[str, Any]:
        widths = [
            {
                "name": w.name,
                "kind": self.network.layers[w.layers[0]].kind,
                "value": w.value,
                "largest": w.largest,
                "layers": list(w.layers),
            }
            for w in self.widths
        ]
        repeats = [{"name": r.name, "value": r.count, "largest": r.largest, "layers": r.layers} for r in self.repeats]
        batch = self.network.batch
        return {"widths": widths, "repeats": repeats, "batch": {"value": batch, "largest": self.largest_batch}}

    @property
    def largest_batch(self) -> int:
        return max(self.network.batch, min(MOST_BATCH, max(256, WIDER * self.network.batch)))

    def at(self, changes: Changes) -> Network:
        """The network with these changes."""
        form = self.template(changes)
        return replace(form.network(self.chosen(changes.widths)), name=self.network.name, notes=self.network.notes)

    def chosen(self, widths: Mapping[str, int]) -> list[int]:
        """The value of every width."""
        known = {width.name: width for width in self.widths}
        for name, value in widths.items():
            if name not in known:
                raise UsageError(f"{self.network.name or 'the network'} has no width {name!r:.60} that may change")
            _check(f"width {name:.60}", value, known[name].largest)
        return [widths.get(width.name, width.value) for width in self.widths]

    def template(self, changes: Changes) -> Template:
        """The layers at this batch and depth, with open widths."""
        batch = self.network.batch if changes.batch is None else changes.batch
        _check("batch", batch, self.largest_batch)
        rows = list(range(len(self.network.layers)))
        ins, outs = [into for into, _ in self._channels], [out for _, out in self._channels]
        for repeat in reversed(self.repeats):
            if (count := changes.repeats.get(repeat.name, repeat.count)) != repeat.count:
                _check(f"blocks of {repeat.name:.60}", count, repeat.largest)
                rows, ins, outs = _repeated(repeat, count, rows, ins, outs)
        if unknown := {*changes.repeats} - {repeat.name for repeat in self.repeats}:
            raise UsageError(f"{self.network.name or 'the network'} has no blocks {min(unknown)!r:.60} to repeat")
        if len(rows) > MOST_LAYERS:
            raise UsageError(f"that is a network of {len(rows):,} layers: choose fewer than {MOST_LAYERS:,}")
        layers = [at_batch(self.network.layers[row], batch, self.network.batch) for row in rows]
        largest = tuple(width.largest for width in self.widths)
        return Template(tuple(layers), tuple(ins), tuple(outs), largest, batch)


def _numbers(record: Mapping[str, Any], key: str) -> dict[str, int]:
    found = record.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict) or not all(map(_is_whole, found.values())):
        raise UsageError(f"{key} must be an object of names, each with a whole number")
    return found


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check(what: str, value: Any, largest: int) -> None:
    if not _is_whole(value) or not 1 <= value <= largest:
        raise UsageError(f"{what} must be a whole number from 1 to {largest:,}, not {value!r:.40}")


def at_batch(layer: Layer, batch: int, traced: int) -> Layer:
    """A layer at another batch than it was traced at."""
    if batch == traced:
        return layer
    grow = batch / traced
    config = dict(layer.config)
    if config.get("batch"):
        config["batch"] = max(1, round(config["batch"] * grow))
    if config.get("values"):
        config["values"] = max(1, round(config["values"] * grow))
    lead = config.get("lead")
    if lead and lead[0] % traced == 0:
        config["lead"] = (lead[0] // traced * batch, *lead[1:])
    grown = tuple(t.grown(grow) for t in layer.trailing)
    return replace(layer, config=config, trailing=grown)


# Which layers share a width.


class _Groups:
    """Numbers that turn out to be the same one, or fixed."""

    def __init__(self) -> None:
        self._parent: list[int] = []
        self._fixed: set[int] = set()
        self._fixed_below = 0

    def new(self) -> int:
        self._parent.append(len(self._parent))
        return len(self._parent) - 1

    def find(self, group: int) -> int:
        while self._parent[group] != group:
            self._parent[group] = self._parent[self._parent[group]]
            group = self._parent[group]
        return group

    def join(self, a: int, b: int) -> None:
        a, b = sorted((self.find(a), self.find(b)))
        self._parent[b] = a

    def fix(self, group: int) -> None:
        self._fixed.add(group)

    def fix_all(self) -> None:
        """Fixes all groups that there are so far."""
        self._fixed_below = len(self._parent)

    def open(self) -> set[int]:
        fixed = {self.find(group) for group in (*self._fixed, *range(self._fixed_below))}
        return {self.find(group) for group in range(len(self._parent))} - fixed


Side = tuple[int, int]  # a group, and how many channels there are for each of its width


class _Linking:
    """Follows the wiring from the first layer to the last."""

    def __init__(self, network: Network) -> None:
        self.groups, self.network = _Groups(), network
        self.ins: list[Side | None] = []
        self.outs: list[Side] = []
        self._writer: dict[int, int] = {}  # layer of each value
        self._read: set[int] = set()
        self._alike: dict[Any, list[int]] = defaultdict(list)  # layers of one size that are not known to be joined
        wiring = wire(network)
        self._sizes = [(product(shape_out(layer)), layer.channels_out) for layer in network.layers]
        for node in wiring.nodes:
            if node.trailing is None:
                self._layer(node)
            else:
                self._trailing(node)
        for layer, (group, _) in enumerate(self.outs):
            if layer not in self._read:  # what leaves the network, or what nobody is seen to read
                self.groups.fix(group)

    def _layer(self, node: Node) -> None:
        layer, kind = node.layer, KINDS[node.layer.kind]
        number = len(self.outs)
        sources = [self._writer[read.value] for read in node.reads if read.value in self._writer]
        self._read.update(sources)
        if number and len(sources) < len(node.reads) and kind.widths != OUTPUT:
            self.groups.fix_all()  # something that the trace does not connect was read
        came = self._side(sources[0], layer.channels_in) if sources and not node.reads[0].parts > 1 else None
        tied = kind.widths == TIED or layer.config.get("groups") == 0
        own = kind.widths == FIXED or "values" in layer.config or "parameters" in layer.config
        own = own or (not tied and layer.config.get("groups", 1) > 1)  # which must divide the channels
        if own or (sources and came is None):
            for source in sources:
                self.groups.fix(self.outs[source][0])
            came = None
        if tied and came and not own and layer.channels_out * came[1] % layer.channels_in == 0:
            out = (came[0], layer.channels_out * came[1] // layer.channels_in)
        else:
            out = (self.groups.new(), 1)
            if own or tied:
                self.groups.fix(out[0])
            if tied and came:
                self.groups.fix(came[0])
        self.ins.append(None if kind.widths == OUTPUT else came)
        self.outs.append(out)
        self._alike[self._sizes[number], out[1]].append(number)
        self._writer[node.writes] = number

    def _side(self, source: int, channels: int) -> Side | None:
        group, each = self.outs[source]
        written = self.network.layers[source].channels_out
        return (group, each * channels // written) if written and channels % written == 0 else None

    def _trailing(self, node: Node) -> None:
        """An operation on two tensors may be the end of a shortcut, from any layer before it that writes this shape."""
        number = len(self.outs) - 1
        if len(node.reads) > 1:
            self._read.update(self._writer[read.value] for read in node.reads if read.value in self._writer)
            alike = self._alike[self._sizes[number], self.outs[number][1]]
            for other in alike:
                self.groups.join(self.outs[other][0], self.outs[number][0])
            alike[:] = [number]
        self._writer[node.writes] = number


def _widths(network: Network) -> tuple[tuple[Width, ...], list[tuple[Channels, Channels]]]:
    """The widths that may change, and the channels of each layer as functions of them."""
    fixed = [(Channels(None, 0, x.channels_in), Channels(None, 0, x.channels_out)) for x in network.layers]
    if len(network.layers) + sum(len(layer.trailing) for layer in network.layers) > MOST_LINKED:
        return (), fixed
    try:
        links = _Linking(network)
    except (ArithmeticError, LookupError, TypeError, ValueError):  # a description that nothing real has
        return (), fixed
    is_open, find = links.groups.open(), links.groups.find
    writers: dict[int, list[int]] = {}
    for number, (group, each) in enumerate(links.outs):
        if find(group) in is_open and each == 1:
            writers.setdefault(find(group), []).append(number)
    names = _unique([network.layers[numbers[0]].name or f"layer {numbers[0]}" for numbers in writers.values()])
    widths = tuple(
        Width(name, network.layers[numbers[0]].channels_out, tuple(numbers))
        for name, numbers in zip(names, writers.values(), strict=True)
    )
    place = {group: variable for variable, group in enumerate(writers)}

    def channels(side: Side | None, traced: int) -> Channels:
        if side is None or find(side[0]) not in place:
            return Channels(None, 0, traced)
        return Channels(place[find(side[0])], side[1], 0)

    pairs = zip(network.layers, links.ins, links.outs, strict=True)
    return widths, [(channels(i, layer.channels_in), channels(o, layer.channels_out)) for layer, i, o in pairs]


def _unique(names: Sequence[str]) -> list[str]:
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


# Blocks that are repeated.


def _repeats(network: Network) -> tuple[Repeat, ...]:
    """Runs of equal blocks: modules with a number in their path, of the same layers, one after the other."""
    paths = [tuple(layer.name.split(".")) for layer in network.layers]
    found = list[Repeat]()
    for depth in range(1, max(map(len, paths), default=0) + 1):
        blocks: list[tuple[tuple[str, ...], int, int]] = []
        for number, path in enumerate(paths):
            if len(path) < depth or not path[depth - 1].isdigit():
                continue
            prefix = path[:depth]
            if blocks and blocks[-1][0] == prefix and blocks[-1][2] == number:
                blocks[-1] = (prefix, blocks[-1][1], number + 1)
            else:
                blocks.append((prefix, number, number + 1))
        at = 0
        while at < len(blocks):
            run = 1
            while at + run < len(blocks) and _follows(network, blocks[at + run - 1], blocks[at + run]):
                run += 1
            prefix, first, end = blocks[at]
            inside = any(r.first <= first < r.first + r.layers * r.count for r in found)
            if run > 1 and not inside:
                name = f"{'.'.join(prefix)}-{blocks[at + run - 1][0][-1]}"
                found.append(Repeat(name, first, end - first, run))
            at += run
    return tuple(sorted(found, key=lambda repeat: repeat.first))


def _follows(network: Network, a: tuple[Any, int, int], b: tuple[Any, int, int]) -> bool:
    """Whether a block comes right after another, and is equal to it but for what trails its layers."""
    if a[0][:-1] != b[0][:-1] or a[2] != b[1] or a[2] - a[1] != b[2] - b[1]:
        return False
    before, after = network.layers[a[1] : a[2]], network.layers[b[1] : b[2]]
    return all(
        (x.kind, x.config, x.channels_in, x.channels_out) == (y.kind, y.config, y.channels_in, y.channels_out)
        for x, y in zip(before, after, strict=True)
    )


def _repeated(
    repeat: Repeat, count: int, rows: list[int], ins: list[Channels], outs: list[Channels]
) -> tuple[list[int], list[Channels], list[Channels]]:
    """The layers with a block repeated so often: what it reads is then what the copy before it wrote."""
    first, size = repeat.first, repeat.layers
    end = first + size * repeat.count
    kept = first + size * min(count, repeat.count)
    last = slice(kept - size, kept)
    copies = max(0, count - repeat.count)
    entered, left = ins[last.start], outs[kept - 1]
    again = [left if channels == entered else channels for channels in ins[last]]
    gone = outs[end - 1]
    after = [left if kept < end and channels == gone else channels for channels in ins[end:]]
    return (
        [*rows[:kept], *rows[last] * copies, *rows[end:]],
        [*ins[:kept], *again * copies, *after],
        [*outs[:kept], *outs[last] * copies, *outs[end:]],
    )
