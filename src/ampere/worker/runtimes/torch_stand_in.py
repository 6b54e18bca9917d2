"""Until the loss and inputs of the tracing part are here."""

from typing import Any, Dict

import torch
from torch import Tensor


def training_loss(output: Any) -> Tensor:
    if isinstance(output, (tuple, list)):
        output = output[0]
    if output.dim() == 2:
        labels = torch.arange(output.shape[0]) % output.shape[1]
        return torch.nn.functional.cross_entropy(output, labels)
    return output.float().pow(2).mean()


def make_input(spec: Dict[str, Any]) -> Tensor:
    if str(spec.get("dtype", "float32")).startswith("int"):
        return torch.randint(0, int(spec.get("high") or 2), tuple(spec["shape"]))
    return torch.randn(tuple(spec["shape"]))
