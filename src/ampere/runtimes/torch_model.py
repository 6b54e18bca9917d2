"""PyTorch models by their own code: their inputs and how they are called."""

import inspect
import warnings
from typing import Any, Callable, Dict, List, Tuple, Union

import torch
from torch import Tensor, nn

from ampere.core.network import InputSpec

from .plain_script import called_with, drawn, fill_lazy, training_loss
from .user_code import failed, find_factory

Specs = Union[List[InputSpec], Dict[str, InputSpec]]
Arguments = Tuple[List[Any], Dict[str, Any]]


def tensors_of(specs: Any, device: str = "cpu") -> Any:
    """A list or dict of tensors, like the specs; values are drawn without touching the user's random numbers."""
    if isinstance(specs, InputSpec):
        return _tensor(specs, device)
    if isinstance(specs, dict):
        return {name: tensors_of(spec, device) for name, spec in specs.items()}
    return [tensors_of(spec, device) for spec in specs]


def _tensor(spec: InputSpec, device: str) -> Any:
    if device == "meta":
        return torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device=device)
    return drawn(spec.shape, spec.dtype, spec.high).to(device)


def specs_of(inputs: Any) -> Specs:
    """The specs of example tensors: a list, or a dict with the same names."""
    if isinstance(inputs, dict):
        return {str(name): _spec(tensor) for name, tensor in inputs.items()}
    if isinstance(inputs, (list, tuple)):
        return [_spec(tensor) for tensor in inputs]
    return [_spec(inputs)]


def _spec(tensor: Any) -> InputSpec:
    if isinstance(tensor, InputSpec):
        return tensor
    high = None
    if not (tensor.is_floating_point() or tensor.is_complex() or tensor.is_meta) and tensor.numel():
        high = int(tensor.max()) + 1
    return InputSpec(tuple(tensor.shape), str(tensor.dtype).replace("torch.", ""), high)


class TrainingStep(nn.Module):
    """A LightningModule that has no forward: what it computes is the loss of its training_step."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.takes_number = len(inspect.signature(model.training_step).parameters) > 1  # type: ignore[arg-type]
        # Without a trainer nothing is logged, which Lightning would say at every step.
        warnings.filterwarnings("ignore", message=".*self.log.*")

    def forward(self, *positional: Any, **named: Any) -> Any:
        batch = named or (positional[0] if len(positional) == 1 else positional)
        step: Any = self.model.training_step
        made = step(batch, 0) if self.takes_number else step(batch)
        return {"loss": made} if isinstance(made, Tensor) else made


def called(model: nn.Module, inputs: Any) -> nn.Module:
    """What is called with the inputs: the model, or its training step where only that takes them."""
    if not callable(getattr(model, "training_step", None)):
        return model
    maker = next(kind for kind in type(model).__mro__ if "forward" in vars(kind))
    own_forward = maker is not nn.Module and maker.__name__ != "LightningModule"
    return model if own_forward and _takes(model.forward, inputs) else TrainingStep(model)


def _takes(function: Callable[..., Any], inputs: Any) -> bool:
    """Whether a function can be called with these inputs: a batch of images with their labels may be one too many."""
    args, kwargs = called_with(tuple(inputs) if isinstance(inputs, list) else inputs)
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def build_from_factory(
    workload: Dict[str, Any],
    dtype: torch.dtype,
    made_ready: Callable[[nn.Module], Any] = lambda model: model,
    device: Union[str, torch.device] = "cpu",
) -> Tuple[nn.Module, Callable[[], Tensor]]:
    """The model, or the part of it at `path`, and its loss on the inputs of the request or of the factory."""
    if workload.get("step"):
        raise failed("{} does a whole training step, which only torch trains, as it is".format(workload["factory"]))
    made = find_factory(str(workload["factory"]))(**(workload.get("arguments") or {}))
    model, example = made if isinstance(made, tuple) else (made, None)
    if not isinstance(model, nn.Module):
        raise failed("{} made no torch.nn.Module".format(workload["factory"]))
    if workload.get("path"):
        model, example = model.get_submodule(workload["path"]), None
    model = model.to(device, dtype).train()
    positional, named = _arguments(workload, example, dtype, device)
    whole = called(model, named or positional)
    fill_lazy(whole, positional, named)
    ready = made_ready(whole)
    return model, lambda: training_loss(ready(*positional, **named))


def _arguments(
    workload: Dict[str, Any], example: Any, dtype: torch.dtype, device: Union[str, torch.device]
) -> Arguments:
    specs = workload.get("inputs")
    if specs is None and example is None:
        raise failed("{} returns no example inputs: give their shapes".format(workload["factory"]))
    inputs = tensors_of(_specs(specs)) if specs is not None else example
    if isinstance(inputs, dict):
        return [], {name: _ready(value, dtype, workload, device) for name, value in inputs.items()}
    positional = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    return [_ready(value, dtype, workload, device) for value in positional], {}


def _specs(records: Any) -> Any:
    if isinstance(records, dict):
        return {name: InputSpec.from_json(record) for name, record in records.items()}
    return [InputSpec.from_json(record) for record in records]


def _ready(value: Any, dtype: torch.dtype, workload: Dict[str, Any], device: Union[str, torch.device]) -> Any:
    if not isinstance(value, Tensor):
        return value
    if not value.is_floating_point():
        return value.to(device)
    # A part in the middle of a model passes gradients on to what is before it.
    return value.detach().to(device, dtype).requires_grad_(bool(workload.get("input_grad", False)))
