"""Training with PyTorch, and its yardstick (the reference step)."""

from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn

from ampere.core import Network, TrainingSetup
from ampere.core.optimizers import OPTIMIZERS

from .runtime import Training
from .table import description_of, refuse_lacking
from .torch_model import build_from_factory
from .torch_network import Chain, build_chain, parts_of
from .torch_step import build_step
from .user_code import find_factory

SEED = 0
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "autocast": torch.float32}  # of the weights


def yardstick_network() -> Tuple[nn.Module, Callable[[], Tensor]]:
    """A small convolutional network, always float32. Changing it makes every stored ratio worthless."""
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 7 * 7, 10),
    )
    images, labels = torch.randn(10, 1, 28, 28), torch.randint(0, 10, (10,))
    return model, lambda: nn.functional.cross_entropy(model(images), labels)


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

    def build(self, workload: Dict[str, Any], setup: TrainingSetup) -> Training:
        dtype = DTYPES[setup.dtype]
        if "layers" in workload:
            network = Network.from_json(workload["layers"])
            refuse_lacking(network, self.name, description_of(self.name))
            chain = build_chain(network, dtype)
            stages = None if setup.dtype == "autocast" else chain  # casts are shared by all stages of a step
            return training(chain.trained, in_precision(setup, chain.loss), setup.optimizer, stages)
        if workload.get("step"):
            return build_step(workload)
        model, loss_of = build_from_factory(workload, dtype)
        return training(trainable(model), in_precision(setup, loss_of), setup.optimizer)

    def yardstick(self) -> Training:
        model, loss_of = yardstick_network()
        return training(trainable(model), loss_of, "sgd")

    def ready_to_fork(self, workload: Dict[str, Any], threads: int) -> bool:
        # OpenMP's pool does not survive a fork: a child that needed it would hang. So only children have one.
        if threads > 1 and self._pool_started:
            return False
        torch.set_num_threads(1)
        if not self._preloaded:
            step = self.yardstick().step
            step(), step()
            self._preloaded = True
        if "factory" in workload:
            find_factory(str(workload["factory"]))
            self._pool_started = self._pool_started or torch.get_num_threads() > 1  # the user's own code asked for it
        return threads == 1 or not self._pool_started


def in_precision(setup: TrainingSetup, loss_of: Callable[[], Tensor]) -> Callable[[], Tensor]:
    """The loss in the setup's precision: with autocast, weights stay in float32 and products are in bfloat16."""
    if setup.dtype != "autocast":
        return loss_of

    def loss() -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return loss_of()

    return loss


def trainable(model: nn.Module) -> List[nn.Parameter]:
    return [p for p in model.parameters() if p.requires_grad]


def training(
    parameters: List[nn.Parameter],
    loss_of: Callable[[], Tensor],
    optimizer_name: str,
    chain: Optional[Chain] = None,
    **optimizer_arguments: Any,
) -> Training:
    optimizer = OPTIMIZERS[optimizer_name].make("torch", parameters, **optimizer_arguments) if parameters else None
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
