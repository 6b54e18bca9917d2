"""What MNN would silently not train, found before anything is measured.

It says nothing where an operation has no gradient, where a parameter is taken for a constant, and where lazy
evaluation is off: the loop runs, and some or all weights stay as they were.
"""

from typing import Any, List, Tuple

import numpy as np

from ..errors import WorkerError
from .mnn_chain import Chain, Trained
from .mnn_tensors import F, Var, array_of, plain, shape_of

NOTICEABLE = 1e-3  # of a weight: a gradient from which on one small step must show


def trained_variables(chain: Chain, optimizer: Any) -> Tuple[Var, ...]:
    """Those that a step changes, after one step. Refused by name: layers that it should change, and does not."""
    every = [variable for trained in chain.trained for variable in trained.variables]
    if not every:
        return ()
    loss = chain.loss()
    found, gradients = optimizer.grad([loss], [F.const([1.0], loss.shape, F.NCHW, F.float)], every)
    owners, before = [variable.name for variable in found], [array_of(variable) for variable in found]
    expected = [g > NOTICEABLE * np.abs(w).max() for w, g in zip(before, _largest(gradients))]
    optimizer.step(chain.loss())
    stuck = {
        name for name, w, must, v in zip(owners, before, expected, found) if must and np.array_equal(w, array_of(v))
    }
    _refuse([t for t in chain.trained if owners.count(t.name) < t.tensors or t.name in stuck])
    return tuple(found)


def _largest(gradients: List[Var]) -> Any:
    """Of each, in one reading: every reading computes what nobody read before anew, back to the loss."""
    if not gradients:
        return ()  # MNN crashes where nothing is joined
    each = [F.reduce_max(F.abs(plain(g, shape_of(g))), [], False) for g in gradients]
    return array_of(F.concat([plain(g, (1,)) for g in each], 0))


def _refuse(untrained: List[Trained]) -> None:
    if untrained:
        said = ", ".join(t.layer.name or t.layer.kind for t in untrained)
        raise WorkerError("variant_failed", f"MNN would not train {said}: its weights stay as they are")
