"""Training as its own code does it: whole steps, and mixed precision."""

import sys

import pytest
import torch

from ampere.core import TrainingSetup
from ampere.core.errors import WorkerError
from ampere.runtimes.torch_runtime import TorchRuntime

FILE = """
import torch
from torch import nn

seen = []

def accumulating():
    net, x, calls = nn.Linear(8, 4), torch.randn(6, 8), []
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    def step():
        calls.append(None)
        loss = net(x).square().mean()
        loss.backward()
        if len(calls) % 2 == 0:
            sgd.step()
            sgd.zero_grad()
        return loss
    seen.append(calls)
    return step

def silent():
    net, x = nn.Linear(8, 4), torch.randn(6, 8)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    def step():
        sgd.zero_grad()
        net(x).square().mean().backward()
        sgd.step()
    return step

def stuck():
    net, x = nn.Linear(8, 4), torch.randn(6, 8)
    return lambda: net(x).square().mean().backward()

class Seeing(nn.Linear):
    def forward(self, x):
        out = super().forward(x)
        seen.append(out.dtype)
        return out

def model():
    return Seeing(8, 4), torch.randn(6, 8)
"""


@pytest.fixture
def build(tmp_path):
    path = tmp_path / "job.py"
    path.write_text(FILE)
    runtime = TorchRuntime()
    runtime.prepare(1)

    def built(name, setup=TrainingSetup(), **more):  # noqa: B008 - a frozen record
        return runtime.build({"factory": f"{path}:{name}", **more}, setup)

    return built


@pytest.fixture
def seen(build, tmp_path):
    """What the file noted while it ran."""
    return lambda: sys.modules[f"ampere_workload_{(tmp_path / 'job.py').resolve()}"].seen


def test_a_step_is_as_many_calls_as_an_update_takes(build, seen):
    training = build("accumulating", step=True)
    [calls] = seen()
    before = len(calls)
    training.step()
    first = training.last_loss()
    for _ in range(5):
        training.step()
    assert len(calls) - before == 6 * 2
    assert training.last_loss() < first
    assert training.parameters == 8 * 4 + 4


def test_a_step_without_a_loss_shows_that_its_weights_are_finite(build):
    training = build("silent", step=True)
    training.step()
    assert training.last_loss() == pytest.approx(float(training.weights()[0].abs().mean()))


def test_a_step_that_does_not_step_is_refused(build):
    with pytest.raises(WorkerError, match="updated no weights in 64 calls"):
        build("stuck", step=True)


def test_what_builds_a_model_is_no_step(build):
    with pytest.raises(WorkerError, match="makes no training step"):
        build("model", step=True)


@pytest.mark.parametrize(("dtype", "product"), [("float32", torch.float32), ("autocast_bfloat16", torch.bfloat16)])
def test_autocast_multiplies_in_bfloat16_and_keeps_its_weights(build, seen, dtype, product):
    training = build("model", TrainingSetup(dtype=dtype))
    training.step()
    assert seen() == [product]
    assert {weight.dtype for weight in training.weights()} == {torch.float32}


@pytest.mark.parametrize("workload", [{"name": "model"}, {"name": "accumulating", "step": True}])
def test_the_smallest_numbers_are_kept_in_own_code_and_flushed_in_layers(build, workload):
    tiny = torch.tensor(2e-38)
    assert (tiny / 10).item() == 0
    build(**workload)
    assert (tiny / 10).item() > 0
