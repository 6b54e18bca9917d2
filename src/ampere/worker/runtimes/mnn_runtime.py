"""Training with MNN, the library that trains on phones."""

from typing import Any, Callable, Dict, List

import MNN.optim as optim

from ...network import Network, TrainingSetup
from ..errors import WorkerError
from ..yardstick_network import YARDSTICK
from .description import refuse_lacking
from .mnn_chain import Chain
from .mnn_silence import trained_variables
from .mnn_tensors import F, Var, array_of
from .runtime import Training
from .table import description_of

# Each step builds a graph anew. That of a deep network leaves the yardstick nothing in the caches.
MANY_LAYERS, SETTLING = 12, 2

L2 = optim.Regularization_Method.L2  # of a decay that is 0: MNN computes it all the same

# Module, rate, first and second momentum, decay, and so on.
OPTIMIZERS: Dict[str, Callable[[Any], Any]] = {
    "sgd": lambda root: optim.SGD(root, 1e-3, 0.0, 0.0, L2),
    "momentum": lambda root: optim.SGD(root, 1e-3, 0.9, 0.0, L2),
    "adam": lambda root: optim.ADAM(root, 1e-4, 0.9, 0.999, 0.0, 1e-8, L2),
}


class MnnRuntime:
    def __init__(self) -> None:
        self._preloaded = False
        self._pool_started = False

    def prepare(self, threads: int) -> None:
        F.set_thread_number(threads)
        self._pool_started = self._pool_started or threads > 1

    def build(self, subject: Dict[str, Any], setup: TrainingSetup) -> Training:
        if "layers" not in subject:
            raise WorkerError("variant_failed", "MNN trains described layers: the subject needs layers")
        network = Network.from_json(subject["layers"])
        refuse_lacking(network, "mnn", description_of("mnn"))
        settling = SETTLING if len(network.layers) > MANY_LAYERS else 0
        return training(Chain(network), setup.optimizer)._replace(settling=settling)

    def yardstick(self) -> Training:
        return training(Chain(YARDSTICK), "sgd")

    def ready_to_fork(self, subject: Dict[str, Any], threads: int) -> bool:
        # Threads do not survive a fork: a child that needed them would hang.
        if threads > 1 and self._pool_started:
            return False
        if not self._preloaded:
            F.set_thread_number(1)
            self.yardstick().step()
            self._preloaded = True
        return True


def training(chain: Chain, optimizer_name: str) -> Training:
    optimizer = OPTIMIZERS[optimizer_name](chain.root) if chain.root.parameters else None
    weights = trained_variables(chain, optimizer) if optimizer else ()
    last: List[Var] = []

    def step() -> None:
        loss = chain.loss()
        if optimizer is None:
            loss.read()  # nothing is computed before somebody asks
        elif not optimizer.step(loss):
            raise WorkerError("variant_failed", "MNN trained nothing: its optimiser found no gradient")
        last[:] = [loss]

    count = sum(int(array_of(weight).size) for weight in weights)
    return Training(step, lambda: float(array_of(last[0])[0]), count, weights=lambda: tuple(map(array_of, weights)))


create = MnnRuntime
