"""Which channels of a model go together, and the model without some of them. Built on torch-pruning's graph.

A *group* is what must be narrowed at once: a convolution's outputs, the batch norm after it, the next layer's inputs,
everything that is added to them. Its *units* are single channels; where a convolution is divided into parts, a unit
is the same channel of each part.
"""

from __future__ import annotations

import copy
import importlib.util
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ampere.core.errors import ModelError, RuntimeMissingError

from .substitutes import Remover, needs_substitute, substituted

if TYPE_CHECKING:
    from torch import nn

    from ampere.estimation.features import Array


Removed = Mapping[str, Sequence[int]]  # units by the group's name


@dataclass(frozen=True)
class Member:
    """A module or single parameter, what removes channels from it, and which of its channels belong to which unit."""

    path: str
    remove: Callable[[Any, list[int]], Any]
    channels: tuple[tuple[int, ...], ...]  # by unit


@dataclass(frozen=True)
class Group:
    name: str  # of the layer whose outputs these channels are
    members: tuple[Member, ...]
    importance: Array  # squared weights of each unit, as a share of the group's
    obstacle: str = ""  # why its channels cannot go one by one

    @property
    def width(self) -> int:
        return len(self.importance)

    @property
    def paths(self) -> set[str]:
        return {member.path for member in self.members}

    @property
    def channels_each(self) -> int:
        """Channels of one unit in the layer that the group is named after."""
        return len(self.members[0].channels[0])

    def in_blocks(self, size: int) -> Group:
        """The same channels with `size` units in a row as one: a head of attention, say."""
        begins = range(0, self.width, size)
        members = tuple(
            replace(m, channels=tuple(tuple(c for unit in m.channels[i : i + size] for c in unit) for i in begins))
            for m in self.members
        )
        return replace(self, members=members, importance=self.importance.reshape(-1, size).sum(axis=1))


