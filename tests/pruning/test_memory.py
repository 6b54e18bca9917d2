"""Memory as a second budget: what is pruned or compared fits, and what cannot is refused in one line."""

import pytest
import torch
from tests.synthetic import observed, random_chains, true_seconds
from torch import nn

import ampere
from ampere import Meter, Profile, TrainingSetup
from ampere.core.errors import UsageError


@pytest.fixture(scope="module")
def profile() -> Profile:
    seen = tuple(observed(n, true_seconds(n)) for n in random_chains(1, 30, depth=2))
    return Profile({"id": "synthetic"}, TrainingSetup(), Meter("synthetic", False), 1e-3, seen)


def model(width: int = 24) -> nn.Module:
    convs = [nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*convs, nn.Flatten(), nn.Linear(width * 256, 10))


IMAGES = torch.randn(64, 3, 16, 16)


def test_pruning_goes_on_until_the_result_fits(profile):
    before = ampere.estimate(model(), IMAGES, profile=profile)
    limit, budget = before.memory.interval[1] - 3e6, f"{950 * before.joules}J"
    pruned = ampere.prune(model(), IMAGES, budget, profile=profile, iterations=1000, memory=limit, check=False)
    assert 0.2 < pruned.share < 0.95
    assert pruned.memory.verdict == "fits"
    assert pruned.memory.interval[1] <= limit
    assert pruned.to_json()["memory"]["limit_bytes"] == limit


def test_pruning_that_cannot_fit_says_that_memory_is_the_reason(profile):
    with pytest.raises(UsageError, match=r"may still need \d+ MB of memory, more than 100 MB: give more memory"):
        ampere.prune(model(), IMAGES, "13%", profile=profile, memory="100MB", check=False)


def test_a_comparison_leaves_out_what_does_not_fit(profile):
    said: list[str] = []
    models = [(model(16), IMAGES), (model(24), IMAGES), (model(512), IMAGES)]
    found = ampere.compare(*models, profiles=[profile], memory="500MB", notice=said.append)
    assert len(found.models) == 2
    assert "left out" in said[0]
    with pytest.raises(UsageError, match="0 of 3 models fit into 100 MB"):
        ampere.compare(*models, profiles=[profile], memory="100MB")
