"""Weights that a model has under several names, such as an embedding that is also the last layer: they stay one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ampere.core.errors import ModelError

if TYPE_CHECKING:
    from torch import nn


def shared_names(model: nn.Module) -> list[list[str]]:
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    return [several for several in names.values() if several[1:]]


def share_again(model: nn.Module, names: list[str]) -> None:
    """Makes them one again; they can be, if all have lost the same channels."""
    import torch

    one = model.get_parameter(names[0])
    for name in names[1:]:
        if not torch.equal(model.get_parameter(name), one):
            raise ModelError(f"its weights are shared, and {names[0]} and {name} would no longer be the same")
        home, _, last = name.rpartition(".")
        setattr(model.get_submodule(home), last, one)
