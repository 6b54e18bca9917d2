"""Small models of every shape that channels can be tied in, and a device whose costs fall in steps."""

import pytest
import torch
from tests.synthetic import observed, random_chains, true_seconds
from torch import nn

from ampere.core import Meter, TrainingSetup
from ampere.estimation.estimator import Estimator
from ampere.storage import Profile


def plain() -> nn.Module:
    body = [nn.Conv2d(3, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 40, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*body, nn.Flatten(), nn.Linear(40 * 196, 10))


class Tied(nn.Module):
    """A residual sum, a concatenation, a depthwise and a grouped convolution, two sorts of norm."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.body = nn.Sequential(nn.Conv2d(16, 12, 1), nn.ReLU(), nn.Conv2d(12, 16, 3, padding=1))
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.side = nn.Conv2d(3, 8, 1)
        self.fuse = nn.Conv2d(24, 24, 1)
        self.mixed = nn.Conv2d(24, 32, 3, padding=1, groups=4)
        self.norm = nn.GroupNorm(4, 32)
        self.head = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        stem = self.stem(x)
        both = torch.cat([self.depthwise(stem + self.body(stem)), self.side(x)], 1)
        out: torch.Tensor = self.head(self.norm(self.mixed(self.fuse(both))).relu().mean((2, 3)))
        return out


@pytest.fixture
def image():
    return torch.randn(10, 3, 14, 14, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return plain()


@pytest.fixture
def tied():
    torch.manual_seed(0)
    return Tied()


@pytest.fixture(scope="session")
def profile():
    networks = random_chains(1, 40, depth=2)
    seen = tuple(observed(network, true_seconds(network)) for network in networks)
    return Profile({"id": "synthetic"}, TrainingSetup(), Meter("synthetic", False), 1e-3, seen)


@pytest.fixture(scope="session")
def estimator(profile):
    return Estimator(profile)
