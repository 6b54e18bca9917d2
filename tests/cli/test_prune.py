"""`ampere prune` from words to files, on a profile of a device that is written down."""

import pytest
from tests.synthetic import observed, random_chains, true_seconds

from ampere.core import Meter, TrainingSetup
from ampere.storage import Profile

NET = """
import torch
from torch import nn

def build(batch=10):
    torch.manual_seed(0)
    body = [nn.Conv2d(3, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 40, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*body, nn.Flatten(), nn.Linear(40 * 196, 10)), torch.randn(batch, 3, 14, 14)
"""


@pytest.fixture
def prune(here, tmp_path):
    (tmp_path / "net.py").write_text(NET)
    seen = tuple(observed(network, true_seconds(network)) for network in random_chains(1, 40, depth=2))
    Profile({"id": "synthetic"}, TrainingSetup(), Meter("synthetic", False), 1e-3, seen).save(tmp_path / "p.json")
    return lambda *words: here("prune", "net.py:build", "--profile", "p.json", "--allow-other-device", *words)


def test_a_table_shows_each_layer_before_and_after(prune):
    ran = prune("--budget", "50%", "--quiet")
    assert ran.code == 0, ran.err
    assert "net:build: " in ran.out.splitlines()[0]
    assert "24 - 40" in ran.said
    assert "5: its channels are the model's output" in " ".join(ran.out.split())
    assert "modelled by synthetic, not measured" in ran.said
    assert "not measured the profile is of another device" in ran.said
    assert max(map(len, ran.out.splitlines())) <= 120


def test_json_reports_the_same(prune):
    record = prune("--budget", "50%", "--json", "--quiet").record
    assert record["inside_budget"]
    assert 0.4 < record["share"] <= 0.5
    assert [layer["name"] for layer in record["layers"]] == ["0", "2", "5"]
    assert record["measured"] is None
    assert "another device" in record["unmeasured"]


def test_confidence_is_kept(prune):
    record = prune("--budget", "50%", "--confidence", "95%", "--json", "--quiet").record
    assert record["after"]["joules_per_iteration"] < record["bound_joules"] <= record["budget_joules"]


def test_the_model_is_saved_and_found_again(prune, tmp_path):
    import torch

    from ampere.models.loading import load_model
    from ampere.pruning.saving import load_pruned

    record = prune("--budget", "60%", "--out", "small.json", "--json", "--quiet").record
    assert record["written"] == ["small.json", "small.safetensors"]
    original = load_model(f"{tmp_path}/net.py:build")
    small = load_pruned(tmp_path / "small.json", original.model)
    assert small[0].out_channels == record["widths"][-1]["after"]
    assert small(*original.inputs).shape == torch.Size([10, 10])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--budget", "0.01%"], ["cannot be met", "at the widths"]),
        (["--budget", "5kJ"], ["already holds"]),
        (["--budget", "much"], ["budget 'much'", "50%"]),
        (["--budget", "10%", "--battery", "15Wh"], ["--iterations"]),
        (["--budget", "50%", "--confidence", "20%"], ["--confidence", "50%"]),
        (["--budget", "50%", "--out", "small.bin"], ["pruned.pt2 or pruned.json"]),
        (["--budget", "50%", "--keep", "nose"], ["no layer 'nose'"]),
        (["--budget", "50%", "--strategy", "luck"], ["--strategy", "magnitude"]),
        ([], ["--budget"]),
    ],
)
def test_what_is_wrong_is_said_in_one_line(prune, refused, words, says):
    refused(prune(*words, "--quiet"), 2, *says)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--budget", "much"], 2, ["budget 'much'"]),
        (["--budget", "100%"], 2, ["leaves nothing to prune"]),
        (["--budget", "10%", "--battery", "15Wh"], 2, ["--iterations"]),
        (["--budget", "50%", "--keep", "nose"], 2, ["no layer 'nose'"]),
        (["--budget", "50%", "--out", "net.py/small.pt2"], 7, ["net.py/small.pt2", "not a folder"]),
    ],
)
def test_what_is_wrong_is_said_before_any_profiling(here, prune, refused, words, code, says):
    """This home has no profile, which would be the next thing to say."""
    refused(here("prune", "net.py:build", "--no-profiling", "--quiet", *words), code, *says)


def test_all_of_a_battery_is_a_budget(prune, refused):
    words = ["--budget", "100%", "--battery", "1Wh", "--iterations"]
    assert prune(*words, "220000", "--json", "--quiet").record["budget_joules"] == pytest.approx(3600 / 220_000)
    refused(prune("--budget", "120%", *words[2:], "220000", "--quiet"), 2, "more than it holds")


def test_a_profile_of_another_device_is_refused(here, prune, refused):
    refused(
        here("prune", "net.py:build", "--profile", "p.json", "--budget", "50%", "--quiet"), 4, "--allow-other-device"
    )
