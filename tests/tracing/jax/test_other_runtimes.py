"""One description of layers for all: models of one library, estimated with what was learnt of another."""

import os
import re
from pathlib import Path

import pytest
from tests.processes import run_command

from ampere import estimate, load_model, prune
from ampere.api import resolve
from ampere.cli import main
from ampere.core.errors import ModelError
from ampere.devices import Device
from ampere.profiling import measuring
from ampere.profiling.capabilities import built_by, itself
from ampere.profiling.plain_processes import Effort
from ampere.profiling.sources import source_of
from ampere.runtimes.table import installed
from ampere.storage.profile import Profile

CLASSIFIERS = {
    "flax_model.py": """
import jax.numpy as jnp
from flax import nnx

class Classifier(nnx.Module):
    def __init__(self, rngs):
        self.conv = nnx.Conv(1, 8, (5, 5), rngs=rngs)
        self.head = nnx.Linear(8 * 14 * 14, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.max_pool(nnx.relu(self.conv(x)), (2, 2), (2, 2))
        return self.head(x.reshape(x.shape[0], -1))

def build():
    return Classifier(nnx.Rngs(0)), jnp.zeros((10, 28, 28, 1))

def inputless():
    return Classifier(nnx.Rngs(0))

def without_array():
    return Classifier(nnx.Rngs(0)), "a picture"
""",
    "torch_model.py": """
import torch
from torch import nn

def build():
    layers = [nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 14 * 14, 10)]
    return nn.Sequential(*layers), torch.zeros(10, 1, 28, 28)
""",
}

LOOP = """
import jax
import jax.numpy as jnp
from flax import nnx


class Loop(nnx.Module):
    def __init__(self, rngs):
        self.gate = nnx.Linear(6, 6, rngs=rngs)

    def __call__(self, x):
        kernel = self.gate.kernel[...]
        return jax.lax.scan(lambda h, row: (jnp.tanh(h @ kernel + row), None), x[:, 0], jnp.swapaxes(x, 0, 1))[0]


def build():
    return Loop(nnx.Rngs(0)), jnp.zeros((2, 7, 6))
"""


@pytest.fixture(scope="module", name="place")
def a_place(tmp_path_factory):
    """Two files with the same model, and a profile of a few real seconds of MNN."""
    missing = {"jax", "mnn"} - set(installed())
    if missing:
        pytest.skip(f"{', '.join(sorted(missing))} not installed: pip install 'ampere-energy[jax,mnn]'")
    folder = tmp_path_factory.mktemp("runtimes")
    for name, text in CLASSIFIERS.items():
        (folder / name).write_text(text)
    made = ampere(folder, "profile", "lenet5", "--runtime", "mnn", "--seconds", 5, "--out", "mnn.json")
    assert made.code == 0, made.err
    return folder


def ampere(folder, *words):
    return run_command([*map(str, words)], folder, dict(os.environ))


def test_a_torch_model_and_the_same_in_flax_cost_the_same_in_mnn(place):
    torch, flax = (
        estimate(f"{place}/{file}:build", runtime="mnn", profile=place / "mnn.json", touch=0) for file in CLASSIFIERS
    )
    assert torch.joules > 0
    assert flax.joules == pytest.approx(torch.joules, rel=0.05)
    assert [layer.kind for layer in flax.layers] == [layer.kind for layer in torch.layers]
    assert not flax.unprofiled


def test_a_profile_of_one_runtime_is_not_taken_for_another(place):
    ran = ampere(place, "estimate", "torch_model.py:build", "--runtime", "jax", "--profile", "mnn.json")
    assert ran.code != 0
    assert "mnn" in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("function", "says"), [("inputless", "--input 10x28x28x1"), ("without_array", "no array as input")]
)
def test_a_flax_model_without_input_is_refused(place, function, says):
    with pytest.raises(ModelError, match=says):
        load_model(f"{place}/flax_model.py:{function}")


def test_a_flax_model_is_given_its_input_in_words(place):
    network = resolve(load_model(f"{place}/flax_model.py:inputless", "10x28x28x1")).network
    assert [layer.kind for layer in network.layers] == ["conv", "linear"]


def test_channels_first_are_refused_with_the_order_that_flax_has(place):
    with pytest.raises(ModelError, match=r"on an input of 10x1x28x28 raised .*: flax has channels last"):
        assert resolve(load_model(f"{place}/flax_model.py:inputless", "10x1x28x28")).network


def test_a_class_that_needs_arguments_is_not_taken_for_a_function(place):
    with pytest.raises(ModelError, match=r"Classifier needs rngs.*def build\(\): return Classifier\(\.\.\.\)"):
        load_model(f"{place}/flax_model.py:Classifier")


def test_a_flax_model_is_not_pruned(place):
    loaded = load_model(f"{place}/flax_model.py:build")
    with pytest.raises(ModelError, match="only PyTorch models"):
        prune(loaded.model, loaded.inputs, 0.5, Profile.load(place / "mnn.json"))


def test_the_example_on_the_page_is_traced(tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "runtimes.md").read_text()
    (tmp_path / "model.py").write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1])
    network = resolve(load_model(f"{tmp_path}/model.py:build", batch=4)).network
    assert [(layer.name, layer.kind) for layer in network.layers] == [("conv", "conv"), ("head", "linear")]
    assert network.batch == 4


def test_a_loop_of_the_users_is_refused_by_name_where_it_would_be_built_from_layers(tmp_path):
    (tmp_path / "loop.py").write_text(LOOP)
    source = source_of(load_model(f"{tmp_path}/loop.py:build"))
    with pytest.raises(ModelError, match=r"scan of loop:build cannot be trained from a description .*ampere measure"):
        built_by(Device(), "jax", source)
    with pytest.raises(ModelError, match="cannot be trained from a description"):
        built_by(Device(), "torch", source)
    assert itself(Device(), "jax", source).workload["factory"] == f"{tmp_path}/loop.py:build"


@pytest.mark.parametrize(("tokens", "high"), [("jnp.arange(12).reshape(3, 4)", 12), ("jnp.zeros((3, 4), int)", None)])
def test_whole_numbers_are_drawn_as_large_as_the_examples(tmp_path, tokens, high):
    (tmp_path / "words.py").write_text(
        "import jax.numpy as jnp\nfrom flax import nnx\n\n"
        f"def build():\n    return nnx.Embed(20, 4, rngs=nnx.Rngs(0)), {tokens}\n"
    )
    subject = itself(Device(), "jax", source_of(load_model(f"{tmp_path}/words.py:build"))).workload
    assert [spec["high"] for spec in subject["inputs"]] == [high]


@pytest.mark.parametrize(("runtime", "own"), [("jax", True), ("mnn", False)])
def test_a_flax_model_is_measured_by_its_own_code_where_that_runs(place, runtime, own, monkeypatch, capsys):
    one_process = Effort(1.0, fewest=1, most=1)  # which compiles the model and the yardstick
    monkeypatch.setattr(measuring, "Effort", lambda seconds: one_process)
    assert main(["measure", f"{place}/flax_model.py:build", "--runtime", runtime, "--seconds", "1"]) == 0
    assert ("from the description of its layers, not by its own code" in capsys.readouterr().out) != own
