"""Memory from the command line: what a model takes, which batch fits, and `--memory` as a second budget."""

from dataclasses import replace

import pytest
from tests.synthetic import observed, random_chains, true_seconds

from ampere.api.models import resolve
from ampere.core import Meter, TrainingSetup
from ampere.core.measurement import PEAK_BYTES
from ampere.storage import Profile

NET = """
import torch
from torch import nn

def build(width=16, batch=16):
    body = [nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 16, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*body, nn.Flatten(), nn.Linear(16 * 196, 10)), torch.randn(batch, 3, 14, 14)

def narrow():
    return build(8)

def huge():
    return build(256, 1024)
"""


@pytest.fixture
def with_profile(here, tmp_path):
    (tmp_path / "net.py").write_text(NET)
    seen = [observed(network, true_seconds(network)) for network in random_chains(1, 20, depth=2)]
    network = resolve(f"{tmp_path / 'net.py'}:build").network
    touch = observed(network, true_seconds(network))
    shown = replace(touch.measurement, allocator="system", conditions={PEAK_BYTES: 400e6})
    touches = (replace(touch, measurement=shown, purpose="touch"),) * 3
    known = Profile({"id": "synthetic"}, TrainingSetup(), Meter("synthetic", False), 1e-3, tuple(seen), touches=touches)
    known.save(tmp_path / "p.json")
    return lambda *words: here(*words, "--allow-other-device", "--profile", "p.json", "--quiet")


def test_memory_that_was_seen_is_said_beside_what_the_layers_say(with_profile):
    ran = with_profile("estimate", "net.py:build", "--memory", "440MB", "--largest-batch")
    said = " ".join(ran.out.split())
    assert ran.code == 0, ran.err
    assert "memory 400 MB at its peak" in said
    assert "fits into 440 MB" in said
    assert "400 MB measured while its own code was trained in 3 processes; " in said
    assert "by its layers alone" in said
    assert "largest batch" in said


def test_what_may_not_fit_is_left_out(here, with_profile):
    models = ("net.py:narrow", "net.py:build", "net.py:huge")
    compared = here("compare", *models, "--memory", "600MB", "--profile", "p.json", "--json")
    assert compared.code == 0, compared.err
    assert "net:huge may need" in compared.notices
    assert "net:huge" not in compared.out
    varied = ("--vary", "batch=16,1024", "--vary", "width=8,256", "--no-training", "--no-plot")
    found = with_profile("search", "net.py:build", "--memory", "600MB", "--budget", "1kJ", *varied, "--json")
    assert found.code == 0, found.err
    assert {"batch": 1024, "width": 256} not in [c["arguments"] for c in found.record["chosen"]]
    assert found.record["memory_bytes"] == 600e6
    pruned = with_profile("prune", "net.py:build", "--budget", "60%", "--memory", "200MB")
    assert pruned.code == 2
    assert "of memory, more than 200 MB: give more memory, or a smaller batch" in pruned.notices
