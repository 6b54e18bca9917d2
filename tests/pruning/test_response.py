"""Layers by arithmetic are the layers of the narrowed model itself."""

from random import Random

import pytest
import torch
from torch import nn

from ampere.models.loading import load_model
from ampere.pruning.probing import probe
from ampere.pruning.structure import without
from ampere.tracing.trace import trace


def silent(*_):
    pass


def narrowed_both_ways(model, inputs, seed):
    network = trace(model, inputs)
    prunable = probe(model, inputs, network, (), silent)
    rng = Random(seed)
    widths = tuple(rng.randint(1, g.width) for g in prunable.groups)
    removed = {g.name: range(g.width - w) for g, w in zip(prunable.groups, widths, strict=True)}
    real = trace(without(prunable.model, prunable.groups, removed), inputs)
    return prunable.response.network(widths), real


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("family", ["lenet5", "har", "resnet"])
def test_families(family, seed):
    small = {"resnet": {"blocks": [1, 1], "widths": [8, 16], "batch": 2}, "har": {"channels": [16, 8], "batch": 2}}
    loaded = load_model(family, **small.get(family, {}))
    computed, real = narrowed_both_ways(loaded.model, loaded.inputs, seed)
    assert computed.layers == real.layers


def test_sums_concatenations_and_divided_convolutions(tied, image):
    computed, real = narrowed_both_ways(tied, (image,), 1)
    shapes = [[(x.kind, x.channels_in, x.channels_out) for x in n.layers] for n in (computed, real)]
    assert shapes[0] == shapes[1]


def test_probing_leaves_the_model_alone(tied, image):
    tied.train()
    tied.body.eval()
    before = {name: value.clone() for name, value in tied.state_dict().items()}
    prunable = probe(tied, (image,), trace(tied, image), (), silent)
    assert all(torch.equal(before[name], value) for name, value in tied.state_dict().items())
    assert (tied.training, tied.body.training) == (True, False)
    assert (prunable.model.training, prunable.model.body.training) == (True, False)


def test_the_output_stays_as_it_is(model, image):
    prunable = probe(model, (image,), trace(model, image), (), silent)
    assert [g.name for g in prunable.groups if g.name == "5"] == []
    assert prunable.fixed == ("5: its channels are the model's output",)


def test_what_breaks_when_narrower_stays_as_it_is(image):
    class Stubborn(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.head = nn.Conv2d(3, 8, 1), nn.Conv2d(8, 8, 1), nn.Linear(8, 4)

        def forward(self, x):
            return self.head(self.second(self.first(x)).mean((2, 3)).view(len(x), 8))

    prunable = probe(Stubborn(), (image,), trace(Stubborn(), image), (), silent)
    assert [g.name for g in prunable.groups] == ["first"]
    assert any("second" in line and "does not run" in line for line in prunable.fixed)
