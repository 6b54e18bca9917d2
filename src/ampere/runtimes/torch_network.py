"""A described network as a PyTorch module that is really trained."""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ampere.core import Network
from ampere.core.kinds.kind import Operand, Shape
from ampere.core.trailing_ops import TrailingPlan
from ampere.core.wiring import Node, Read, Wiring, wire

from .plain_script import training_loss
from .runtime import Part
from .torch_layers import DROPOUT, build_layer

MAX_POOLS = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
ADAPTIVE_POOLS = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}
LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}

Action = Callable[..., Tensor]
View = Callable[[Tensor], Tensor]


def trailing_action(plan: TrailingPlan) -> Action:
    """A trailing operation, as `ampere.core.trailing_ops` planned it."""
    return ACTIONS[plan.action](plan)


def _max_pool(plan: TrailingPlan) -> Action:
    pool, (kernel,) = MAX_POOLS[len(plan.shape) - 2], plan.sizes
    return lambda x: pool(x, kernel)


def _max_pool_same(plan: TrailingPlan) -> Action:
    pool, (kernel,) = MAX_POOLS[len(plan.shape) - 2], plan.sizes
    return lambda x: pool(x, kernel, stride=1, padding=kernel // 2)


def _adaptive_pool(plan: TrailingPlan) -> Action:
    pool: Any = ADAPTIVE_POOLS[len(plan.shape) - 2]
    return lambda x: pool(x, plan.sizes)


def _mean(plan: TrailingPlan) -> Action:
    return lambda x: x.mean(dim=plan.sizes)


def _last(plan: TrailingPlan) -> Action:
    return lambda x: last_entries(x, plan.sizes).contiguous()


def last_entries(x: Tensor, dimensions: Tuple[int, ...]) -> Tensor:
    """The last entry along each dimension that goes: what is taken of a sequence's outputs."""
    for dimension in reversed(dimensions):
        x = x.select(dimension, -1)
    return x


def _draw_mask(x: Tensor) -> Tensor:
    torch.empty_like(x.detach()).bernoulli_(1 - DROPOUT)
    return x


def _aside(x: Tensor) -> Tensor:
    torch.relu(x.detach())
    return x


def _repeat(plan: TrailingPlan) -> Action:
    factor = float(plan.sizes[0])
    return lambda x: F.interpolate(x, scale_factor=factor, mode="nearest")


def _enlarge(plan: TrailingPlan) -> Action:
    factor, mode = float(plan.sizes[0]), LINEAR[len(plan.shape) - 2]
    return lambda x: F.interpolate(x, scale_factor=factor, mode=mode)


ACTIONS: Dict[str, Callable[[TrailingPlan], Action]] = {
    "aside": lambda plan: _aside,
    "relu": lambda plan: lambda x: torch.relu(x),
    "draw": lambda plan: _draw_mask,
    "dropout": lambda plan: lambda x: F.dropout(x, DROPOUT),
    "gelu": lambda plan: lambda x: F.gelu(x),
    "add": lambda plan: lambda x, y: x + y,
    "max_pool": _max_pool,
    "max_pool_same": _max_pool_same,
    "adaptive_pool": _adaptive_pool,
    "softmax": lambda plan: lambda x: torch.softmax(x, -1),
    "mean": _mean,
    "copy": lambda plan: lambda x: x.clone(),
    "last": _last,
    "repeat": _repeat,
    "enlarge": _enlarge,
    "concat": lambda plan: lambda x, y: torch.cat((x, y), 1),
}


class Call(NamedTuple):
    """One operation, ready to run."""

    action: Callable[..., Tensor]
    reads: Tuple[Tuple[int, Optional[View]], ...]  # which values, and how they are looked at
    writes: int
    frees: Tuple[int, ...]  # values that nothing reads later: a real network would not keep them either


class Chain(nn.Module):
    """A described network that is really trained: forward, backward and update of every layer."""

    def __init__(self, wiring: Wiring, dtype: torch.dtype, device: Union[str, torch.device] = "cpu") -> None:
        super().__init__()
        self._device, self._dtype = device, dtype
        self.layers = nn.ModuleList()
        self.trained: List[nn.Parameter] = []  # what the optimizer visits: parameters shared by layers only once
        self.calls = [self._call(node, frees, wiring.shapes) for node, frees in zip(wiring.nodes, wiring.frees)]
        self._dangling = wiring.dangling
        if device == "cpu" and dtype != torch.get_default_dtype():  # tensors without values cannot be converted
            self.to(dtype)
        # Not buffers: converting those would cut them off from their gradients.
        self.fresh: Dict[int, Tensor] = {fresh.value: _tensor(fresh.operand, dtype, device) for fresh in wiring.fresh}
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
        """Gradients that no optimizer clears."""
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
        if node.trailing is not None:
            return trailing_action(node.trailing)
        module = build_layer(node.layer)
        if self._device != "cpu":  # before its parameters are listed: a move may make new ones
            module = module.to(self._device, self._dtype)
        self.layers.append(module)
        if node.layer.trainable and node.layer.config.get("parameters") != 0:
            self.trained += module.parameters()
        return module


def _view(read: Read, shape: Shape) -> Optional[View]:
    if read.parts > 1:
        return lambda x: x.reshape(read.parts, *read.shape)[read.part]
    if read.last_of:
        return lambda x: last_entries(x, read.last_of)
    return (lambda x: x.reshape(read.shape)) if read.shape != shape else None


def build_chain(network: Network, dtype: torch.dtype, device: Union[str, torch.device] = "cpu") -> Chain:
    if not network.layers:
        raise ValueError("the network has no layers")
    return Chain(wire(network), dtype, device).train()


def _tensor(operand: Operand, dtype: torch.dtype, device: Union[str, torch.device]) -> Tensor:
    """Drawn on the CPU, so that it is the same everywhere."""
    tokens, shape = operand.tokens, operand.shape
    drawn = torch.randint(0, tokens, shape) if tokens else torch.randn(shape, dtype=dtype)
    there = drawn if device == "cpu" else drawn.to(device)
    return there if tokens else there.requires_grad_(operand.grad)


def parts_of(
    chain: Chain, optimizer: Optional[torch.optim.Optimizer], seen: Callable[[Tensor], None]
) -> Tuple[Part, ...]:
    """A step in parts that can be timed one by one: forward, loss, backward and update.

    A layer by itself has a loss only because nothing follows it, so it is kept out of the stages: backward starts from
    the gradient that has come back to the layer's output.
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
