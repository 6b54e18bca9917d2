"""Training with PyTorch, on the CPU or on an accelerator, and its yardstick (the reference step)."""

from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import torch
from torch import Tensor, nn

from ampere.core import Network, TrainingSetup
from ampere.core.optimizers import OPTIMIZERS
from ampere.core.setup import CPU as ON_CPU

from .processor import CPU, Processor
from .runtime import Training
from .table import description_of, refuse_lacking
from .torch_accelerator import TorchAccelerator, find_accelerator, has_accelerator
from .torch_model import build_from_factory
from .torch_network import Chain, build_chain, parts_of
from .torch_program import Program
from .torch_step import build_step
from .user_code import find_factory

SEED = 0
DTYPES = {  # of the weights
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "autocast_bfloat16": torch.float32,
    "autocast_float16": torch.float32,
    "tf32": torch.float32,
    "float32_ieee": torch.float32,
}
AUTOCAST = {"autocast_bfloat16": torch.bfloat16, "autocast_float16": torch.float16}
TF32 = {"tf32": True, "float32_ieee": False}
IMAGES_PER_UNIT = 32  # of a card


def yardstick_network() -> Tuple[nn.Module, Callable[[], Tensor]]:
    """A small convolutional network, always float32. Changing it makes every stored ratio worthless."""
    model = _two_convolutions(8)
    images, labels = torch.randn(10, 1, 28, 28), torch.randint(0, 10, (10,))
    return model, lambda: nn.functional.cross_entropy(model(images), labels)


def _two_convolutions(width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(2 * width * 7 * 7, 10),
    )


def card_yardstick_network(units: int, device: torch.device) -> Tuple[nn.Module, Callable[[], Tensor]]:
    """A network like the other, wider, with so many images that every unit of a card is busy. As unchangeable."""
    model = _two_convolutions(32).to(device)
    images, labels = torch.randn(IMAGES_PER_UNIT * units, 1, 28, 28), torch.randint(0, 10, (IMAGES_PER_UNIT * units,))
    images, labels = images.to(device), labels.to(device)
    return model, lambda: nn.functional.cross_entropy(model(images), labels)


class TorchRuntime:
    name = "torch"

    def __init__(self) -> None:
        self._preloaded = False
        self._pool_started = False
        self._accelerator: Optional[TorchAccelerator] = None
        self._touched = False  # an accelerator does not survive a fork
        self._trained = False  # in this process

    def place(self, on: str) -> Processor:
        """The processor that everything is built on from now on."""
        if on == ON_CPU:
            self._accelerator = None
            return CPU
        if self._accelerator is None or self._accelerator.name != on:
            self._accelerator = find_accelerator(on)
            self._touched = self._touched or self._accelerator is not None
        return self._accelerator or CPU

    @property
    def _device(self) -> Union[str, torch.device]:
        return "cpu" if self._accelerator is None else self._accelerator.device

    def prepare(self, threads: int) -> None:
        torch.set_num_threads(threads)
        torch.set_flush_denormal(True)
        torch.manual_seed(SEED)
        self._pool_started, self._trained = self._pool_started or threads > 1, True

    def build(self, workload: Dict[str, Any], setup: TrainingSetup) -> Training:
        dtype = DTYPES[setup.dtype]
        use_tf32(setup.dtype)
        if "program" in workload and self._accelerator is None and setup.dtype == "float32":
            torch.set_flush_denormal(False)  # it stands for the user's own code
            program = Program(workload["program"])
            return training(program.trained, program.loss, setup.optimizer)
        if "layers" in workload:
            network = Network.from_json(workload["layers"])
            refuse_lacking(network, self.name, description_of(self.name))
            chain = build_chain(network, dtype, self._device)
            if setup.dtype in AUTOCAST:  # its parts are not timed one by one: they would lack the casts between them
                return precise_training(chain.trained, chain.loss, setup)
            return training(chain.trained, chain.loss, setup.optimizer, chain)
        torch.set_flush_denormal(False)  # users' own code runs as it does without Ampere, slow numbers included
        if workload.get("step"):
            return build_step(workload)
        model, loss_of = build_from_factory(workload, dtype, device=self._device)
        return precise_training(trainable(model), loss_of, setup)

    def yardstick(self) -> Training:
        if self._accelerator is None:
            model, loss_of = yardstick_network()
        else:
            model, loss_of = card_yardstick_network(self._accelerator.units, self._accelerator.device)
        return training(trainable(model), loss_of, "sgd")

    @property
    def trains_in_children(self) -> bool:
        """Autograd has a thread for each accelerator that is there, whatever it trains on, and no child has them."""
        return has_accelerator()

    def ready_to_fork(self, workload: Dict[str, Any], threads: int) -> bool:
        if self._touched or (self._trained and self.trains_in_children):
            return False
        # OpenMP's pool does not survive a fork: a child that needed it would hang. So only children have one.
        if threads > 1 and self._pool_started:
            return False
        torch.set_num_threads(1)
        if not self._preloaded:
            step = self.yardstick().step
            if not self.trains_in_children:
                step(), step()
            self._preloaded = True
        if "factory" in workload:
            find_factory(str(workload["factory"]))
            self._pool_started = self._pool_started or torch.get_num_threads() > 1  # the user's own code asked for it
        return threads == 1 or not self._pool_started


