"""Layers of an estimate grouped by block: equal blocks that follow each other become one row with a count.

A block is a module with a number in its path. Of `encoder.layers.0.linear1` it is `encoder.layers.0`, and that equals
`encoder.layers.1` if its layers have the same names and kinds and it costs the same. Other layers are grouped by the
module that holds them (`embeddings.word` and `embeddings.norm` are `embeddings`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .estimate import Estimate, LayerShare

Path = tuple[str, ...]
SAME_COST = 0.02  # relative difference of two blocks that count as equal: their last operations may differ


@dataclass(frozen=True)
class Block:
    """One or several equal blocks of an estimate."""

    name: str  # `encoder.layers.0-11`
    count: int  # how many equal blocks
    layers: tuple[LayerShare, ...]  # of all of them, in running order

    @property
    def one(self) -> tuple[LayerShare, ...]:
        """The layers of the first block."""
        return self.layers[: len(self.layers) // self.count]

    @property
    def kind(self) -> str:
        """The layer kind where all layers have the same, else empty."""
        kinds = {share.kind for share in self.layers}
        return kinds.pop() if len(kinds) == 1 else ""

    @property
    def joules(self) -> float:
        return sum(share.joules for share in self.layers)

    @property
    def stddev(self) -> float:
        """The most that it can be, as if all layers were wrong in the same direction."""
        return sum(share.stddev for share in self.layers)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "count": self.count,
            "joules": self.joules,
            "stddev": self.stddev,
            "layers": [vars(share) for share in self.one],
        }


def blocks(estimate: Estimate) -> tuple[Block, ...]:
    """The estimate's layers by block, in running order; the step overhead comes last. All sum to the total."""
    return group_layers(estimate.layers)


def group_layers(layers: Sequence[LayerShare]) -> tuple[Block, ...]:
    paths = [tuple(share.name.split(".")) if share.name and share.kind != "step" else () for share in layers]
    members: dict[Path, list[int]] = defaultdict(list)
    for i, path in enumerate(paths):
        for prefix in _numbered(path):
            members[prefix].append(i)
    runs = {prefix: run for run in _equal_runs(members, layers, paths) for prefix in run}
    grouped: dict[Path | int, list[LayerShare]] = defaultdict(list)
    for i, path in enumerate(paths):
        grouped[_block_of(path, runs) if path else i].append(layers[i])
    return tuple(_block(key, runs, own) for key, own in grouped.items())


def _numbered(path: Path) -> Iterator[Path]:
    """Every beginning of a path that ends with a number, the shortest first."""
    return (path[: k + 1] for k, part in enumerate(path) if part.isdigit())


def _equal_runs(
    members: dict[Path, list[int]], layers: Sequence[LayerShare], paths: Sequence[Path]
) -> Iterator[tuple[Path, ...]]:
    """Blocks of one module that follow each other and are equal."""

    def content(prefix: Path) -> list[tuple[Path, str]]:
        return [(paths[i][len(prefix) :], layers[i].kind) for i in members[prefix]]

    def cost(prefix: Path) -> float:
        return sum(layers[i].joules for i in members[prefix])

    siblings: dict[Path, list[Path]] = defaultdict(list)
    for prefix in members:
        siblings[prefix[:-1]].append(prefix)
    for family in siblings.values():
        run: list[Path] = []
        for prefix in family:
            same = run and content(run[0]) == content(prefix)
            if same and abs(cost(prefix) - cost(run[0])) <= SAME_COST * abs(cost(run[0])):
                run.append(prefix)
                continue
            if len(run) > 1:
                yield tuple(run)
            run = [prefix]
        if len(run) > 1:
            yield tuple(run)


def _block_of(path: Path, runs: dict[Path, tuple[Path, ...]]) -> Path:
    """The first of the equal blocks that a layer is part of, else its outermost numbered block, else its module."""
    numbered = list(_numbered(path))
    for prefix in numbered:
        if prefix in runs:
            return runs[prefix][0]
    if numbered:
        return numbered[0]
    return path[:-1] or path


def _block(key: Path | int, runs: dict[Path, tuple[Path, ...]], layers: list[LayerShare]) -> Block:
    run = runs.get(key, ()) if isinstance(key, tuple) else ()
    name = layers[0].name if len(layers) == 1 or isinstance(key, int) else ".".join(key)
    return Block(f"{'.'.join(run[0])}-{run[-1][-1]}" if run else name, max(1, len(run)), tuple(layers))
