"""The Lion optimizer, which PyTorch lacks: Chen et al., Symbolic Discovery of Optimization Algorithms (2023)."""

from typing import Any, Callable, Iterable, Optional, Tuple

import torch


class Lion(torch.optim.Optimizer):
    """Steps of one size, in the direction of the sign of an average of gradients; one value kept for each parameter."""

    def __init__(
        self, parameters: Iterable[Any], lr: float = 1e-4, betas: Tuple[float, float] = (0.9, 0.99), decay: float = 0.0
    ) -> None:
        super().__init__(parameters, {"lr": lr, "betas": betas, "decay": decay})

    @torch.no_grad()
    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._update(weight, group["lr"], group["decay"], *group["betas"])
        return loss

    def _update(self, weight: torch.Tensor, rate: float, decay: float, fast: float, slow: float) -> None:
        state, gradient = self.state[weight], weight.grad
        assert gradient is not None
        if not state:
            state["average"] = torch.zeros_like(weight)
        average = state["average"]
        direction = average.lerp(gradient, 1 - fast).sign_()
        weight.mul_(1 - rate * decay).add_(direction, alpha=-rate)
        average.lerp_(gradient, 1 - slow)
