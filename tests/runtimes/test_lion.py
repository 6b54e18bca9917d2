"""Lion, of which PyTorch's is our own: the same steps as optax's, and as the paper's formula."""

import numpy as np
import pytest

from ampere.core.optimizers import find_optimizer
from ampere.runtimes.table import OURS

torch = pytest.importorskip("torch", reason=OURS["torch"].install)

START = [0.5, -1.0, 2.0, 0.0]


def gradient_at(weights):
    return 2 * weights - 1


def by_formula(steps, rate=1e-4, fast=0.9, slow=0.99):
    weights, average = np.array(START), np.zeros(4)
    for _ in range(steps):
        gradient = gradient_at(weights)
        weights = weights - rate * np.sign(fast * average + (1 - fast) * gradient)
        average = slow * average + (1 - slow) * gradient
    return weights


def by_torch(steps):
    weight = torch.nn.Parameter(torch.tensor(START))
    optimizer = find_optimizer("Lion").make("torch", [weight])
    for _ in range(steps):
        optimizer.zero_grad()
        (weight.square() - weight).sum().backward()
        optimizer.step()
    return weight.detach().numpy()


def by_optax(steps):
    optax = pytest.importorskip("optax", reason=OURS["jax"].install)
    optimizer, weights = find_optimizer("lion").make("jax"), np.array(START, np.float32)
    state = optimizer.init(weights)
    for _ in range(steps):
        updates, state = optimizer.update(gradient_at(weights), state, weights)
        weights = optax.apply_updates(weights, updates)
    return np.asarray(weights)


@pytest.mark.parametrize("made", [by_torch, by_optax])
def test_the_steps_are_those_of_the_paper(made):
    assert made(25) == pytest.approx(by_formula(25), abs=1e-6)


def test_decay_pulls_towards_zero():
    weight = torch.nn.Parameter(torch.tensor(START))
    optimizer = find_optimizer("lion").make("torch", [weight], lr=0.1, decay=0.5)
    weight.grad = torch.zeros(4)
    optimizer.step()
    assert weight.tolist() == pytest.approx([0.95 * w for w in START])


def test_mnn_does_not_offer_it():
    assert {name for name, description in OURS.items() if "lion" in description.optimizers} == {
        *("torch", "torch-compile", "jax")
    }
