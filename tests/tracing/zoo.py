"""The models that every tracing test runs over. An entry is a function that makes a model and its inputs."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from .zoo_edges import EDGES
from .zoo_foreign import FOREIGN
from .zoo_unusual import UNUSUAL

Case = Callable[[], tuple[nn.Module, Any]]


def lenet5() -> tuple[nn.Module, Any]:
    model = nn.Sequential(
        nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2)),
        nn.Sequential(nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten()),
        nn.Sequential(nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10)),
    )
    return model, torch.empty(4, 1, 28, 28)


def cnn5() -> tuple[nn.Module, Any]:
    stages: list[nn.Module] = []
    for channels_in, channels_out in ((1, 8), (8, 16), (16, 16), (16, 32)):
        stages += [nn.Conv2d(channels_in, channels_out, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*stages, nn.Flatten(), nn.Linear(32, 10)), torch.empty(4, 1, 28, 28)


def har() -> tuple[nn.Module, Any]:
    features = nn.Sequential(
        nn.Conv1d(9, 16, 5), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(16, 32, 5, stride=2), nn.ReLU(), nn.Dropout(0.5)
    )
    return nn.Sequential(features, nn.Flatten(), nn.Linear(32 * 13, 6)), torch.empty(4, 9, 64)


class LstmClassifier(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.lstm = nn.LSTM(5, 8, batch_first=True, **options)
        self.head = nn.Linear(16 if options.get("bidirectional") else 8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0][:, -1])


class GruText(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(40, 6)
        self.gru = nn.GRU(6, 8, num_layers=2)
        self.head = nn.Linear(8, 3)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.gru(self.embedding(tokens.t()))[1][-1])


class Residual(nn.Module):
    def __init__(self, channels_in: int, width: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        channels_out = width * 4 if bottleneck else width
        plan = ((1, 1), (3, stride), (1, 1)) if bottleneck else ((3, stride), (3, 1))
        stages: list[nn.Module] = []
        before = channels_in
        for i, (kernel, step) in enumerate(plan):
            after = channels_out if i == len(plan) - 1 else width
            stages += [nn.Conv2d(before, after, kernel, step, kernel // 2, bias=False), nn.BatchNorm2d(after)]
            stages += [nn.ReLU(inplace=True)] if i < len(plan) - 1 else []
            before = after
        self.body = nn.Sequential(*stages)
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or channels_in != channels_out:
            shortcut = nn.Conv2d(channels_in, channels_out, 1, stride, bias=False)
            self.shortcut = nn.Sequential(shortcut, nn.BatchNorm2d(channels_out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu_(self.body(x) + self.shortcut(x))


def resnet(depths: tuple[int, ...], bottleneck: bool) -> tuple[nn.Module, Any]:
    stages: list[nn.Module] = [
        nn.Conv2d(3, 8, 7, 2, 3, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    channels = 8
    for stage, depth in enumerate(depths):
        for i in range(depth):
            block = Residual(channels, 8 << stage, 2 if i == 0 and stage else 1, bottleneck)
            channels = (8 << stage) * (4 if bottleneck else 1)
            stages.append(block)
    model = nn.Sequential(*stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))
    return model, torch.empty(2, 3, 64, 64)


def encoder() -> tuple[nn.Module, Any]:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return nn.TransformerEncoder(layer, 2), torch.empty(2, 6, 16)


ZOO: dict[str, Case] = {
    "lenet5": lenet5,
    "cnn5": cnn5,
    "har": har,
    "lstm": lambda: (LstmClassifier(), torch.empty(3, 7, 5)),
    "lstm_deep": lambda: (LstmClassifier(num_layers=3, bidirectional=True, dropout=0.1), torch.empty(3, 7, 5)),
    "gru_text": lambda: (GruText(), torch.zeros(3, 7, dtype=torch.long)),
    "encoder": encoder,
    "resnet18": lambda: resnet((2, 2, 2, 2), bottleneck=False),
    "resnet34": lambda: resnet((3, 4, 6, 3), bottleneck=False),
    "resnet50": lambda: resnet((3, 4, 6, 3), bottleneck=True),
    **FOREIGN,
    **UNUSUAL,
    **EDGES,
}
