"""How the operations that follow a layer are carried out, given only what each reads and writes.

    dropout         all of it, or only the drawing of its mask where that has no backward
    elementwise     relu, or a sum with an earlier tensor where twice as much is read as written
    transcendental  gelu
    pool            max pooling by the recorded ratio, or adaptive pooling where that is not a whole number
    reduce          softmax where the size stays, else the mean over the dimensions that go
    copy            a copy, a part, a concatenation, or a repetition
    enlarge         linear interpolation between the values that are there
    other           relu

An operation that does not fit the tensor it follows is done elementwise on what is there. One without backward
among those with it is not on the way to the loss: it is done aside.
"""

from itertools import combinations
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ampere.core.kinds.kind import Shape, product

from .layer import TrailingOp

TWO_OPERANDS = 1.75  # values read for each one written, from which on a second tensor must be among them


class TrailingPlan(NamedTuple):
    """What a runtime does for one trailing operation."""

    action: str
    shape: Shape  # of the result
    sizes: Tuple[int, ...] = ()  # kernel, dimensions or size: what the action needs to know
    partner: Optional[Shape] = None  # of a second tensor


Options = Sequence[Optional[TrailingPlan]]  # the likeliest first


def plan_trailing(op: TrailingOp, shape: Shape, grad: bool = True, wanted: int = 0) -> TrailingPlan:
    """`wanted` values are what the next layer reads, if that is known."""
    if grad and not op.backward:
        return TrailingPlan("draw" if op.op == "dropout" else "aside", shape)
    sensible = op.values_in >= 1 and op.values_out >= 1
    options = PLANNERS[op.op](op, shape) if sensible and op.op in PLANNERS else ()
    plans = [plan for plan in options if plan is not None]
    best = [plan for plan in plans if product(plan.shape) == wanted]
    return next(iter([*best, *plans]), TrailingPlan("relu", shape))


def carried_out(op: TrailingOp, plan: TrailingPlan, read: int, grad: bool) -> Tuple[TrailingOp, ...]:
    """What the plan of an operation amounts to, where it reads so many values."""
    values, weight = float(product(plan.shape)), weight_of(plan.action, grad)
    if plan.action == "dropout":
        return dropout(values, grad)
    name, backward = op.op, grad and plan.action not in ("draw", "aside")
    if plan.action in ("relu", "aside"):
        name = "elementwise"
    elif plan.action == "repeat":
        name = "pool"
    elif plan.action == "softmax":
        weight *= of_softmax(plan.shape)
    elif plan.action == "last":
        read = product(plan.shape)
    found_at = values if plan.action.startswith("max_pool") else 0.0
    return (TrailingOp(name, float(read), values + found_at, backward, weight),)


def dropout(values: float, grad: bool) -> Tuple[TrailingOp, ...]:
    """A mask is drawn, scaled and multiplied with."""
    return (
        TrailingOp("dropout", values, values, False),
        TrailingOp("elementwise", values, values, False, weight_of("aside", False)),
        TrailingOp("elementwise", 2 * values, values, grad, 0.8),
    )


def weight_of(action: str, grad: bool) -> float:
    return WEIGHTS.get(action, (1.0, 1.0))[not grad]


def of_softmax(shape: Shape) -> float:
    """How much more than along a long row a softmax takes along the last dimension."""
    return max(1.0, SHORT_ROW / max(1, shape[-1])) if shape else 1.0


# Of what is built, where it differs from the usual operation of its class (`ampere.tracing.usual_costs`): of forward
# and backward pass together, and of the forward pass alone.
WEIGHTS = {
    "relu": (1.0, 0.8),
    "gelu": (1.0, 0.8),
    "aside": (0.8, 0.8),
    "add": (0.4, 0.8),
    "max_pool": (1.0, 2.0),
    "max_pool_same": (3.6, 7.0),
    "adaptive_pool": (0.4, 0.4),
    "repeat": (0.7, 1.0),
    "enlarge": (1.0, 0.6),
    "softmax": (1.0, 2.0),
    "mean": (1.0, 0.5),
    "copy": (1.0, 2.0),
    "concat": (1.0, 2.0),
    "last": (3.8, 7.6),
}
SHORT_ROW = 58  # values of a row of a softmax, below which rows take as long however short they are


def _plan_elementwise(op: TrailingOp, shape: Shape) -> Options:
    if op.values_in < TWO_OPERANDS * op.values_out or round(op.values_out) != product(shape):
        return ()
    return (TrailingPlan("add", shape, partner=shape),)


def _plan_pool(op: TrailingOp, shape: Shape) -> Options:
    """Max pooling also writes where it found each value, so that twice as much is written as goes on."""
    if not 3 <= len(shape) <= 5:
        return ()
    if op.values_out > 2 * op.values_in:
        return (_plan_repeat(op, shape),)
    half, full = round(op.values_out / 2), round(op.values_out)
    return (_whole(half, shape), _whole(full, shape), _adaptive(full, shape), _adaptive(half, shape))


