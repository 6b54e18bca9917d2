"""A described network's step in parts that can be timed one by one."""

from typing import Callable, List, Optional, Tuple

import torch
from torch import Tensor

from .runtime import Part
from .torch_chain import Chain


def parts_of(
    chain: Chain, optimizer: Optional[torch.optim.Optimizer], seen: Callable[[Tensor], None]
) -> Tuple[Part, ...]:
    """Forward, loss, backward and update. A lone layer has a loss only for want of what would follow it in a network,
    so it is kept out of the stages: backward starts from the gradient that has come back to the layer's output.
    """
    outputs: List[Tensor] = []
    gradients: List[Tensor] = []

    def forward() -> None:
        output, dangling = chain.forward()
        outputs[:] = [output, *dangling]

    def loss() -> None:
        ends = [output.detach().requires_grad_(output.requires_grad) for output in outputs]
        value = chain.loss_of(ends[0], ends[1:])
        if value.requires_grad:
            torch.autograd.backward(value)
        seen(value.detach())
        gradients[:] = [end.grad for end in ends if end.grad is not None]

    def backward() -> None:
        if gradients:
            torch.autograd.backward([output for output in outputs if output.requires_grad], gradients)

    def update() -> None:
        if optimizer:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def clear() -> None:
        outputs.clear()
        gradients.clear()
        chain.clear()

    return (("forward", forward), ("loss", loss), ("backward", backward), ("update", update), ("clear", clear))