def first_line(error: BaseException) -> str:
    """What went wrong, short enough for a message of one line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:150]


def copied(model: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(model)
    except Exception as error:
        raise ModelError(
            f"{type(model).__name__} cannot be copied ({first_line(error)}), and pruning works on copies: "
            "create locks, files and threads outside the model"
        ) from error


def need_torch_pruning() -> None:
    if importlib.util.find_spec("torch_pruning") is None:
        raise RuntimeMissingError("torch-pruning is not installed: pip install 'ampere-energy[prune]'")


def find_groups(model: nn.Module, inputs: Any) -> list[Group]:
    """The groups of a model, which torch-pruning sets to evaluation and calls once."""
    need_torch_pruning()
    import torch
    import torch_pruning as tp

    removers: dict[str, Remover] = {}
    if any(needs_substitute(module) for module in model.modules()):
        model = copy.deepcopy(model)
        removers = substituted(model)
    paths = {id(part): path for path, part in [*model.named_modules(), *model.named_parameters()]}
    with warnings.catch_warnings(), torch.enable_grad():
        warnings.simplefilter("ignore")
        try:
            graph = tp.DependencyGraph().build_dependency(model, example_inputs=inputs, verbose=False)
            found = list(graph.get_all_groups())
        except Exception as error:
            raise ModelError(
                f"{type(model).__name__} cannot be pruned: torch-pruning does not follow it ({first_line(error)}); "
                "prune a model of convolutions and linear layers"
            ) from error
    return [group for one in found if (group := _group(one, paths, removers)) is not None]


def _group(found: Any, paths: Mapping[int, str], removers: Mapping[str, Remover]) -> Group | None:
    """A group of torch-pruning as one of ours; None where channels have no clear origin."""
    items = [(item.dep, item.idxs, item.root_idxs) for item in found if id(item.dep.target.module) in paths]
    if not items or any(root is None for _, _, roots in items for root in roots):
        return None
    count = len(items[0][1])
    parts = math.lcm(*(_parts(dep.target.module) for dep, _, _ in items))
    if count % parts:
        return None
    units = count // parts
    members = []
    for dep, channels, roots in items:
        by_unit: list[list[int]] = [[] for _ in range(units)]
        for channel, root in zip(channels, roots, strict=True):
            by_unit[root % units].append(channel)
        path, remove = paths[id(dep.target.module)], dep.handler
        if path in removers:
            path, remove = path.rpartition(".")[0], removers[path](dep.handler.__name__)
        members.append(Member(path, remove, tuple(map(tuple, by_unit))))
    importance = _importance(found, units)
    if importance is None:
        return None
    torn = [m.path for m, (dep, _, _) in zip(members, items, strict=True) if not _aligned(m, dep)]
    obstacle = f"its channels lie across the parts of {torn[0]}" if torn else ""
    return Group(members[0].path, tuple(members), importance, obstacle)


def _aligned(member: Member, dep: Any) -> bool:
    """Whether each unit takes the same inputs from every part of a divided convolution, as torch-pruning assumes."""
    module = dep.target.module
    parts = _parts(module)
    if parts == 1 or dep.handler.__name__ != "prune_in_channels" or not hasattr(module, "in_channels"):
        return True
    size = module.in_channels // parts
    positions = [[sorted(c % size for c in unit if c // size == p) for p in range(parts)] for unit in member.channels]
    return all(position == unit[0] for unit in positions for position in unit)


def _parts(module: Any) -> int:
    """Into how many parts a module divides its channels; in a depthwise convolution no two belong together."""
    groups = int(getattr(module, "groups", 1) or 1)
    depthwise = groups == getattr(module, "out_channels", None)
    return int(getattr(module, "num_groups", 1)) if depthwise or groups == 1 else groups


def _importance(found: Any, units: int) -> Array | None:
    import torch_pruning as tp

    scores = tp.importance.GroupMagnitudeImportance(p=2, normalizer=None)(found)
    if scores is None or not len(scores):
        return None
    values = scores.detach().double().cpu().numpy().reshape(-1, units).sum(axis=0)
    total = float(values.sum())
    return values / total if math.isfinite(total) and total > 0 else np.full(units, 1.0 / units)


def without(model: nn.Module, groups: Sequence[Group], removed: Removed) -> nn.Module:
    """A copy of the model without these units; the model itself is not changed."""
    narrowed = copy.deepcopy(model)
    shared = _shared_names(narrowed)
    trained = {name: p.requires_grad for name, p in narrowed.named_parameters()}
    gone: dict[tuple[str, Any], set[int]] = {}
    for group in groups:
        for member in group.members:
            channels = gone.setdefault((member.path, member.remove), set())
            channels.update(c for unit in removed.get(group.name, ()) for c in member.channels[unit])
    for (path, remove), channels in gone.items():
        if channels:
            _take(narrowed, path, remove, sorted(channels))
    for names in shared:
        _share_again(narrowed, names)
    for name, parameter in narrowed.named_parameters():
        parameter.requires_grad_(trained[name])
        parameter.grad = None
    return narrowed


def _take(model: nn.Module, path: str, remove: Callable[[Any, list[int]], Any], channels: list[int]) -> None:
    from torch import nn

    home, _, name = path.rpartition(".")
    parent = model.get_submodule(home)
    part = getattr(parent, name) if name else parent
    changed = remove(part, channels)
    if isinstance(part, nn.Parameter):
        setattr(parent, name, changed)


def _shared_names(model: nn.Module) -> list[list[str]]:
    """Names of weights that a model has under several, such as an embedding that is also the last layer."""
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    return [several for several in names.values() if several[1:]]


def _share_again(model: nn.Module, names: list[str]) -> None:
    """Makes parameters one again, which is possible if all have lost the same channels."""
    import torch

    one = model.get_parameter(names[0])
    for name in names[1:]:
        if not torch.equal(model.get_parameter(name), one):
            raise ModelError(f"its weights are shared, and {names[0]} and {name} would no longer be the same")
        home, _, last = name.rpartition(".")
        setattr(model.get_submodule(home), last, one)