def _whole(values: int, shape: Shape) -> Optional[TrailingPlan]:
    spatial = shape[2:]
    kernel = round((product(shape) / max(1, values)) ** (1 / len(spatial)))
    pooled = (*shape[:2], *(n // max(1, kernel) for n in spatial))
    if product(pooled) != values or values < 1:
        return None
    return TrailingPlan("max_pool", pooled, (kernel,)) if kernel > 1 else TrailingPlan("max_pool_same", shape, (3,))


def _adaptive(values: int, shape: Shape) -> Optional[TrailingPlan]:
    places = values // max(1, shape[0] * shape[1])
    edge = round(places ** (1 / len(shape[2:])))
    pooled = (*shape[:2], *(edge for _ in shape[2:]))
    if edge < 1 or product(pooled) != values or values > product(shape):
        return None
    return TrailingPlan("adaptive_pool", pooled, pooled[2:])


def _plan_reduce(op: TrailingOp, shape: Shape) -> Options:
    values = round(op.values_out)
    if values == product(shape):
        return (TrailingPlan("softmax", shape),)
    gone = dimensions_to_drop(shape, values)
    return () if gone is None else (TrailingPlan("mean", without_dimensions(shape, gone), gone),)


def _plan_copy(op: TrailingOp, shape: Shape) -> Options:
    values, copied = round(op.values_out), TrailingPlan("copy", shape)
    if values == product(shape):
        return (copied,)
    if values < product(shape):
        gone = dimensions_to_drop(shape, values)
        return (copied if gone is None else TrailingPlan("last", without_dimensions(shape, gone), gone),)
    return (_plan_repeat(op, shape), _plan_concat(values, shape), copied)


def _plan_repeat(op: TrailingOp, shape: Shape) -> Optional[TrailingPlan]:
    """More is written than was read: enlarging, as before a decoder's convolution."""
    spatial = shape[2:]
    if not 1 <= len(spatial) <= 3 or round(op.values_in) > product(shape):
        return None
    factor = round((op.values_out / product(shape)) ** (1 / len(spatial)))
    larger = (*shape[:2], *(n * factor for n in spatial))
    return TrailingPlan("repeat", larger, (factor,)) if product(larger) == round(op.values_out) else None


def _plan_enlarge(op: TrailingOp, shape: Shape) -> Options:
    plan = _plan_repeat(op, shape)
    return () if plan is None else (plan._replace(action="enlarge"),)


def _plan_concat(values: int, shape: Shape) -> Optional[TrailingPlan]:
    if len(shape) < 2:
        return None
    slice_values = product(shape) // shape[1]
    if values % slice_values:
        return None
    total = values // slice_values
    partner = (shape[0], total - shape[1], *shape[2:])
    return TrailingPlan("concat", (shape[0], total, *shape[2:]), partner=partner)


def dimensions_to_drop(shape: Shape, values: int) -> Optional[Tuple[int, ...]]:
    """The fewest dimensions, batch last of all, without which so many values remain."""
    order = [*range(len(shape) - 1, 0, -1), 0] if shape else []
    for count in range(1, len(shape) + 1):
        for gone in combinations(order, count):
            if product(without_dimensions(shape, gone)) == values:
                return tuple(sorted(gone))
    return None


def without_dimensions(shape: Shape, gone: Tuple[int, ...]) -> Shape:
    return tuple(n for i, n in enumerate(shape) if i not in gone)


PLANNERS: Dict[str, Callable[[TrailingOp, Shape], Options]] = {
    "elementwise": _plan_elementwise,
    "dropout": lambda op, shape: (TrailingPlan("dropout", shape),),
    "pool": _plan_pool,
    "reduce": _plan_reduce,
    "copy": _plan_copy,
    "enlarge": _plan_enlarge,
    "transcendental": lambda op, shape: (TrailingPlan("gelu", shape),),
}


def with_dropout(trailing: Tuple[TrailingOp, ...]) -> Tuple[TrailingOp, ...]:
    """Dropout is three operations: draw a mask, scale it, multiply with it. Here they become one, with backward."""
    found: List[TrailingOp] = []
    for op in trailing:
        found.append(op)
        if len(found) > 2 and _is_dropout(*found[-3:]):
            found[-3:] = [TrailingOp("dropout", op.values_out, op.values_out)]
    return tuple(found)


def _is_dropout(draw: TrailingOp, scale: TrailingOp, multiply: TrailingOp) -> bool:
    same_size = draw.values_out == scale.values_out == multiply.values_out
    named = (draw.op, scale.op, multiply.op) == ("dropout", "elementwise", "elementwise")
    return same_size and named and (draw.backward, scale.backward, multiply.backward) == (False, False, True)


def usual_loss(shape: Shape) -> Tuple[TrailingOp, ...]:
    """What every runtime trains a network with that says nothing else: cross entropy of class scores, or squares."""
    values = float(product(shape))
    if len(shape) == 2 and shape[1] > 1:
        softmax = TrailingOp("reduce", values, values, weight=of_softmax(shape))
        return softmax, TrailingOp("reduce", values + shape[0], 2.0, weight=0.5)
    return mean_of_squares(values)


def mean_of_squares(values: float) -> Tuple[TrailingOp, ...]:
    return TrailingOp("elementwise", values, values, True, 1.7), TrailingOp("reduce", values, 1.0, True, 1.2)


def without_loss(trailing: Tuple[TrailingOp, ...]) -> Tuple[TrailingOp, ...]:
    """The last layer's reduction to one value (and a weight) ends the loss, which the runtime computes itself."""
    if not trailing or trailing[-1].op != "reduce" or trailing[-1].values_out > 2:
        return trailing
    # Before it comes a softmax (cross entropy) or a square (mean of squares).
    before = trailing[:-1]
    return before[:-1] if before and before[-1].op in ("reduce", "elementwise") else before
