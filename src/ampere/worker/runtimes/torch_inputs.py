"""Tensors from what is known of a model's inputs, and what is known from tensors."""

from typing import Any, Dict, List, Union

import torch

from ...network.inputs import InputSpec

Specs = Union[List[InputSpec], Dict[str, InputSpec]]


def tensors_of(specs: Any, device: str = "cpu") -> Any:
    """A list or dict of tensors, like the specs; values are drawn without touching the user's random numbers."""
    if isinstance(specs, InputSpec):
        return _tensor(specs, device)
    if isinstance(specs, dict):
        return {name: tensors_of(spec, device) for name, spec in specs.items()}
    return [tensors_of(spec, device) for spec in specs]


def _tensor(spec: InputSpec, device: str) -> Any:
    dtype = getattr(torch, spec.dtype)
    if device == "meta":
        return torch.empty(spec.shape, dtype=dtype, device=device)
    generator = torch.Generator().manual_seed(0)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(spec.shape, generator=generator, dtype=dtype).to(device)
    high = 2 if spec.high is None else spec.high
    return torch.randint(high, spec.shape, generator=generator).to(dtype).to(device)


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
