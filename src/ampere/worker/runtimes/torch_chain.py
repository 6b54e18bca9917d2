"""A described network as a PyTorch module that is really trained: forward, backward and update of every layer."""

from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn

from ...network import Network
from ...network.kinds.kind import Shape
from ..operands import Operand
from ..wiring import Node, Read, Wiring, wire
from .torch_layers import build_layer
from .torch_loss import training_loss
from .torch_tails import tail_action

View = Callable[[Tensor], Tensor]


class Call(NamedTuple):
    """One operation, ready to run."""

    action: Callable[..., Tensor]
    reads: Tuple[Tuple[int, Optional[View]], ...]  # which values, and how they are looked at
    writes: int
    frees: Tuple[int, ...]  # values that nothing reads later: a real network would not keep them either


class Chain(nn.Module):
    def __init__(self, wiring: Wiring, dtype: torch.dtype) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        self.trained: List[nn.Parameter] = []  # what the optimiser visits: parameters shared by layers only once
        self.calls = [self._call(node, frees, wiring.shapes) for node, frees in zip(wiring.nodes, wiring.frees)]
        self._dangling = wiring.dangling
        self.to(dtype)
        # Not buffers: converting those would cut them off from their gradients.
        self.fresh: Dict[int, Tensor] = {fresh.value: _tensor(fresh.operand, dtype) for fresh in wiring.fresh}
        trained = set(map(id, self.trained))
        self._gradients_to_clear = [*self.fresh.values(), *(p for p in self.parameters() if id(p) not in trained)]

    def forward(self) -> Tuple[Tensor, List[Tensor]]:
        """The output, and what nothing reads."""
        values = dict(self.fresh)
        for action, reads, writes, frees in self.calls:
            values[writes] = action(*[values[i] if view is None else view(values[i]) for i, view in reads])
            for value in frees:
                del values[value]
        return values[self.calls[-1].writes], [values[i] for i in self._dangling]

    def loss(self) -> Tensor:
        self.clear()
        return self.loss_of(*self.forward())

    def clear(self) -> None:
        """Gradients that no optimiser clears."""
        for tensor in self._gradients_to_clear:
            tensor.grad = None

    def loss_of(self, output: Tensor, dangling: List[Tensor]) -> Tensor:
        loss: Tensor = training_loss(output) if output.requires_grad else output.square().mean()
        for tensor in dangling:
            loss = loss + tensor.square().mean()
        return loss

    def _call(self, node: Node, frees: Tuple[int, ...], shapes: Tuple[Shape, ...]) -> Call:
        reads = tuple((read.value, _view(read, shapes[read.value])) for read in node.reads)
        return Call(self._action(node), reads, node.writes, frees)

    def _action(self, node: Node) -> Callable[..., Tensor]:
        if node.tail is not None:
            return tail_action(node.tail)
        module = build_layer(node.layer)
        self.layers.append(module)
        if node.layer.trainable and node.layer.config.get("parameters") != 0:
            self.trained += module.parameters()
        return module


def _view(read: Read, shape: Shape) -> Optional[View]:
    if read.parts > 1:
        return lambda x: x.reshape(read.parts, *read.shape)[read.part]
    if read.last_of:
        return lambda x: _last(x, read.last_of)
    return (lambda x: x.reshape(read.shape)) if read.shape != shape else None


def _last(x: Tensor, dimensions: Tuple[int, ...]) -> Tensor:
    for dimension in reversed(dimensions):
        x = x.select(dimension, -1)
    return x


def build_chain(network: Network, dtype: torch.dtype) -> Chain:
    if not network.layers:
        raise ValueError("the network has no layers")
    return Chain(wire(network), dtype).train()


def _tensor(operand: Operand, dtype: torch.dtype) -> Tensor:
    if operand.tokens:
        return torch.randint(0, operand.tokens, operand.shape)
    return torch.randn(operand.shape, dtype=dtype).requires_grad_(operand.grad)
