"""What a layer's output loses with its inputs, and the weights that bring most of it back.

The energy-aware pruning of Yang et al. (CVPR 2017), for whole channels. Of the layers that read a group's channels:

Z_u      what unit u adds to their outputs, over some rows of a few batches        output = sum over u of  Z_u + bias
error    |sum of Z_u over those removed|^2 / |sum of all Z_u|^2                    of the units jointly, not one by one

Units go in the order that adds least to the error. Afterwards the weights of a layer that lost inputs are those that
make its output most like the original's, by least squares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ampere.estimation.features import Array

from .structure import Group

if TYPE_CHECKING:
    from torch import Tensor, nn

ROWS = 1024  # of a layer's inputs and outputs: examples, or places of images
AT_ONCE = 4_000_000  # values of all Z_u together
RIDGE = 1e-3  # of the mean square of an input: how much the present weights count
BATCHES = 4


@dataclass(frozen=True)
class Removal:
    """The units of a group in the order in which they go, and the error once so many are gone."""

    order: tuple[int, ...]
    errors: Array  # at index k: k units are gone; not falling

    def within(self, tolerance: float) -> int:
        """How many units may go; one stays."""
        return min(int(np.searchsorted(self.errors, tolerance, side="right")) - 1, len(self.order) - 1)


@dataclass(frozen=True)
class Reader:
    """A layer that reads a group's channels, and which columns of its inputs belong to each unit."""

    path: str
    columns: tuple[tuple[int, ...], ...]


def removals(model: nn.Module, groups: Sequence[Group], batches: Sequence[Any]) -> list[Removal]:
    """The removal of each group; by importance where no layer that reads it is a convolution or a linear layer."""
    import torch

    readers = [list(_readers(model, group)) for group in groups]
    seen = _recorded(model, batches, {reader.path for each in readers for reader in each})
    found = []
    for group, each in zip(groups, readers, strict=True):
        joint = torch.zeros(group.width, group.width, dtype=torch.float64)
        for reader in each:
            joint += _joint(seen[reader.path][0], _matrix(model.get_submodule(reader.path)), reader.columns)
        usable = bool(joint.isfinite().all()) and float(joint.sum()) > 0
        found.append(_greedy(joint.numpy()) if usable else by_importance(group.importance))
    return found


