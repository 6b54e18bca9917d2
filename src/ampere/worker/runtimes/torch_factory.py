"""PyTorch models by their own code."""

from typing import Any, Callable, Dict, List, Tuple

import torch
from torch import Tensor, nn

from ...network.inputs import InputSpec
from .factory import failed, find_factory
from .torch_inputs import tensors_of
from .torch_loss import training_loss

Arguments = Tuple[List[Any], Dict[str, Any]]


def build_from_factory(
    subject: Dict[str, Any], dtype: torch.dtype, made_ready: Callable[[nn.Module], Any] = lambda model: model
) -> Tuple[nn.Module, Callable[[], Tensor]]:
    """The model, or the part of it at `path`, and its loss on the inputs of the request or of the factory."""
    made = find_factory(str(subject["factory"]))(**(subject.get("arguments") or {}))
    model, example = made if isinstance(made, tuple) else (made, None)
    if not isinstance(model, nn.Module):
        raise failed("{} made no torch.nn.Module".format(subject["factory"]))
    if subject.get("path"):
        model, example = model.get_submodule(subject["path"]), None
    model = model.to(dtype).train()
    positional, named = _arguments(subject, example, dtype)
    ready = made_ready(model)
    return model, lambda: training_loss(ready(*positional, **named))


def _arguments(subject: Dict[str, Any], example: Any, dtype: torch.dtype) -> Arguments:
    specs = subject.get("inputs")
    if specs is None and example is None:
        raise failed("{} tells no example inputs; give their shapes".format(subject["factory"]))
    inputs = tensors_of(_specs(specs)) if specs is not None else example
    if isinstance(inputs, dict):
        return [], {name: _ready(value, dtype, subject) for name, value in inputs.items()}
    positional = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    return [_ready(value, dtype, subject) for value in positional], {}


def _specs(records: Any) -> Any:
    if isinstance(records, dict):
        return {name: InputSpec.from_json(record) for name, record in records.items()}
    return [InputSpec.from_json(record) for record in records]


def _ready(value: Any, dtype: torch.dtype, subject: Dict[str, Any]) -> Any:
    if not isinstance(value, Tensor) or not value.is_floating_point():
        return value
    # A part in the middle of a model passes gradients on to what is before it.
    return value.detach().to(dtype).requires_grad_(bool(subject.get("input_grad", False)))
