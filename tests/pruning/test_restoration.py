"""Energy-aware pruning: which channels go by what outputs lose, and outputs that least squares bring back."""

import copy
from random import Random

import numpy as np
import pytest
import torch
from torch import nn

import ampere
from ampere.pruning.restoration import removals, restored, some_batches
from ampere.pruning.strategies import STRATEGIES
from ampere.pruning.structure import find_groups, without
from ampere.pruning.widths import Problem


def narrowed(model, image, share=0.5):
    """A model without this share of each group's units, which units those are, and its groups."""
    groups = [g for g in find_groups(copy.deepcopy(model), image) if "5" not in g.name and g.name != "head"]
    removed = {g.name: list(range(int(g.width * share))) for g in groups}
    return without(model, groups, removed), groups, removed


def error(model, other, image):
    with torch.no_grad():
        return float(((model(image) - other(image)) ** 2).sum() / (model(image) ** 2).sum())


def test_outputs_come_back_on_batches_that_were_not_used(model, image):
    less, groups, removed = narrowed(model, image)
    batches = some_batches((torch.randn(24, 3, 14, 14, generator=torch.Generator().manual_seed(5)),))
    before = error(model, less, image)
    assert restored(model, less, groups, removed, batches) is less
    assert error(model, less, image) < 0.6 * before


def test_a_channel_that_another_one_repeats_is_replaced_by_it_entirely(image):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 6, 3, dilation=2))
    with torch.no_grad():
        model[0].weight[4:] = model[0].weight[:4]
        model[0].bias[4:] = model[0].bias[:4]
    [group] = [g for g in find_groups(copy.deepcopy(model), image) if g.name == "0"]
    less = without(model, [group], {"0": [4, 5, 6, 7]})
    assert error(model, less, image) > 0.1
    restored(model, less, [group], {"0": [4, 5, 6, 7]}, [(image,)])
    assert error(model, less, image) < 1e-4


def test_channels_are_judged_by_what_they_change_together(image):
    """Two channels that cancel each other change nothing, however large their weights are."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 5, 1), nn.Conv2d(5, 4, 1))
    with torch.no_grad():
        model[0].weight[1], model[0].bias[1] = 10 * model[0].weight[0], 10 * model[0].bias[0]
        model[1].weight[:, 1] = -0.1 * model[1].weight[:, 0]
    [group] = [g for g in find_groups(copy.deepcopy(model), image) if g.name == "0"]
    [removal] = removals(model, [group], [(image,)])
    assert sorted(removal.order) == [0, 1, 2, 3, 4]
    assert abs(removal.order.index(0) - removal.order.index(1)) == 1
    assert np.all(np.diff(removal.errors) >= 0)
    assert (removal.errors[0], removal.errors[-1]) == (0.0, pytest.approx(1.0))


def test_every_sort_of_tie_is_pruned_and_the_original_stays(tied, image, estimator):
    before = {name: value.clone() for name, value in tied.state_dict().items()}
    pruned = ampere.prune(tied, image, 0.7, estimator, "energy_aware")
    assert pruned.inside
    assert pruned.model(image).shape == (10, 10)
    assert pruned.model.training == tied.training
    assert all(torch.equal(value, tied.state_dict()[name]) for name, value in before.items())


def test_recurrent_layers_fall_back_on_importance(estimator):
    torch.manual_seed(0)

    class Reads(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.lstm, self.head = nn.Embedding(30, 16), nn.LSTM(16, 24, batch_first=True), nn.Linear(24, 5)

        def forward(self, x):
            return self.head(self.lstm(self.words(x))[0][:, -1])

    words = torch.randint(30, (4, 7))
    pruned = ampere.prune(Reads(), words, "97%", estimator, "energy_aware")
    assert pruned.model(words).shape == (4, 5)


def test_the_most_expensive_layer_goes_first_and_the_others_stay_where_that_is_enough():
    prices, importance = (1.0, 5.0, 0.5), [np.full(20, 0.05)] * 3

    def cost(widths):
        return sum(p * w for p, w in zip(prices, widths, strict=True))

    for saved, gone in ((5.0, [0, 1, 0]), (6.0, [1, 1, 0]), (6.5, [1, 1, 1]), (7.0, [0, 2, 0])):
        asked = Problem(importance, cost, cost((20, 20, 20)) - saved, Random(0))
        chosen = STRATEGIES["energy_aware"](asked)
        assert [len(chosen[group]) for group in range(3)] == gone


def digits():
    datasets = pytest.importorskip("sklearn.datasets")
    images, labels = datasets.load_digits(return_X_y=True)
    images, labels = torch.tensor(images / 16, dtype=torch.float32).reshape(-1, 1, 8, 8), torch.tensor(labels)
    return images, labels


def test_a_trained_model_keeps_more_of_its_accuracy_than_with_the_smallest_weights_removed(estimator):
    images, labels = digits()
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 48, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(48 * 4, 10),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(120):
        rows = slice(step % 12 * 100, step % 12 * 100 + 100)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images[rows]), labels[rows]).backward()
        optimizer.step()

    def accuracy(model):
        with torch.no_grad():
            return float((model(images[1200:]).argmax(1) == labels[1200:]).float().mean())

    batches = list(images[:1200].split(300))
    found = {
        strategy: ampere.prune(model, images[:20], "60%", estimator, strategy, calibration=batches)
        for strategy in ("energy_aware", "magnitude")
    }
    assert accuracy(model) > 0.85
    assert all(pruned.inside for pruned in found.values())
    assert accuracy(found["energy_aware"].model) > accuracy(model) - 0.1
    assert accuracy(found["energy_aware"].model) > accuracy(found["magnitude"].model) + 0.03
