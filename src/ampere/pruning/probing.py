"""Which groups of a model can be narrowed: each is tried on a copy, whose output must keep its shape."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ampere.core import Network
from ampere.core.errors import AmpereError, ModelError, UsageError
from ampere.tracing.recorder import tensors_in
from ampere.tracing.trace import trace

from .price import Probe, Response, comparable
from .structure import Group, copied, find_groups, first_line, without

if TYPE_CHECKING:
    from torch import nn

Progress = Callable[[float, float, str], None]  # done, total, in words


@dataclass(frozen=True)
class Prunable:
    """A copy of a model, the groups that can be narrowed, and how its layers depend on their widths."""

    model: nn.Module
    groups: tuple[Group, ...]
    response: Response
    fixed: tuple[str, ...]  # layers that cannot change, each with the reason


def probe(model: nn.Module, inputs: Any, network: Network, keep: Collection[str], progress: Progress) -> Prunable:
    check_layers(model, keep)
    own = copied(model)
    training = {path: module.training for path, module in own.named_modules()}
    groups, probes, fixed = [], [], []
    found = find_groups(own, inputs)
    shapes = _shapes(own, inputs)
    for done, group in enumerate(found):
        progress(done, len(found), f"trying {group.name}")
        reason, tried = _tried(own, inputs, network, group, shapes, keep)
        if tried is None:
            fixed.append(f"{group.name}: {reason}")
        else:
            groups.append(tried[0])
            probes.append(tried[1])
    for path, module in own.named_modules():
        module.training = training[path]
    if not groups:
        why = "; ".join(fixed[:3]) or "it has no convolution or linear layer whose width is free"
        raise ModelError(f"{type(model).__name__} has nothing to prune: {why}")
    return Prunable(own, tuple(groups), Response(network, tuple(g.width for g in groups), probes), tuple(fixed))


def _tried(
    model: nn.Module, inputs: Any, network: Network, group: Group, shapes: Sequence[Any], keep: Collection[str]
) -> tuple[str, tuple[Group, Probe] | None]:
    """Why a group cannot change, or the group in units that can go and a trace without half of them."""
    if any(_is_under(path, kept) for path in group.paths for kept in keep):
        return "kept by request", None
    if group.obstacle:
        return group.obstacle, None
    if group.width < 2:
        return "it has one channel", None
    try:
        group = _in_whole_units(model, inputs, group)
        removed = group.width // 2
        narrower = without(model, [group], {group.name: range(removed)})
        if _shapes(narrower, inputs) != shapes:
            return "its channels are the model's output", None
        traced = trace(narrower, inputs)
    except AmpereError as error:
        return str(error), None
    except Exception as error:
        return f"the model does not run when it is narrower ({first_line(error)})", None
    if not comparable(network, traced):
        return "the model has other layers when it is narrower", None
    return "", (group, Probe(traced, removed))


def _in_whole_units(model: nn.Module, inputs: Any, group: Group) -> Group:
    """The group in the smallest blocks that the model runs without: single channels, or whole heads of attention."""
    problem: Exception | None = None
    for size in (d for d in range(1, group.width // 2 + 1) if group.width % d == 0):
        try:
            _shapes(without(model, [group], {group.name: range(size)}), inputs)
        except Exception as error:
            problem = problem or error
        else:
            return group if size == 1 else group.in_blocks(size)
    raise problem or ValueError("it has one channel")


def _shapes(model: nn.Module, inputs: Any) -> list[Any]:
    import torch

    model.eval()
    with torch.no_grad():
        output = model(**inputs) if isinstance(inputs, dict) else model(*inputs)
    return [tuple(tensor.shape) for tensor in tensors_in(output)]


def check_layers(model: nn.Module, keep: Collection[str]) -> None:
    known = [path for path, _ in model.named_modules()]
    for name in keep:
        if name not in known:
            layers = [path for path in known if path]
            raise UsageError(f"there is no layer {name!r} to keep: the first are {', '.join(layers[:6])}")


def _is_under(path: str, kept: str) -> bool:
    return path == kept or path.startswith(kept + ".")
