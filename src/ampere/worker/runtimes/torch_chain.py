"""A described network as a PyTorch module that is really trained: forward, backward and update of every layer."""

from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn

from ...network import Network
from ...network.kinds.kind import Shape
from ..wiring import Fresh, Node, Wiring, wire
from .torch_layers import build_layer
from .torch_loss import training_loss
from .torch_tails import tail_action


class Call(NamedTuple):
    """One operation, ready to run."""

    action: Callable[..., Tensor]
    reads: Tuple[Tuple[int, Optional[Shape]], ...]  # which values, and how they are reshaped
    writes: int
    frees: Tuple[int, ...]  # values that nothing reads later: a real network would not keep them either


class Chain(nn.Module):
    def __init__(self, wiring: Wiring, dtype: torch.dtype) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        self.calls = [self._call(node, frees) for node, frees in zip(wiring.nodes, wiring.frees)]
        self._dangling = wiring.dangling
        self.to(dtype)
        # Not buffers: converting those would cut them off from their gradients.
        self.fresh: Dict[int, Tensor] = {fresh.value: _tensor(fresh, dtype) for fresh in wiring.fresh}

    def forward(self) -> Tuple[Tensor, List[Tensor]]:
        """The output, and what nothing reads."""
        values = dict(self.fresh)
        for action, reads, writes, frees in self.calls:
            values[writes] = action(*[values[i] if shape is None else values[i].reshape(shape) for i, shape in reads])
            for value in frees:
                del values[value]
        return values[self.calls[-1].writes], [values[i] for i in self._dangling]

    def loss(self) -> Tensor:
        for tensor in self.fresh.values():
            tensor.grad = None
        output, dangling = self.forward()
        loss: Tensor = training_loss(output) if output.requires_grad else output.square().mean()
        for tensor in dangling:
            loss = loss + tensor.square().mean()
        return loss

    def _call(self, node: Node, frees: Tuple[int, ...]) -> Call:
        reads = tuple((read.value, read.shape if read.reshaped else None) for read in node.reads)
        return Call(self._action(node), reads, node.writes, frees)

    def _action(self, node: Node) -> Callable[..., Tensor]:
        if node.tail is not None:
            return tail_action(node.tail)
        module = build_layer(node.layer)
        self.layers.append(module)
        return module


def build_chain(network: Network, dtype: torch.dtype) -> Chain:
    if not network.layers:
        raise ValueError("the network has no layers")
    return Chain(wire(network), dtype).train()


def _tensor(fresh: Fresh, dtype: torch.dtype) -> Tensor:
    if fresh.tokens:
        return torch.randint(0, fresh.tokens, fresh.shape)
    return torch.randn(fresh.shape, dtype=dtype).requires_grad_(fresh.grad)