def precise_training(parameters: List[nn.Parameter], loss_of: Callable[[], Tensor], setup: TrainingSetup) -> Training:
    """A training step in the precision of the setup, as users write it."""
    if setup.dtype not in AUTOCAST:
        return training(parameters, loss_of, setup.optimizer)
    kind = setup.on.partition(":")[0]
    scaler = grad_scaler(kind) if AUTOCAST[setup.dtype] == torch.float16 and parameters else None
    return training(parameters, autocast(loss_of, kind, AUTOCAST[setup.dtype]), setup.optimizer, scaler=scaler)


def autocast(loss_of: Callable[[], Tensor], kind: str, dtype: torch.dtype) -> Callable[[], Tensor]:
    def loss() -> Tensor:
        with torch.autocast(kind, dtype=dtype):
            return loss_of()

    return loss


def grad_scaler(kind: str) -> Any:
    maker: Any = getattr(torch.amp, "GradScaler", None)  # since PyTorch 2.3
    return maker(kind) if maker else torch.cuda.amp.GradScaler()


def use_tf32(dtype: str) -> None:
    """Products and convolutions of an NVIDIA card in TF32, or not; for all other types as PyTorch has it by itself.

    By itself it is on for convolutions and off for products. PyTorch warns whoever looks, so nobody does without need.
    """
    products, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
    if dtype in TF32 and not _usual_tf32:
        _usual_tf32.extend((products.allow_tf32, convolutions.allow_tf32))
    if _usual_tf32:
        wanted = [TF32[dtype]] * 2 if dtype in TF32 else _usual_tf32
        products.allow_tf32, convolutions.allow_tf32 = wanted


_usual_tf32: List[bool] = []  # as it was before the first change; empty while there was none


def trainable(model: nn.Module) -> List[nn.Parameter]:
    return [p for p in model.parameters() if p.requires_grad]


def training(
    parameters: List[nn.Parameter],
    loss_of: Callable[[], Tensor],
    optimizer_name: str,
    chain: Optional[Chain] = None,
    scaler: Any = None,
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
            torch.autograd.backward(loss if scaler is None else scaler.scale(loss))
        if optimizer and scaler is not None:
            scaler.step(optimizer)
            scaler.update()
        elif optimizer:
            optimizer.step()
        seen(loss)

    parts = parts_of(chain, optimizer, seen) if chain is not None else None
    count = sum(p.numel() for p in parameters)
    return Training(step, lambda: float(last[0]), count, parts, weights=lambda: tuple(p.detach() for p in parameters))


create = TorchRuntime
