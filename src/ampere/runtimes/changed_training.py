"""A user's model trained with a change that may make it cheaper: memory format, optimizer, precision or compiler."""

from typing import Any, Callable, Dict

import torch
from torch import Tensor, nn

from ampere.core import TrainingSetup
from ampere.core.setup import CPU

from .runtime import Training
from .torch_model import build_from_factory
from .torch_runtime import DTYPES, autocast, trainable, training


def build_changed(workload: Dict[str, Any], setup: TrainingSetup, changes: Dict[str, Any]) -> Training:
    """`changes` may name `channels_last`, `compile`, `autocast` and arguments of the `optimizer`."""

    def ready(model: nn.Module) -> Callable[..., Any]:
        compiled: Any = torch.compile(model) if changes.get("compile") else model
        return _reading_channels_last(compiled) if changes.get("channels_last") else compiled

    device = "cpu" if setup.on == CPU else torch.device(setup.on)
    model, loss_of = build_from_factory(workload, DTYPES[setup.dtype], ready, device)
    if changes.get("channels_last"):
        convert: Any = model.to  # whose types leave the format out
        convert(memory_format=torch.channels_last)
    if changes.get("autocast"):
        loss_of = autocast(loss_of, setup.on.partition(":")[0], torch.bfloat16)
    return training(trainable(model), loss_of, setup.optimizer, **dict(changes.get("optimizer") or {}))


def _reading_channels_last(model: Callable[..., Any]) -> Callable[..., Any]:
    """The model called with images in that format: they are converted in every step, as a user's loop would."""

    def called(*positional: Any, **named: Any) -> Any:
        return model(*map(_channels_last, positional), **{name: _channels_last(x) for name, x in named.items()})

    return called


def _channels_last(value: Any) -> Any:
    images = isinstance(value, Tensor) and value.dim() == 4
    return value.contiguous(memory_format=torch.channels_last) if images else value
