"""A pruned model of a user's own function, trained here by a worker that builds it with the same function."""

from dataclasses import replace

import pytest
from tests.described import described
from tests.synthetic import observed, random_chains, true_seconds

import ampere
from ampere.core import Meter, TrainingSetup
from ampere.pruning import checking
from ampere.storage import Profile

NET = """
import torch
from torch import nn

def bare(width=24):
    body = [nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 40, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*body, nn.Flatten(), nn.Linear(40 * 196, 10))

def with_input(width=24):
    return bare(width), torch.randn(10, 3, 14, 14)

class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = bare()

    def forward(self, x, scale):
        return self.body(x * scale)

def with_named_inputs():
    return Scaled(), {"x": torch.randn(10, 3, 14, 14), "scale": torch.ones(1)}
"""


@pytest.fixture
def here(monkeypatch):
    """A profile that says it is of this machine; little time for each check."""
    monkeypatch.setenv("AMPERE_METER", "cpu-time")
    monkeypatch.setattr(checking, "CHECK_SECONDS", 0.0)
    monkeypatch.setattr(checking, "ALL_SECONDS", 0.0)
    monkeypatch.setattr(checking, "CHECKS_AT_LEAST", 1)
    seen = [observed(network, true_seconds(network)) for network in random_chains(1, 40, depth=2)]
    found = described("local")
    own = tuple(replace(o, measurement=replace(o.measurement, meter=found.meter)) for o in seen)
    assert isinstance(found.meter, Meter)
    return Profile(found.identity, TrainingSetup(), found.meter, 1e-3, own)


@pytest.mark.parametrize(
    ("function", "more"),
    [("bare", {"input": "10x3x14x14", "width": 20}), ("with_input", {}), ("with_named_inputs", {})],
)
def test_what_any_sort_of_function_makes_is_checked_here(here, tmp_path, function, more):
    (tmp_path / "net.py").write_text(NET)
    loaded = ampere.load_model(f"{tmp_path}/net.py:{function}", **more)
    pruned = ampere.prune(loaded, loaded.inputs, "40%", here, check=True)
    assert pruned.measured.rounds >= checking.ROUNDS_AT_LEAST
    assert 0 < pruned.measured.joules_after < pruned.measured.joules_before
