"""Tracing leaves the user's model, and his random numbers, as they were."""

import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from ampere.tracing.program import program_of
from ampere.tracing.trace import trace

from .zoo import ZOO
from .zoo_edges import Line, linear


def state(model: nn.Module) -> list[Any]:
    tensors = [t.clone() for t in (*model.parameters(), *model.buffers())]
    flags = [m.training for m in model.modules()] + [p.requires_grad for p in model.parameters()]
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()]
    return [*tensors, flags, hooks, [p.grad for p in model.parameters()]]


def same(a: Any, b: Any) -> bool:
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


@pytest.mark.parametrize("name", ["resnet18", "lstm_deep", "encoder", "hf_gpt2", "frozen", "deciding", "fourier"])
def test_model_is_as_before(name: str) -> None:
    model, inputs = ZOO[name]()
    model.eval()
    before, modules = state(model), list(model.modules())
    trace(model, inputs)
    assert all(same(a, b) for a, b in zip(before, state(model), strict=True))
    assert all(a is b for a, b in zip(modules, model.modules(), strict=True))


def test_gradients_stay() -> None:
    model = nn.Linear(3, 2)
    model(torch.ones(1, 3)).sum().backward()
    grad = model.weight.grad
    assert grad is not None
    kept = grad.clone()
    trace(model, torch.empty(4, 3))
    assert model.weight.grad is grad
    assert torch.equal(grad, kept)


@pytest.mark.parametrize("name", ["har", "deciding"])
def test_random_numbers_stay(name: str) -> None:
    torch.manual_seed(5)
    random.seed(5)
    model, inputs = ZOO[name]()
    torch.manual_seed(6)
    expected = torch.rand(1), random.random()
    torch.manual_seed(6)
    random.seed(5)
    trace(model, inputs)
    assert (torch.rand(1), random.random()) == expected


def test_gradient_mode_is_neither_needed_nor_changed() -> None:
    with torch.no_grad():
        network = trace(*ZOO["lenet5"]())
        assert not torch.is_grad_enabled()
    assert network.layers[0].trainable


def test_model_on_meta() -> None:
    model, inputs = ZOO["resnet18"]()
    expected = trace(model, inputs)
    assert trace(model.to("meta"), inputs.to("meta")) == expected


def test_model_that_holds_what_cannot_be_copied() -> None:
    model, inputs = linear(lambda m, x: m.linear(x), lock=threading.Lock())
    assert len(trace(model, inputs).layers) == 1


class Hooked(nn.Module):
    """It takes features from inside, and calls a layer through a function around itself."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8))
        self.last, self.kept = nn.Linear(8, 2), dict[str, torch.Tensor]()
        self.body[1].register_forward_hook(self.keep("middle"))
        self.head = lambda x: self.last(x)

    def keep(self, name: str) -> Any:
        def hook(module: nn.Module, args: Any, output: torch.Tensor) -> None:
            self.kept[name] = output

        return hook

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x) + self.kept["middle"])


def test_hooks_and_functions_around_the_model_work_on_its_copy() -> None:
    model = Hooked()
    network = trace(model, torch.ones(3, 4))
    assert network.notes == ()
    assert [(layer.name, layer.trainable) for layer in network.layers] == [
        ("body.0", True),
        ("body.2", True),
        ("last", True),
    ]
    assert model.kept == {}


def test_chance_in_the_model_gives_the_same_network_each_time() -> None:
    def line(model: Line, x: torch.Tensor) -> torch.Tensor:
        hidden = model.linear(x)
        return hidden if random.random() < 0.5 else torch.tanh(hidden)

    model, inputs = linear(line)
    assert len({trace(model, inputs) for _ in range(6)}) == 1


class Skipping(nn.Module):
    """Blocks of which half are left out at random, as LayerDrop does, and a layer that is never used."""

    def __init__(self, chance: Callable[[], float]) -> None:
        super().__init__()
        self.blocks, self.never = nn.ModuleList(nn.Linear(8, 8) for _ in range(8)), nn.Linear(8, 8)
        self.last, self.chance = nn.Linear(8, 2), chance

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            if self.chance() < 0.5:
                x = block(x)
        out: torch.Tensor = self.last(x)
        return out


CHANCES = {"python": random.random, "torch": lambda: float(torch.rand(())), "numpy": lambda: float(np.random.rand())}


@pytest.mark.parametrize("generator", CHANCES)
def test_a_model_that_skips_layers_at_random_is_traced_as_a_typical_step(generator: str) -> None:
    model, x = Skipping(CHANCES[generator]), torch.randn(4, 8)
    network = trace(model, x)
    assert network == trace(model, x)
    linear_layers = sum(layer.kind == "linear" for layer in network.layers)
    assert 4 <= linear_layers <= 6
    assert network.notes[0] == "no gradient reaches never.weight and 1 more: not counted as trained"
    assert network.notes[1].startswith("it skips layers at random: of 8 steps with ")
    program = program_of(model, x)
    assert program is not None
    assert sum(name.startswith("addmm") for name, *_ in program["calls"]) == linear_layers


def test_model_in_evaluation_is_traced_as_in_training() -> None:
    model, inputs = ZOO["har"]()
    assert trace(model.eval(), inputs) == trace(model.train(), inputs)


def test_frozen_statistics_stay_frozen() -> None:
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5), nn.Flatten(), nn.Linear(16, 2))
    model[2].eval()
    network = trace(model, torch.empty(3, 1, 4, 4))
    assert network.layers[1].trailing == ()
