"""Several operations of a tail that are one idea: dropout, and the loss at the end of a network."""

from typing import List, Tuple

from ..network import TailOp


def with_dropout(tail: Tuple[TailOp, ...]) -> Tuple[TailOp, ...]:
    """Dropout is three operations: draw a mask, scale it, multiply with it. Here they become one, with backward."""
    found: List[TailOp] = []
    for op in tail:
        found.append(op)
        if len(found) > 2 and _is_dropout(*found[-3:]):
            found[-3:] = [TailOp("dropout", op.values_out, op.values_out)]
    return tuple(found)


def _is_dropout(draw: TailOp, scale: TailOp, multiply: TailOp) -> bool:
    same_size = draw.values_out == scale.values_out == multiply.values_out
    named = (draw.op, scale.op, multiply.op) == ("dropout", "elementwise", "elementwise")
    return same_size and named and (draw.backward, scale.backward, multiply.backward) == (False, False, True)


def without_loss(tail: Tuple[TailOp, ...]) -> Tuple[TailOp, ...]:
    """The last layer's reduction to one value (and a weight) ends the loss, which the runtime computes itself."""
    if not tail or tail[-1].op != "reduce" or tail[-1].values_out > 2:
        return tail
    # Before it comes a softmax (cross entropy) or a square (mean of squares).
    before = tail[:-1]
    return before[:-1] if before and before[-1].op in ("reduce", "elementwise") else before
