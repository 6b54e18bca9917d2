"""Memory that an operation takes for itself while it runs, and that no tensor shows.

Found by running operations alone and reading the process's peak: oneDNN copies what it reads into a layout of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

LSTM_STATES = 16  # values that oneDNN keeps for backward, for each value of an LSTM's output


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


def kept_workspace(func: Any, args: Sequence[Any]) -> int:
    """Bytes that an output really has, where PyTorch's rule of shapes leaves it empty; 0 where it has none."""
    if func is not aten.mkldnn_rnn_layer.default:
        return 0
    sequence, hidden = args[0], args[5]
    length = sequence.shape[0] + 1
    return LSTM_STATES * length * prod(hidden.shape) * hidden.element_size()
