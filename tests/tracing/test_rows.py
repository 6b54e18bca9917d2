"""Rows that are read and written by index, as in graph networks: traced as layers, trained from their description."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from ampere.core import Layer, Network, TrainingSetup, work
from ampere.core.kinds import group
from ampere.runtimes import find_runtime, installed
from ampere.runtimes.table import OURS
from ampere.tracing.trace import trace

NODES, EDGES, FEATURES, HIDDEN = 20, 60, 8, 16


class Sage(nn.Module):
    """GraphSAGE: each node reads its neighbours, and adds up what it read."""

    def __init__(self, spread: str) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(2 * FEATURES, HIDDEN), nn.Linear(2 * HIDDEN, 4)
        self.spread = spread

    def forward(self, x: Tensor, source: Tensor, target: Tensor) -> Tensor:
        x = self.first(torch.cat((x, self.neighbours(x, source, target)), 1)).relu()
        return self.second(torch.cat((x, self.neighbours(x, source, target)), 1))

    def neighbours(self, x: Tensor, source: Tensor, target: Tensor) -> Tensor:
        zeros = x.new_zeros(x.shape)
        if self.spread == "index_add":
            return zeros.index_add(0, target, x[source])
        if self.spread == "index_put":
            return zeros.index_put((target,), x.index_select(0, source), accumulate=True)
        wide = target[:, None].expand(-1, x.shape[1])
        return zeros.scatter_add(0, wide, x.gather(0, source[:, None].expand(-1, x.shape[1])))


def graph() -> tuple[Tensor, Tensor, Tensor]:
    ends = torch.randint(NODES, (2, EDGES))
    return torch.randn(NODES, FEATURES), ends[0], ends[1]


def rows_of(network: Network) -> list[Layer]:
    return [layer for layer in network.layers if layer.kind in ("gather", "scatter")]


@pytest.mark.parametrize("spread", ["index_add", "index_put"])
def test_a_graph_network_reads_and_adds_rows(spread: str) -> None:
    network = trace(Sage(spread), graph())
    kinds = [layer.kind for layer in network.layers if layer.kind != "nonparametric"]
    assert kinds == ["gather", "scatter", "linear"] * 2
    read, added = rows_of(network)[2:]
    how = {"indexed": True} if spread == "index_add" else {}
    assert (read.config, read.channels_in) == ({"rows_in": NODES, "rows_out": EDGES, **how}, HIDDEN)
    assert work(read) == work(replace(read, config={"rows_in": NODES, "rows_out": EDGES}))
    assert (added.config, added.channels_in) == ({"rows_in": EDGES, "rows_out": NODES}, HIDDEN)
    assert [layer.input_grad for layer in rows_of(network)] == [False, False, True, True]


def test_where_every_value_has_an_index_one_value_is_moved_at_once() -> None:
    read = rows_of(trace(Sage("scatter_add"), graph()))[2]
    assert (read.channels_in, read.config["rows_out"]) == (1, EDGES * HIDDEN)


def test_what_is_moved_is_counted_and_priced_by_itself() -> None:
    first, _, second, _ = rows_of(trace(Sage("index_add"), graph()))
    assert first.kind == group(first) == "gather"
    assert work(first).flops == 0
    assert work(first).values == EDGES * (2 * FEATURES + 2)
    assert work(second).values > 2 * work(first).values  # twice as wide, and with a backward
    assert work(second).launches == 3


class Picking(nn.Module):
    def __init__(self, pick) -> None:
        super().__init__()
        self.head, self.pick = nn.Linear(6, 6), pick

    def forward(self, x: Tensor) -> Tensor:
        return self.pick(self.head(x))


PICKS = {
    "along the second dimension": (lambda x: x.index_select(1, torch.tensor([0, 2])), 6, 5 * 2),
    "along the last": (lambda x: x[..., torch.tensor([0, 2])], 1, 5 * 4 * 2),
    "two indices": (lambda x: x[torch.tensor([0, 1]), torch.tensor([3, 3])], 6, 2),
    "take": (lambda x: x.take(torch.tensor([1, 5, 7])), 1, 3),
    "rows of an activation": (lambda x: nn.functional.embedding(torch.tensor([1, 3]), x[0]), 6, 2),
}


@pytest.mark.parametrize("name", PICKS)
def test_what_one_index_moves_in_one_piece_is_the_width(name: str) -> None:
    pick, width, rows = PICKS[name]
    [read] = rows_of(trace(Picking(pick), torch.randn(5, 4, 6)))
    assert (read.kind, read.channels_out, read.config["rows_out"], read.input_grad) == ("gather", width, rows, True)


def test_a_mask_is_an_index_too() -> None:
    [read] = rows_of(trace(Picking(lambda x: x[x[..., 0] > 0]), torch.randn(5, 4, 6)))
    assert (read.channels_out, read.config["rows_in"]) == (6, 20)


def test_whole_numbers_and_parameters_begin_no_such_layer() -> None:
    class Biased(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.head = nn.Parameter(torch.ones(9, 6)), nn.Linear(6, 2)

        def forward(self, x: Tensor, places: Tensor) -> Tensor:
            return self.head(x + self.table[places[torch.tensor([0, 1])]])

    network = trace(Biased(), (torch.randn(2, 6), torch.tensor([1, 3, 5])))
    assert rows_of(network) == []


@pytest.mark.parametrize("runtime", ["torch", "jax"])
@pytest.mark.parametrize("spread", ["index_add", "scatter_add"])
def test_a_described_graph_network_trains(runtime: str, spread: str) -> None:
    if runtime not in installed():
        pytest.skip(OURS[runtime].install)
    network = trace(Sage(spread), graph())
    training = find_runtime(runtime).build({"layers": network.to_json()}, TrainingSetup(runtime, optimizer="adam"))
    training.step()
    first = training.last_loss()
    for _ in range(60):
        training.step()
    assert training.last_loss() < first
    assert training.parameters == sum(work(layer).parameters for layer in network.layers)


def test_mnn_refuses_it_by_name() -> None:
    assert OURS["mnn"].lacks(Layer("gather", {"rows_in": 3, "rows_out": 3}, 4, 4)) == "no gather"


def test_a_flax_graph_network_reads_and_adds_rows() -> None:
    jax = pytest.importorskip("jax.numpy", reason=OURS["jax"].install)
    from flax import nnx

    from ampere.tracing.jax.trace import trace as trace_flax

    class Flax(nnx.Module):
        def __init__(self) -> None:
            self.first, self.second = (nnx.Linear(a, b, rngs=nnx.Rngs(0)) for a, b in ((FEATURES, HIDDEN), (HIDDEN, 4)))

        def __call__(self, x, source, target):  # type: ignore[no-untyped-def]
            x = self.first(x)
            return self.second(jax.zeros_like(x).at[target].add(x[source]))

    ends = jax.zeros(EDGES, int)
    network = trace_flax(Flax(), (jax.zeros((NODES, FEATURES)), ends, ends))
    assert [layer.kind for layer in network.layers if layer.kind != "nonparametric"] == [
        *("linear", "gather", "scatter", "linear")
    ]
    assert [(x.channels_in, x.config["rows_out"]) for x in rows_of(network)] == [(HIDDEN, EDGES), (HIDDEN, NODES)]
