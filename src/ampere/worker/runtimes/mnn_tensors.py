"""MNN's variables: made of random numbers, and brought into the shape and the memory layout that an operation reads.

The functions of `MNN.expr` cast what they are given, and a cast has no gradient: what comes before it is silently not
trained. So the functions underneath are called here, which cast nothing.
"""

from typing import Any, Sequence, Tuple

import MNN.expr
import numpy as np

F: Any = MNN.expr._F
PADDED = MNN.expr.Padding_Mode.CAFFE  # without it, MNN ignores the padding that it is given
UNPADDED = MNN.expr.Padding_Mode.VALID

Var = Any
Numbers = Any  # where random numbers come from

F.lazy_eval(True)  # otherwise nothing is trained, and nothing says so


class DoesNotFit(Exception):
    """MNN prints a line and goes on with a value that has no shape."""


def shape_of(x: Var) -> Tuple[int, ...]:
    shape = None if x is None else x.shape
    if shape is None or min(shape, default=1) < 1:
        raise DoesNotFit
    return tuple(shape)


def random_tensor(numbers: Numbers, shape: Sequence[int], spread: float = 1.0) -> Var:
    return constant(spread * numbers.standard_normal(tuple(shape)))


def constant(values: Any) -> Var:
    array = np.asarray(values, dtype=np.float32)
    return F.const(array, list(array.shape), F.NCHW, F.float)


def parameter(values: Any) -> Var:
    made = constant(values)
    made.fix_as_trainable()
    return made


def array_of(variable: Var) -> Any:
    """Its values now, with the dimensions that other libraries keep: of a vector one, of a sequence's kernel three."""
    values = np.array(variable.read())
    if sum(n > 1 for n in values.shape) < 2:
        return values.reshape(-1)
    return values.squeeze(2) if values.ndim == 4 and values.shape[2] == 1 else values


def plain(x: Var, shape: Sequence[int]) -> Var:
    """Values in the order of their dimensions."""
    known = shape_of(x)
    if x.data_format == F.NC4HW4:
        x = F.convert(x, F.NCHW)
    return x if known == tuple(shape) else F.reshape(x, list(shape), F.NCHW)


def image(x: Var, shape: Sequence[int]) -> Var:
    """Channels by fours, as convolutions and pools read them; a sequence is an image of one row."""
    whole = as_image(shape)
    if shape_of(x) != whole:
        x = plain(x, whole)
    return x if x.data_format == F.NC4HW4 else F.convert(x, F.NC4HW4)


def as_image(shape: Sequence[int]) -> Tuple[int, ...]:
    rows = (1,) * (4 - len(shape))
    return (*shape[:2], *rows, *shape[2:])


def across_down(sizes: Sequence[int], missing: int) -> "list[int]":
    """MNN names the width first; a sequence has no height."""
    down, across = sizes if len(sizes) == 2 else (missing, *sizes)
    return [across, down]
