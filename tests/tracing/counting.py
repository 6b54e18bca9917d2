"""Torch's own FLOP counter over one step, with the backward of grouped convolutions put right."""

import copy
from math import prod
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from ampere.runtimes.plain_script import training_loss


def convolution_backward(grad: Any, x: Any, weight: Any, *rest: Any, out_shape: Any = None, **options: Any) -> int:
    transposed, mask = rest[4], rest[7]
    places = prod(x[2:]) if transposed else prod(grad[2:])
    return 2 * x[0] * places * prod(weight) * (int(mask[0]) + int(mask[1]))


def counted_flops(model: nn.Module, inputs: Any, device: str = "meta") -> int:
    copied = copy.deepcopy(model).to(device).train()
    positional, named = _arguments(inputs, device)
    mapping = {torch.ops.aten.convolution_backward: convolution_backward}
    with FlopCounterMode(display=False, custom_mapping=mapping) as counter:
        training_loss(copied(*positional, **named)).backward()
    return counter.get_total_flops()


def _arguments(inputs: Any, device: str) -> tuple[list[Any], dict[str, Any]]:
    if isinstance(inputs, dict):
        return [], {name: tensor.to(device) for name, tensor in inputs.items()}
    return [t.to(device) for t in (inputs if isinstance(inputs, tuple) else (inputs,))], {}
