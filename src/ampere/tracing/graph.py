"""Which autograd nodes the loss reaches: only they run in backward."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd.function import BackwardCFunction


def reached_nodes(loss: Tensor) -> dict[int, bool]:
    """Sequence numbers; True for the nodes of a torch.autograd.Function."""
    numbers: dict[int, bool] = {}
    seen: set[Any] = set()
    waiting: list[Any] = [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        numbers[node._sequence_nr()] = isinstance(node, BackwardCFunction)
        waiting += [following for following, _ in node.next_functions]
    return numbers
