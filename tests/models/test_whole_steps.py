"""A function that does a whole training step is recognised by what it does; one that does not is one line."""

import re

import pytest

from ampere.core.errors import AmpereError, ModelError, UsageError
from ampere.models import load_model

torch = pytest.importorskip("torch")

FILE = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
x, y = torch.randn(6, 8), torch.randn(6, 1)
calls = 0

def train_step():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss

def without_a_loss():
    train_step()

def every_third():
    global calls
    calls += 1
    nn.functional.mse_loss(model(x), y).backward()
    if calls % 3 == 0:
        optimizer.step()
        optimizer.zero_grad()

def by_hand():
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None
    return float(loss)

def made(width=16):
    net = nn.Linear(8, width)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    def step():
        sgd.zero_grad()
        net(x).square().mean().backward()
        sgd.step()
    return step

def with_state():
    net = nn.Linear(8, 4)
    return update, {"net": net, "sgd": torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)}

def update(net, sgd):
    sgd.zero_grad()
    net(x).square().mean().backward()
    sgd.step()

critic = nn.Linear(8, 1)
judges = {"critic": torch.optim.RMSprop(critic.parameters(), lr=1e-3)}

def judge():
    judges["critic"].zero_grad()
    critic(x).mean().backward()
    judges["critic"].step()

def critic_and_every_fifth():
    global calls
    calls += 1
    judge()
    if calls % 5 == 0:
        train_step()

def one_of_two():
    judge()
    if calls < 0:
        train_step()

def only_backward():
    nn.functional.mse_loss(model(x), y).backward()

def only_update():
    optimizer.zero_grad()
    optimizer.step()

def returns_no_step():
    return lambda: 3.0

def nothing():
    model(x)

def whole_training():
    for _ in range(1000):
        train_step()

def with_a_new_model():
    update(**with_state()[1])

def by_data():
    nn.functional.mse_loss(model(x), y).backward()
    for p in model.parameters():
        p.data.sub_(0.01 * p.grad)
        p.grad = None

def raising():
    train_step()
    raise ValueError("no more data")
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "job.py"
    path.write_text(FILE)
    return path


@pytest.mark.parametrize("name", ["train_step", "without_a_loss"])
def test_a_function_that_trains_is_a_step(file, name):
    loaded = load_model(f"{file}:{name}")
    assert (loaded.step.calls, loaded.step.batch, loaded.optimizer) == (1, 6, "adamw")
    assert list(loaded.step.models) == ["model"]
    assert sum(p.numel() for p in loaded.step.updated) == 8 * 16 + 16 + 16 + 1
    assert loaded.factory == f"{file}:{name}"


def test_an_update_may_take_several_calls(file):
    assert load_model(f"{file}:every_third").step.calls == 3


def test_a_step_lasts_until_each_optimizer_has_updated_its_weights(file):
    step = load_model(f"{file}:critic_and_every_fifth").step
    assert (step.calls, step.updates, list(step.models)) == (5, 6, ["critic", "model"])


def test_an_optimizer_that_never_steps_is_not_waited_for(file):
    step = load_model(f"{file}:one_of_two").step
    assert (step.calls, list(step.models)) == (1, ["critic"])


@pytest.mark.parametrize("name", ["by_hand", "by_data"])
def test_weights_may_be_updated_by_hand(file, name):
    loaded = load_model(f"{file}:{name}")
    assert (loaded.step.calls, loaded.step.optimizers, loaded.optimizer) == (1, [], None)
    assert len(loaded.step.updated) == 4


def test_a_function_may_make_the_step(file):
    loaded = load_model(f"{file}:made", width=5)
    assert (loaded.optimizer, list(loaded.step.models)) == ("sgd", ["net"])
    assert sum(p.numel() for p in loaded.step.updated) == 8 * 5 + 5


def test_a_step_may_come_with_its_state(file):
    loaded = load_model(f"{file}:with_state")
    assert (loaded.optimizer, list(loaded.step.models)) == ("momentum", ["net"])


def test_a_live_function_is_a_step_as_well(file):
    net = torch.nn.Linear(3, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)

    def step():
        sgd.zero_grad()
        net(torch.ones(4, 3)).sum().backward()
        sgd.step()

    loaded = load_model(step)
    assert (loaded.name, loaded.step.batch, loaded.factory) == ("step", 4, None)


FAILURES = [
    ("only_backward", "calls backward, but updated no weights in 64 calls: call optimizer.step"),
    ("only_update", r"calls optimizer.step\(\) without a gradient: call loss.backward"),
    ("returns_no_step", "trains nothing: it calls neither backward nor optimizer.step"),
    ("nothing", "returned NoneType, not a model, and trained nothing"),
    ("with_a_new_model", "makes its models anew at each call: make them once"),
    ("whole_training", "updated weights 100 times in one call: name a function that does a single step"),
    ("raising", r"ValueError: no more data \(job.py"),
    ("update", r"update needs net and sgd.* return update, \(net,\) for a training step"),
]


@pytest.mark.parametrize(("name", "expected"), FAILURES, ids=[f[0] for f in FAILURES])
def test_what_is_no_step_is_one_line(file, name, expected):
    with pytest.raises(AmpereError) as caught:
        load_model(f"{file}:{name}")
    assert type(caught.value) is ModelError
    assert re.search(expected, str(caught.value))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("given", [{"input": "4x8"}, {"batch": 3}])
def test_a_step_has_its_own_inputs(file, given):
    with pytest.raises(UsageError, match="inputs of its own: leave out --"):
        load_model(f"{file}:train_step", **given)


def test_nothing_is_left_in_the_library(file):
    from torch.nn.modules import module
    from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

    load_model(f"{file}:train_step")
    left = (module._global_forward_pre_hooks, module._global_forward_hooks)
    assert not any(map(len, (*left, _global_optimizer_pre_hooks, _global_optimizer_post_hooks)))
