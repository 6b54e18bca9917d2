"""Training with PyTorch."""

from typing import Any, Callable, Dict, List, Optional

import torch
from torch import Tensor, nn

from ...network import Network, TrainingSetup
from .description import refuse_lacking
from .factory import find_factory
from .runtime import Training
from .table import description_of
from .torch_chain import Chain, build_chain
from .torch_factory import build_from_factory
from .torch_stages import parts_of
from .torch_yardstick import yardstick_network

SEED = 0

# Small rates: a measured model must not diverge, whatever its loss.
OPTIMIZERS: Dict[str, Callable[[List[nn.Parameter]], torch.optim.Optimizer]] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=1e-3),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-4),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-4),
}
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class TorchRuntime:
    name = "torch"

    def __init__(self) -> None:
        self._preloaded = False
        self._pool_started = False

    def prepare(self, threads: int) -> None:
        torch.set_num_threads(threads)
        torch.set_flush_denormal(True)
        torch.manual_seed(SEED)
        self._pool_started = self._pool_started or threads > 1

    def build(self, subject: Dict[str, Any], setup: TrainingSetup) -> Training:
        dtype = DTYPES[setup.dtype]
        if "layers" in subject:
            network = Network.from_json(subject["layers"])
            refuse_lacking(network, self.name, description_of(self.name))
            chain = build_chain(network, dtype)
            return training(chain.trained, chain.loss, setup.optimizer, chain)
        model, loss_of = build_from_factory(subject, dtype)
        return training(trainable(model), loss_of, setup.optimizer)

    def yardstick(self) -> Training:
        model, loss_of = yardstick_network()
        return training(trainable(model), loss_of, "sgd")

    def ready_to_fork(self, subject: Dict[str, Any], threads: int) -> bool:
        # OpenMP's pool does not survive a fork: a child that needed it would hang.
        if threads > 1 and self._pool_started:
            return False
        if not self._preloaded:
            torch.set_num_threads(1)
            step = self.yardstick().step
            step(), step()
            self._preloaded = True
        if "factory" in subject:
            find_factory(str(subject["factory"]))
        return True


def trainable(model: nn.Module) -> List[nn.Parameter]:
    return [p for p in model.parameters() if p.requires_grad]


def training(
    parameters: List[nn.Parameter], loss_of: Callable[[], Tensor], optimizer_name: str, chain: Optional[Chain] = None
) -> Training:
    optimizer = OPTIMIZERS[optimizer_name](parameters) if parameters else None
    last: List[Tensor] = []

    def seen(loss: Tensor) -> None:
        last[:] = [loss.detach()]

    def step() -> None:
        if optimizer:
            optimizer.zero_grad(set_to_none=True)
        loss = loss_of()
        if loss.requires_grad:
            torch.autograd.backward(loss)
        if optimizer:
            optimizer.step()
        seen(loss)

    parts = parts_of(chain, optimizer, seen) if chain is not None else None
    count = sum(p.numel() for p in parameters)
    return Training(step, lambda: float(last[0]), count, parts, weights=lambda: tuple(p.detach() for p in parameters))


create = TorchRuntime
