"""The memory of a step on shapes alone: the same storages at the same times as in a real step."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from ampere.core.allocations import ACTIVATIONS, GRADIENTS, OPTIMIZER, PARAMETERS, WORKSPACE, alive_at, peak
from ampere.core.errors import ModelError
from ampere.runtimes.plain_script import training_loss
from ampere.tracing.memory import Follower, allocations_of, allocations_of_network
from ampere.tracing.trace import trace
from ampere.tracing.workspaces import LARGE_PACKED, LSTM_STATES, PACKED, WRITTEN_STATES


class Blocks(nn.Module):
    def __init__(self, recompute: bool) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64)) for _ in range(6))
        self.recompute = recompute

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        return x


def cnn() -> nn.Module:
    body = [nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.MaxPool2d(2)]
    return nn.Sequential(*body, nn.Flatten(), nn.Linear(16 * 64, 10))


MODELS = [
    (cnn, (torch.randn(8, 3, 16, 16),)),
    (lambda: Blocks(False), (torch.randn(32, 64),)),
    (lambda: Blocks(True), (torch.randn(32, 64),)),
    (lambda: nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), (torch.randn(4, 12, 32),)),
]


def of_tensors(found) -> int:
    return peak([each for each in found if each.part != WORKSPACE])[0]


def real_peak(model, inputs, optimizer) -> int:
    """Bytes of storages at their peak in real steps: no value is made up."""
    follower = Follower()
    for tensor in [*model.parameters(), *model.buffers(), *inputs]:
        follower.hold(tensor, PARAMETERS)
    with follower:
        for _ in range(3):
            optimizer.zero_grad()
            training_loss(model(*inputs)).backward()
            optimizer.step()
    return of_tensors(follower.allocations)


@pytest.mark.parametrize(("build", "inputs"), MODELS, ids=["cnn", "mlp", "checkpointed", "transformer"])
def test_shapes_alone_show_what_real_steps_take(build, inputs):
    model = build()
    found = allocations_of(model, inputs, "adam")
    assert of_tensors(found) == pytest.approx(real_peak(model, inputs, torch.optim.Adam(model.parameters())), rel=0.01)


def parts_at_the_end(found) -> dict:
    end = max(each.begins for each in found)
    parts: dict = {}
    for each in alive_at(found, end):
        parts[each.part] = parts.get(each.part, 0) + each.bytes
    return parts


def test_parameters_gradients_and_state_are_counted_once():
    model = nn.Linear(100, 50)
    parts = parts_at_the_end(allocations_of(model, (torch.randn(4, 100),), "adam"))
    size = 4 * (100 * 50 + 50)
    assert parts[PARAMETERS] == parts[GRADIENTS] == size
    assert parts[OPTIMIZER] == pytest.approx(2 * size, abs=64)


def test_frozen_layers_have_no_gradients_and_shared_weights_count_once():
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))
    model[0].requires_grad_(False)
    parts = parts_at_the_end(allocations_of(model, (torch.randn(4, 64),), "sgd"))
    assert parts[GRADIENTS] * 2 == parts[PARAMETERS]
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))
    model[1].weight = model[0].weight
    assert parts_at_the_end(allocations_of(model, (torch.randn(4, 64),)))[PARAMETERS] == 4 * (64 * 64 + 128)


def test_recomputation_keeps_fewer_activations():
    inputs = (torch.randn(256, 64),)

    def kept(recompute: bool) -> int:
        return sum(e.bytes for e in allocations_of(Blocks(recompute), inputs) if e.part == ACTIVATIONS)

    assert kept(True) < 0.5 * kept(False)


def test_activations_grow_with_the_batch_and_parameters_do_not():
    model, inputs = cnn(), (torch.randn(4, 3, 16, 16),)
    small, large = allocations_of(model, inputs), allocations_of(model, inputs, batch=40)

    def of(found, part) -> int:
        return sum(each.bytes for each in found if each.part == part)

    assert of(large, PARAMETERS) == of(small, PARAMETERS)
    assert of(large, ACTIVATIONS) == pytest.approx(10 * of(small, ACTIVATIONS), rel=0.05)


def test_half_the_bytes_a_value_in_bfloat16():
    model, inputs = Blocks(False), (torch.randn(64, 64),)
    half = of_tensors(allocations_of(model, inputs, dtype="bfloat16"))
    assert half == pytest.approx(0.5 * of_tensors(allocations_of(model, inputs)), rel=0.05)


def test_matrix_products_keep_what_they_pack_into():
    def kept(size: int) -> int:
        found = allocations_of(nn.Linear(size, size), (torch.randn(256, size),))
        return sum(each.bytes for each in found if each.part == WORKSPACE and each.ends is None)

    assert kept(16) == PACKED  # once, and not in each step
    assert kept(512) == LARGE_PACKED
    assert not any(e.bytes == PACKED for e in allocations_of(nn.Conv2d(3, 4, 3), (torch.randn(2, 3, 8, 8),)))


def test_pages_that_a_long_lstm_never_writes_are_not_counted():
    def kept(length: int) -> float:
        found = allocations_of(nn.LSTM(64, 64), (torch.randn(length, 32, 64),))
        return max(each.bytes for each in found) / (length + 1)

    assert kept(500) == pytest.approx(kept(50) * WRITTEN_STATES / LSTM_STATES)


def test_a_network_that_is_only_described_takes_nearly_as_much():
    model, inputs = cnn(), (torch.randn(32, 3, 16, 16),)
    own, described = allocations_of(model, inputs), allocations_of_network(trace(model, inputs))
    assert of_tensors(described) == pytest.approx(of_tensors(own), rel=0.25)


def test_the_model_and_its_random_numbers_stay_as_they_are():
    model, state = cnn(), torch.random.get_rng_state()
    before = [p.clone() for p in model.parameters()]
    allocations_of(model, (torch.randn(2, 3, 16, 16, generator=torch.Generator()),))
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(p.grad is None for p in model.parameters())
    loss = training_loss(model(torch.randn(2, 3, 16, 16)))  # its labels are real, and not those of the shapes
    assert torch.isfinite(loss).item()


def test_code_that_looks_at_values_is_followed_with_values_at_its_own_batch_only():
    class Looks(nn.Linear):
        def forward(self, x):
            return super().forward(x if x.sum().item() > 0 else -x)

    model, x = Looks(64, 64), torch.ones(2, 64)
    found, on_shapes = allocations_of(model, (x,), "momentum"), allocations_of(nn.Linear(64, 64), (x,), "momentum")
    assert of_tensors(found) == pytest.approx(of_tensors(on_shapes), rel=0.02)
    with pytest.raises(ModelError, match="cannot be followed on shapes alone"):
        allocations_of(model, (x,), batch=4)


def test_tensors_in_objects_that_a_model_holds_are_followed(caplog):
    class Prior(nn.Linear):
        def __init__(self):
            super().__init__(4, 4)
            self.prior = torch.distributions.Normal(torch.zeros(4), torch.ones(4), validate_args=False)

        def forward(self, x):
            return -self.prior.log_prob(super().forward(x)).mean()

    assert peak(allocations_of(Prior(), torch.randn(2, 4)))[0] > 0
    assert not caplog.records
