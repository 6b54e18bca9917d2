"""Models and loaders of a user's, good and bad."""

import torch
from torch import nn


def good():
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4)), torch.randn(5, 4, 4)


def silent():
    return nn.Linear(16, 8)


def sized(batch):
    return nn.Linear(16, 8), torch.randn(batch, 16)


def raising():
    raise RuntimeError("the weights are on the moon")


def nothing():
    return 42


def frozen():
    model = nn.Linear(4, 2)
    model.requires_grad_(False)
    return model, torch.randn(3, 4)


def not_stepping():
    model = nn.Linear(4, 2)
    return lambda: model(torch.ones(3, 4)).sum().backward()


def exiting():
    raise SystemExit(3)


class Chatty(nn.Linear):
    def forward(self, x):
        print("thinking about", tuple(x.shape))
        return super().forward(x)


def chatty():
    print("building, please wait")
    model, inputs = good()
    return nn.Sequential(model, Chatty(*2 * [model(inputs).shape[-1]])), inputs


class Mixing(nn.Module):
    """No table knows Fourier's transform, and no worker replays it in double precision."""

    def __init__(self):
        super().__init__()
        self.line = nn.Linear(8, 8)

    def forward(self, x):
        return self.line(torch.fft.rfft(x.double(), n=15).real.float())


def unknown_module():
    return nn.Sequential(nn.Linear(16, 8), Mixing(), nn.Linear(8, 4)), torch.randn(5, 16)


def loader():
    return [torch.zeros(4)] * 3


def no_loader():
    return 3


def empty_loader():
    return []
