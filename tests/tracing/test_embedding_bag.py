"""nn.EmbeddingBag: traced as a layer of its own, and trained from its description."""

import pytest
import torch
from torch import Tensor, nn

from ampere.core import Layer, TrainingSetup, work
from ampere.runtimes import find_runtime, installed
from ampere.runtimes.table import OURS
from ampere.tracing.trace import trace


class Words(nn.Module):
    def __init__(self, mode: str) -> None:
        super().__init__()
        self.words, self.head = nn.EmbeddingBag(50, 12, mode=mode), nn.Linear(12, 3)

    def forward(self, tokens: Tensor, starts: Tensor) -> Tensor:
        return self.head(self.words(tokens, starts))


def bag(mode: str) -> Layer:
    network = trace(Words(mode), (torch.randint(50, (20,)), torch.tensor([0, 3, 10, 11])))
    assert [layer.kind for layer in network.layers] == ["embedding_bag", "linear"]
    assert network.notes == ()
    return network.layers[0]


@pytest.mark.parametrize(("mode", "flags"), [("sum", {}), ("mean", {"mean": True}), ("max", {"largest": True})])
def test_it_is_traced_as_one_layer(mode: str, flags: dict[str, bool]) -> None:
    layer = bag(mode)
    assert layer.config == {"tokens": 20, "bags": 4, **flags}
    assert (layer.channels_in, layer.channels_out, layer.name) == (50, 12, "words")
    assert (layer.trainable, layer.input_grad) == (True, False)


def test_its_work_is_the_rows_it_reads_and_the_table_it_trains() -> None:
    asked = work(bag("sum"))
    assert (asked.flops, asked.parameters, asked.parameter_tensors) == (0, 50 * 12, 1)
    assert asked.values == 2 * (20 + 4) * 12 + 50 * 12


def test_bags_of_one_length_need_no_starts() -> None:
    model = nn.Sequential(nn.EmbeddingBag(50, 12), nn.Linear(12, 3))
    assert trace(model, torch.randint(50, (4, 6))).layers[-2].config == {"tokens": 24, "bags": 4, "mean": True}


@pytest.mark.parametrize("runtime", ["torch", "jax"])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_its_description_trains(runtime: str, mode: str) -> None:
    if runtime not in installed():
        pytest.skip(OURS[runtime].install)
    network = trace(Words(mode), (torch.randint(50, (20,)), torch.tensor([0, 3, 10, 11])))
    training = find_runtime(runtime).build({"layers": network.to_json()}, TrainingSetup(runtime, optimizer="adam"))
    training.step()
    first = training.last_loss()
    for _ in range(60):
        training.step()
    assert training.last_loss() < first
    assert training.parameters == 50 * 12 + 12 * 3 + 3


def test_mnn_refuses_it_by_name() -> None:
    assert OURS["mnn"].lacks(bag("sum")) == "no embedding_bag"
