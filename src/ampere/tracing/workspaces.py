"""Memory that an operation takes for itself while it runs, and that no tensor shows.

Found by running operations alone and reading the process's peak, and by recording each request of whole training
processes: oneDNN copies what it reads into a layout of its own, and matrix products pack what they read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from ampere.core.allocations import LARGEST_THRESHOLD

aten = torch.ops.aten

LSTM_STATES, WRITTEN_STATES = 16, 6  # values that oneDNN takes for backward, and uses, for each of an LSTM's output
PRODUCTS = {aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default}
PACKED, LARGE_PACKED = 9_000_000, 30_000_000  # bytes with two threads; for large products they were 20 to 45 MB
LARGE_PRODUCT = 10_000_000  # multiplications


def _bytes(tensor: Any) -> int:
    return tensor.numel() * tensor.element_size() if isinstance(tensor, Tensor) else 0


def _convolution(args: Sequence[Any], out: Any) -> list[int]:
    x, weight, transposed = args[0], args[1], args[6]
    if transposed:
        return [_bytes(out), _bytes(out), _bytes(weight)]
    return [max(_bytes(x), _bytes(out)), _bytes(weight)]


def _convolution_backward(args: Sequence[Any], out: Any) -> list[int]:
    grad, x, weight = args[0], args[1], args[2]
    return [_bytes(grad), _bytes(x), _bytes(weight)]


def _flash_backward(args: Sequence[Any], out: Any) -> list[int]:
    return [_bytes(args[0])]


WORKSPACES: dict[Any, Callable[[Sequence[Any], Any], list[int]]] = {
    aten.convolution.default: _convolution,
    aten.convolution_backward.default: _convolution_backward,
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default: _flash_backward,
}


def workspaces(func: Any, args: Sequence[Any], out: Any) -> list[int]:
    """Bytes of each block that lives only while the operation runs."""
    rule = WORKSPACES.get(func)
    return rule(args, out) if rule else []


def packed(func: Any, args: Sequence[Any]) -> int:
    """Bytes of the buffers that a matrix product packs into, and that stay; 0 for other operations."""
    if func not in PRODUCTS:
        return 0
    left, right = [each for each in args if isinstance(each, Tensor)][-2:]
    return LARGE_PACKED if left.numel() * right.shape[-1] >= LARGE_PRODUCT else PACKED


def kept_workspace(func: Any, args: Sequence[Any]) -> int:
    """Bytes that an output really has, where PyTorch's rule of shapes leaves it empty; 0 where it has none."""
    if func is not aten.mkldnn_rnn_layer.default:
        return 0
    sequence, hidden = args[0], args[5]
    values = (sequence.shape[0] + 1) * prod(hidden.shape) * hidden.element_size()
    taken = LSTM_STATES * values
    # Pages of its own that are never written are not resident; in the heap they were written before.
    return taken if taken <= LARGEST_THRESHOLD else WRITTEN_STATES * values
