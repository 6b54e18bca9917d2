"""Simple modules that replace those that torch-pruning does not follow, while channels are traced.

    recurrent layer          ->  linear layer from its inputs to its outputs
    multi-head attention     ->  norm of query, key and value together: their widths are one

Which channels go together is found on the substitute. They are removed from the module itself, in all gates and heads:
from attention, the same channel of every head.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

Remove = Callable[[Any, list[int]], Any]
Remover = Callable[[str], Remove]  # by the name of torch-pruning's handler


def substituted(model: Any) -> dict[str, Remover]:
    """Puts substitutes into a copy of the model; by the path of each, what removes channels from the module itself."""
    from torch import nn

    found: dict[str, Remover] = {}
    for path, module in list(model.named_modules()):
        if not path or not needs_substitute(module):
            continue
        recurrent = isinstance(module, nn.RNNBase)
        home, _, name = path.rpartition(".")
        setattr(model.get_submodule(home), name, _stage()(module, _linear(module) if recurrent else _norm(module)))
        found[f"{path}.substitute"] = _of_recurrent if recurrent else _of_attention
    return found


def needs_substitute(module: Any) -> bool:
    """Whether it is a recurrent layer in one direction, or attention whose query, key and value have one width."""
    from torch import nn

    if isinstance(module, nn.RNNBase):
        return not module.bidirectional and not module.proj_size
    return isinstance(module, nn.MultiheadAttention) and module.in_proj_weight is not None


def _of_recurrent(handler: str) -> Remove:
    return read if handler == "prune_in_channels" else hidden


def _of_attention(handler: str) -> Remove:
    return attended


@cache
def _stage() -> Any:
    """The class is made when first needed: torch is not imported before."""
    import torch
    from torch import nn

    class Stage(nn.Module):
        """Replaces a module, and has its attributes."""

        def __init__(self, real: nn.Module, substitute: nn.Module) -> None:
            super().__init__()
            self.substitute = substitute
            self.__dict__["real"] = real  # not a part of this one

        def __getattr__(self, name: str) -> Any:
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.__dict__["real"], name)

        def forward(self, x: torch.Tensor, *more: Any, **named: Any) -> Any:
            real = self.__dict__["real"]
            sequence = 1 if real.batch_first and x.dim() == 3 else 0
            if isinstance(real, nn.RNNBase):
                out = self.substitute(x)
                last = out.select(sequence, -1)[None]
                return out, (last, last) if isinstance(real, nn.LSTM) else last
            others = [o for o in (*more[:2], named.get("key"), named.get("value")) if o is not None and o is not x]
            return self.substitute(sum((o.mean(sequence, keepdim=True) for o in others), x)), None

    return Stage


def _linear(module: Any) -> Any:
    """A linear layer whose weights sum up those of all gates, so that importance can be computed from them."""
    import torch
    from torch import nn

    linear, size = nn.Linear(module.input_size, module.hidden_size, bias=False), module.hidden_size
    with torch.no_grad():
        read = module.weight_ih_l0.detach().reshape(-1, size, module.input_size).square().sum(0)
        kept = module.weight_hh_l0.detach().reshape(-1, size, size).square().sum((0, 2))
        linear.weight.copy_((read * (1 + kept / read.sum(1).clamp_min(1e-30))[:, None]).sqrt())
    return linear


def _norm(module: Any) -> Any:
    import torch
    from torch import nn

    norm = nn.LayerNorm(module.embed_dim)
    with torch.no_grad():
        weighed = module.in_proj_weight.detach().square().sum(0) + module.out_proj.weight.detach().square().sum(1)
        norm.weight.copy_(weighed.sqrt())
    norm.num_groups = module.num_heads
    return norm


def hidden(module: Any, channels: list[int]) -> Any:
    """Removes units from a recurrent layer: from every gate, and from what the next step and the next layer read."""
    import torch

    size = module.hidden_size
    kept = torch.tensor([c for c in range(size) if c not in set(channels)])
    for name in list(module._flat_weights_names):
        old = getattr(module, name)
        gates = old.shape[0] // size
        new = old.detach()[torch.cat([kept + gate * size for gate in range(gates)])]
        if name.startswith("weight_hh") or (name.startswith("weight_ih") and not name.endswith("_l0")):
            new = new[:, kept]
        setattr(module, name, torch.nn.Parameter(new.clone(), old.requires_grad))
    module.hidden_size = len(kept)
    return module


def read(module: Any, channels: list[int]) -> Any:
    """Removes input features from a recurrent layer."""
    import torch

    kept = torch.tensor([c for c in range(module.input_size) if c not in set(channels)])
    old = module.weight_ih_l0
    module.weight_ih_l0 = torch.nn.Parameter(old.detach()[:, kept].clone(), old.requires_grad)
    module.input_size = len(kept)
    return module


def attended(module: Any, channels: list[int]) -> Any:
    from torch_pruning.pruner.function import MultiheadAttentionPruner

    return MultiheadAttentionPruner().prune_out_channels(module, channels)
