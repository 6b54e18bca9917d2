from itertools import pairwise
from random import Random

import pytest
import torch
from tests.synthetic import chain

from ampere.core import KINDS, Network, TrainingSetup
from ampere.core.network import with_loss
from ampere.core.wiring import wire
from ampere.models import load_model
from ampere.profiling.experiment import of_layers, slices
from ampere.profiling.sources import ModelSource, narrow, source_of
from ampere.runtimes import find_runtime


def test_narrower_networks_keep_what_goes_in_and_comes_out():
    original = chain(3, 32, 64, 32)
    for seed in range(20):
        found = narrow(original, Random(seed))
        assert found.layers[0].channels_in == 3
        assert found.layers[-1].channels_out == 10
        assert all(1 <= a.channels_out <= b.channels_out for a, b in zip(found.layers, original.layers, strict=True))


def test_equal_widths_stay_equal_and_a_flattened_one_follows():
    found = narrow(chain(3, 32, 64, 32), Random(1))
    first, second, third, head = found.layers
    assert first.channels_out == second.channels_in == third.channels_out
    assert head.channels_in == 196 * third.channels_out


def test_widths_stay_multiples_of_the_groups_of_all_their_layers(tmp_path):
    (tmp_path / "grouped.py").write_text(
        "import torch\nfrom torch import nn\n"
        "def build():\n"
        "    return nn.Sequential(\n"
        "        nn.Conv2d(3, 48, 3), nn.GroupNorm(8, 48), nn.ReLU(), nn.Conv2d(48, 48, 3, groups=6), nn.ReLU(),\n"
        "        nn.Conv2d(48, 32, 3), nn.GroupNorm(32, 32), nn.Flatten(), nn.Linear(32 * 36, 10)\n"
        "    ), torch.zeros(2, 3, 12, 12)\n"
    )
    runtime, seen = find_runtime("torch"), set()
    for seed in range(8):
        narrower = source_of(load_model(f"{tmp_path}/grouped.py:build")).sample(Random(seed))
        widths = [(layer.channels_in, layer.channels_out) for layer in narrower.network.layers]
        assert all(made == read for (_, made), (read, _) in pairwise(widths[:-1]))
        assert all(width % 24 == 0 for width in widths[1])
        runtime.build(narrower.workload, TrainingSetup()).step()
        seen.add(widths[0])
    assert seen == {(3, 24), (3, 48)}


def test_slices_are_short_and_trainable():
    for experiment in slices(chain(3, 8, 8, 8, 8), Random(0), 50):
        assert 1 <= len(experiment.network.layers) <= 3
        assert experiment.purpose == ("layer" if len(experiment.network.layers) == 1 else "variant")


def test_a_variant_is_described_with_its_loss_and_built_without():
    layers = chain(3, 8).layers[:1]
    experiment = of_layers(layers, 10)
    assert experiment.network.layers == with_loss(layers)
    assert Network.from_json(experiment.workload["layers"]).layers == layers


@pytest.mark.parametrize("family", ["resnet", "transformer"])
def test_a_model_with_other_arguments_is_a_source_of_its_own(family):
    loaded = load_model(family, batch=4)
    source = source_of(loaded)
    assert isinstance(source, ModelSource)
    narrower = source.sample(Random(3))
    assert all(layer.kind in KINDS for layer in narrower.network.layers)
    assert wire(narrower.network)


def test_opaque_modules_are_trained_alone_with_the_inputs_that_were_seen(tmp_path):
    (tmp_path / "spectral.py").write_text(
        "import torch\nfrom torch import nn\n"
        "class Spectral(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.mix = nn.Linear(9, 9)\n"
        "    def forward(self, x):\n        return self.mix(torch.fft.rfft(x.double()).abs().float())\n"
        "def build():\n    return nn.Sequential(nn.Linear(16, 16), Spectral(), nn.Linear(9, 2)), torch.randn(4, 16)\n"
    )
    (alone,) = source_of(load_model(f"{tmp_path}/spectral.py:build")).opaque()
    assert alone.purpose == "opaque"
    assert alone.workload["path"] == "1"
    assert alone.workload["inputs"][0]["shape"] == [4, 16]


def test_a_live_model_is_trained_from_its_program_and_its_likes_from_their_layers():
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    source = source_of(load_model(model, torch.zeros(4, 8)))
    original = source.original()
    assert set(original.workload) == {"layers", "program"}
    assert set(source.sample(Random(1)).workload) == {"layers"}
    assert source.opaque() == []
    find_runtime("torch").build(original.workload, TrainingSetup()).step()


def test_a_live_model_of_nothing_but_experts_has_something_to_train():
    """Their product is no layer with weights, and its factor is what learns."""

    class Experts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = torch.nn.Parameter(torch.randn(3, 4, 5))

        def forward(self, x):
            return torch.bmm(x, self.weights)

    original = source_of(load_model(Experts(), torch.randn(3, 2, 4))).original()
    assert find_runtime("torch").build(original.workload, TrainingSetup()).parameters == 60


def test_of_a_live_model_only_layers_that_a_worker_can_build_are_trained():
    class Spectral(torch.nn.Module):
        def forward(self, x):
            return torch.fft.rfft(x.double()).abs()

    source = source_of(load_model(torch.nn.Sequential(torch.nn.Linear(8, 8), Spectral()), torch.zeros(4, 8)))
    assert [layer.kind for layer in source.original().network.layers] == ["linear"]
