"""Training with MNN, the library that trains on phones."""

from typing import Any, Dict, List, Tuple

import MNN.optim as optim
import numpy as np

from ampere.core import Network, TrainingSetup
from ampere.core.errors import WorkerError
from ampere.core.optimizers import OPTIMIZERS
from ampere.core.yardstick import YARDSTICK

from .mnn_layers import F, Var, array_of, plain, shape_of
from .mnn_network import Chain, Trained
from .runtime import Training
from .table import description_of, refuse_lacking

NOTICEABLE = 1e-3  # of a weight: a gradient from which on one small step must show


def trained_variables(chain: Chain, optimizer: Any) -> Tuple[Var, ...]:
    """The variables that a step changes, after one step. Layers that it leaves unchanged are refused by name.

    MNN says nothing where an operation has no gradient, where a parameter is taken for a constant, and where lazy
    evaluation is off: the loop runs, and some or all weights stay as they were.
    """
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
    """The largest value of each, in one reading: every reading computes everything anew, back to the loss."""
    if not gradients:
        return ()  # MNN crashes where nothing is joined
    each = [F.reduce_max(F.abs(plain(g, shape_of(g))), [], False) for g in gradients]
    return array_of(F.concat([plain(g, (1,)) for g in each], 0))


def _refuse(untrained: List[Trained]) -> None:
    if untrained:
        said = ", ".join(t.layer.name or t.layer.kind for t in untrained)
        raise WorkerError("variant_failed", f"MNN would not train {said}: its weights stay as they are")


# Each step builds a graph anew. That of a deep network leaves the yardstick nothing in the caches.
MANY_LAYERS, SETTLING = 12, 2

L2 = optim.Regularization_Method.L2  # of a decay that is 0: MNN computes it all the same


def sgd(root: Any, rate: float, momentum: float) -> Any:
    return optim.SGD(root, rate, momentum, 0.0, L2)


def adam(root: Any, rate: float) -> Any:
    return optim.ADAM(root, rate, 0.9, 0.999, 0.0, 1e-8, L2)


class MnnRuntime:
    def __init__(self) -> None:
        self._preloaded = False
        self._pool_started = False

    def prepare(self, threads: int) -> None:
        F.set_thread_number(threads)
        self._pool_started = self._pool_started or threads > 1

    def build(self, workload: Dict[str, Any], setup: TrainingSetup) -> Training:
        if "layers" not in workload:
            raise WorkerError("variant_failed", "MNN trains described layers: a workload needs layers")
        network = Network.from_json(workload["layers"])
        refuse_lacking(network, "mnn", description_of("mnn"))
        settling = SETTLING if len(network.layers) > MANY_LAYERS else 0
        return training(Chain(network), setup.optimizer)._replace(settling=settling)

    def yardstick(self) -> Training:
        return training(Chain(YARDSTICK), "sgd")

    def ready_to_fork(self, workload: Dict[str, Any], threads: int) -> bool:
        # Threads do not survive a fork: a child that needed them would hang.
        if threads > 1 and self._pool_started:
            return False
        if not self._preloaded:
            F.set_thread_number(1)
            self.yardstick().step()
            self._preloaded = True
        return True


def training(chain: Chain, optimizer_name: str) -> Training:
    optimizer = OPTIMIZERS[optimizer_name].make("mnn", chain.root) if chain.root.parameters else None
    weights = trained_variables(chain, optimizer) if optimizer else ()
    last: List[Var] = []

    def step() -> None:
        loss = chain.loss()
        if optimizer is None:
            loss.read()  # nothing is computed before somebody asks
        elif not optimizer.step(loss):
            raise WorkerError("variant_failed", "MNN trained nothing: its optimizer found no gradient")
        last[:] = [loss]

    count = sum(int(array_of(weight).size) for weight in weights)
    return Training(step, lambda: float(array_of(last[0])[0]), count, weights=lambda: tuple(map(array_of, weights)))


create = MnnRuntime
