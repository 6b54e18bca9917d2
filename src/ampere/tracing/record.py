"""What the recorder notes of each operation, and the cost of backward by autograd node."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import nn

from .calls import Call
from .recognise import Draft


@dataclass
class Cost:
    launches: int = 0
    flops: int = 0
    values: int = 0

    def add(self, other: Cost) -> None:
        self.launches += other.launches
        self.flops += other.flops
        self.values += other.values


@dataclass(eq=False)
class Operation:
    """A forward operation. `nodes` are the sequence numbers of its autograd nodes."""

    name: str
    op_class: str
    call: Call
    values_in: int
    values_out: int
    cost: Cost
    draft: Draft | None = None
    parameters: list[nn.Parameter] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    in_function: bool = False  # inside a torch.autograd.Function, where gradients are off
    trusted: bool = False  # its kind's FLOPs hold, though not each operation inside was seen
    backward: bool = False
