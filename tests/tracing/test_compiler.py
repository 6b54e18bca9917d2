"""Steps are followed without importing PyTorch's compiler, and with it where code needs it."""

import sys
from typing import Any

import pytest
import torch
from torch import nn

from ampere.tracing import compiler
from ampere.tracing.compiler import COMPILER, without_compiler
from ampere.tracing.memory import allocations_of
from ampere.tracing.trace import trace


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nobody had imported it in this process."""
    for part in ("", ".config", ".source"):
        monkeypatch.delitem(sys.modules, COMPILER + part, raising=False)
    monkeypatch.delitem(vars(torch), "_dynamo", raising=False)


def test_a_trace_and_its_memory_need_no_compiler(unloaded: None) -> None:
    model, inputs = nn.Sequential(nn.Linear(4, 4), nn.Hardtanh(), nn.Linear(4, 2)), torch.randn(3, 4)
    assert len(trace(model, inputs).layers) == 2
    assert allocations_of(model, (inputs,), "adam")
    assert COMPILER not in sys.modules


def test_what_needs_it_runs_again_with_it(monkeypatch: pytest.MonkeyPatch, unloaded: None) -> None:
    monkeypatch.setattr(compiler, "COMPILER", "colorsys")  # a small module in its place
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)

    def follow() -> Any:
        return sys.modules["colorsys"].rgb_to_hsv

    assert without_compiler(follow)(0, 0, 0) == (0.0, 0.0, 0)


def test_other_problems_are_raised_at_once(unloaded: None) -> None:
    tried = []

    def follow() -> None:
        tried.append(1)
        raise ValueError("no such model")

    with pytest.raises(ValueError, match="no such model"):
        without_compiler(follow)
    assert len(tried) == 1
    assert COMPILER not in sys.modules
