"""What a few layers become when they are trained by themselves."""

from dataclasses import replace
from typing import Sequence, Tuple

from .kinds import KINDS
from .kinds.kind import product
from .layer import Layer, TailOp


def with_loss(layers: Sequence[Layer]) -> Tuple[Layer, ...]:
    """The layers as they run in a variant: the last one's output is squared and averaged."""
    last = layers[-1]
    values = float(last.tail[-1].values_out if last.tail else product(KINDS[last.kind].shape_out(last)))
    loss = (TailOp("elementwise", values, values), TailOp("reduce", values, 1.0))
    return (*layers[:-1], replace(last, tail=last.tail + loss))
