"""Models as users write them, good and bad; the tests hand them to workers as `workloads.py:name`."""

import ctypes
import os
import sys
import time

import torch
from torch import nn


def mlp(width: int = 16):
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 4)), torch.randn(5, 8)


def without_inputs():
    return nn.Linear(8, 4)


class Swish(nn.Module):
    """No table knows it."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.ones(6))

    def forward(self, x):
        return x * torch.sigmoid(self.slope * x)


def with_part():
    return nn.Sequential(nn.Linear(8, 6), Swish(), nn.Linear(6, 4)), torch.randn(5, 8)


class TwoInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.gate = nn.Embedding(11, 6), nn.Linear(3, 6)

    def forward(self, tokens, gates):
        return (self.words(tokens).mean(1) * self.gate(gates)).flatten(1)


def two_inputs():
    return TwoInputs()


class Chatty(nn.Linear):
    def forward(self, x):
        print('{"id": 1, "result": "not yours"}')
        os.write(1, b"straight to the file descriptor\n")
        sys.stdout.flush()
        return super().forward(x)


def chatty():
    return Chatty(8, 4), torch.randn(5, 8)


class Asking(nn.Linear):
    def forward(self, x):
        sys.stdin.read()
        return super().forward(x)


def asking():
    return Asking(8, 4), torch.randn(5, 8)


class Exploding(nn.Linear):
    def forward(self, x):
        return super().forward(x) * float("inf")


def exploding():
    return Exploding(8, 4), torch.randn(5, 8)


class Sulking(nn.Linear):
    def forward(self, x):
        raise RuntimeError("first line\nsecond line")


def sulking():
    return Sulking(8, 4), torch.randn(5, 8)


def segfault():
    ctypes.string_at(0)


def quitting():
    os._exit(3)


def leaving():
    sys.exit("no")


def hanging():
    time.sleep(3600)


def separable():
    """Two classes that a line parts; `training_loss` always asks for the same labels."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3)), torch.randn(12, 4)


def yardstick_itself():
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 7 * 7, 10),
    )
    return model, torch.randn(10, 1, 28, 28)


def whole_step():
    """A step that returns its loss, of code that is no model."""
    model, x = nn.Linear(4, 3), torch.randn(12, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step
