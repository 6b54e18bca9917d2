import copy

import pytest
import torch
from torch import nn

from ampere.pruning.structure import find_groups, without
from ampere.tracing.trace import trace


def test_what_is_added_together_is_narrowed_together(tied, image):
    groups = {g.name: g for g in find_groups(copy.deepcopy(tied), (image,))}
    residual = next(g for g in groups.values() if "stem.0" in g.paths and "body.2" in g.paths)
    assert {"stem.1", "depthwise", "body.0", "fuse"} <= residual.paths


def test_a_unit_of_a_divided_convolution_is_one_channel_of_each_part(tied, image):
    mixed = next(g for g in find_groups(copy.deepcopy(tied), (image,)) if g.name == "mixed")
    assert mixed.width == 32 // 4
    assert mixed.members[0].channels[1] == (1, 9, 17, 25)


def test_importance_is_the_share_of_squared_weights(model, image):
    with torch.no_grad():
        model[0].weight[7] *= 100
    first = next(g for g in find_groups(copy.deepcopy(model), (image,)) if g.name == "0")
    assert first.importance.sum() == pytest.approx(1)
    assert first.importance.argmax() == 7


@pytest.mark.parametrize("share", [0.25, 0.5, 0.9])
def test_every_group_at_once_still_runs_and_trains(tied, image, share):
    groups = [g for g in find_groups(copy.deepcopy(tied), (image,)) if g.name != "head"]
    narrow = without(tied, groups, {g.name: range(int(share * g.width)) for g in groups})
    narrow.train()
    narrow(image).square().mean().backward()
    assert narrow(image).shape == tied(image).shape
    assert sum(p.numel() for p in narrow.parameters()) < sum(p.numel() for p in tied.parameters())
    assert trace(narrow, image).layers


def test_the_channels_that_stay_keep_their_weights(model, image):
    groups = find_groups(copy.deepcopy(model), (image,))
    narrow = without(model, groups, {"0": [0, 5]})
    kept = [c for c in range(24) if c not in (0, 5)]
    assert torch.equal(narrow[0].weight, model[0].weight[kept])
    assert torch.equal(narrow[2].weight, model[2].weight[:, kept])


def test_a_channel_that_says_nothing_is_not_missed(model, image):
    with torch.no_grad():
        model[0].weight[3], model[0].bias[3] = 0, 0
    narrow = without(model, find_groups(copy.deepcopy(model), (image,)), {"0": [3]})
    assert torch.allclose(narrow(image), model(image), atol=1e-5)


def test_frozen_stays_frozen(model, image):
    model[0].requires_grad_(False)
    groups = find_groups(copy.deepcopy(model), (image,))
    narrow = without(model, groups, {"0": [0]})
    assert not narrow[0].weight.requires_grad
    assert narrow[2].weight.requires_grad


def test_channels_that_lie_across_the_parts_of_a_convolution_are_an_obstacle(image):
    class Across(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = nn.Conv2d(3, 16, 1), nn.Conv2d(3, 8, 1)
            self.mixed = nn.Conv2d(24, 8, 1, groups=4)

        def forward(self, x):
            return self.mixed(torch.cat([self.left(x), self.right(x)], 1)).mean((2, 3))

    groups = {g.name: g for g in find_groups(Across(), (image,))}
    assert groups["left"].obstacle == "its channels lie across the parts of mixed"