def _joint(inputs: Tensor, weights: Tensor, columns: Sequence[Sequence[int]]) -> Tensor:
    """Products of what each two units add to an output."""
    import torch

    units, step = len(columns), max(1, AT_ONCE // max(1, len(columns) * len(weights)))
    joint = torch.zeros(units, units, dtype=torch.float64)
    for begin in range(0, len(inputs), step):
        rows = inputs[begin : begin + step]
        parts = torch.stack([(rows[:, list(c)] @ weights[:, list(c)].T).flatten() for c in columns])
        joint += (parts @ parts.T).double()
    return joint


def _greedy(joint: Array) -> Removal:
    """Each time the unit goes that adds least: its own square and twice its products with those already gone."""
    left, added = list(range(len(joint))), joint.diagonal().copy()
    order: list[int] = []
    error, errors = 0.0, [0.0]
    while left:
        unit = min(left, key=lambda u: float(added[u]))
        error += float(added[unit])
        errors.append(max(errors[-1], error))
        left.remove(unit)
        order.append(unit)
        added += 2 * joint[:, unit]
    return Removal(tuple(order), np.minimum(np.array(errors) / float(joint.sum()), 1.0))


def by_importance(importance: Array) -> Removal:
    order = np.argsort(importance, kind="stable")
    return Removal(tuple(map(int, order)), np.concatenate([[0.0], np.minimum(np.cumsum(importance[order]), 1.0)]))


def restored(
    original: nn.Module,
    narrowed: nn.Module,
    groups: Sequence[Group],
    removed: Mapping[str, Sequence[int]],
    batches: Sequence[Any],
) -> nn.Module:
    """The narrowed model, changed in place: each layer that lost inputs gives nearly the original's outputs again."""
    lost = [group for group in groups if removed.get(group.name)]
    paths = {reader.path for group in lost for reader in _readers(original, group)}
    targets = _recorded(original, batches, paths)
    for path in targets:  # in the order of a forward pass: inputs come from layers that are restored already
        layer = narrowed.get_submodule(path)
        inputs, _ = _recorded(narrowed, batches, {path})[path]
        _least_squares(layer, inputs, targets[path][1][:, _kept_outputs(original, groups, removed, path)])
    return narrowed


def _kept_outputs(
    original: nn.Module, groups: Sequence[Group], removed: Mapping[str, Sequence[int]], path: str
) -> list[int]:
    gone = {
        channel
        for group in groups
        for member in group.members
        if member.path == path and _way(member.remove) == "prune_out_channels"
        for unit in removed.get(group.name, ())
        for channel in member.channels[unit]
    }
    return [channel for channel in range(len(_matrix(original.get_submodule(path)))) if channel not in gone]


def _least_squares(layer: Any, inputs: Tensor, outputs: Tensor) -> None:
    """weights += X^T (X X^T + ridge)^-1 (outputs - X weights); a bias is the weight of an input that is always 1."""
    import torch

    weights = _matrix(layer)
    if layer.bias is not None:
        inputs = torch.cat([inputs, torch.ones(len(inputs), 1, dtype=inputs.dtype)], dim=1)
        weights = torch.cat([weights, layer.bias.detach().double()[:, None]], dim=1)
    missing = outputs - inputs @ weights.T
    ridge = RIDGE * float((inputs**2).mean()) * len(inputs) + 1e-12
    many = len(inputs) > inputs.shape[1]
    gram = inputs.T @ inputs if many else inputs @ inputs.T
    gram.diagonal().add_(ridge)
    change = torch.linalg.solve(gram, inputs.T @ missing) if many else inputs.T @ torch.linalg.solve(gram, missing)
    if not change.isfinite().all():
        return
    with torch.no_grad():
        new = (weights + change.T).to(layer.weight.dtype)
        if layer.bias is not None:
            layer.bias.copy_(new[:, -1])
            new = new[:, :-1]
        layer.weight.copy_(new.reshape(layer.weight.shape))


# Layers as matrices: rows of inputs, rows of outputs.


def _readers(model: nn.Module, group: Group) -> Iterator[Reader]:
    for member in group.members:
        if _way(member.remove) == "prune_in_channels" and _is_matrix(layer := _at(model, member.path)):
            each = len(_matrix(layer)[0]) // int(layer.weight.shape[1])  # places of a kernel
            columns = tuple(tuple(c * each + i for c in unit for i in range(each)) for unit in member.channels)
            yield Reader(member.path, columns)


def _at(model: nn.Module, path: str) -> Any:
    return model.get_submodule(path) if path in dict(model.named_modules()) else None  # or a single parameter


def _way(remove: Any) -> str:
    return str(getattr(remove, "__name__", ""))


def _is_matrix(layer: Any) -> bool:
    from torch import nn

    if isinstance(layer, (nn.Conv1d, nn.Conv2d)):
        return layer.groups == 1 and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
    return isinstance(layer, nn.Linear)


def _matrix(layer: Any) -> Tensor:
    """Weights of outputs by inputs."""
    found: Tensor = layer.weight.detach().double().flatten(1)
    return found


def _recorded(model: nn.Module, batches: Sequence[Any], paths: set[str]) -> dict[str, tuple[Tensor, Tensor]]:
    """Rows of inputs and outputs of these layers, in the order in which a forward pass reaches them."""
    import torch

    seen: dict[str, list[tuple[Tensor, Tensor]]] = {}

    def note(path: str) -> Any:
        return lambda layer, inputs, output: seen.setdefault(path, []).append(
            _rows(layer, inputs[0], output, ROWS // len(batches))
        )

    training = {name: module.training for name, module in model.named_modules()}
    hooks = [model.get_submodule(path).register_forward_hook(note(path)) for path in sorted(paths)]
    try:
        model.eval()
        with torch.no_grad():
            for batch in batches:
                model(**batch) if isinstance(batch, dict) else model(*batch)
    finally:
        for hook in hooks:
            hook.remove()
        for name, module in model.named_modules():
            module.training = training[name]
    return {path: tuple(map(torch.cat, zip(*parts, strict=True))) for path, parts in seen.items()}  # type: ignore[misc]


def _rows(layer: Any, inputs: Tensor, outputs: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The same rows of both, spread evenly."""
    from torch import nn

    if isinstance(layer, nn.Linear):
        x, y = inputs.flatten(0, -2), outputs.flatten(0, -2)
    else:
        x, y = _windows(layer, inputs).transpose(1, 2).flatten(0, 1), outputs.flatten(2).transpose(1, 2).flatten(0, 1)
    step = max(1, -(-len(x) // max(1, most)))
    return x[::step].double(), y[::step].double()


def _windows(layer: Any, inputs: Tensor) -> Tensor:
    """What each output place of a convolution reads; a line is an image of one row."""
    from torch.nn import functional

    def two(values: Sequence[int], fill: int) -> tuple[int, ...]:
        return (fill,) * (2 - len(values)) + tuple(values)

    image = inputs if inputs.dim() == 4 else inputs.unsqueeze(2)
    sizes = two(layer.kernel_size, 1), two(layer.dilation, 1), two(layer.padding, 0), two(layer.stride, 1)
    found: Tensor = functional.unfold(image, *sizes)
    return found


def some_batches(inputs: Any, seed: int = 0) -> list[Any]:
    """The inputs, and further batches like them: numbers of the same mean and spread, words in another order."""
    import torch

    generator = torch.Generator().manual_seed(seed)

    def like(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if value.is_floating_point():
            noise = torch.randn(value.shape, generator=generator, dtype=value.dtype)
            return noise * value.std(unbiased=False) + value.mean()
        return value.flatten()[torch.randperm(value.numel(), generator=generator)].reshape(value.shape)

    others = [
        {name: like(value) for name, value in inputs.items()} if isinstance(inputs, dict) else tuple(map(like, inputs))
        for _ in range(BATCHES - 1)
    ]
    return [inputs, *others]
