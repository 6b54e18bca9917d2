"""Models that do what the textbook ones do not."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor, nn


def depthwise() -> tuple[nn.Module, Any]:
    def block(channels_in: int, channels_out: int, stride: int) -> list[nn.Module]:
        narrow = nn.Conv2d(channels_in, channels_in, 3, stride, 1, groups=channels_in, bias=False)
        wide = nn.Conv2d(channels_in, channels_out, 1, bias=False)
        norms = nn.BatchNorm2d(channels_in), nn.BatchNorm2d(channels_out)
        return [narrow, norms[0], nn.ReLU6(), wide, norms[1], nn.ReLU6()]

    grouped = nn.Conv2d(32, 16, 3, groups=4)
    stages = [nn.Conv2d(3, 8, 3, 2, 1), *block(8, 16, 1), *block(16, 32, 2), grouped]
    return nn.Sequential(*stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5)), torch.empty(2, 3, 32, 32)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, padding=1)
        self.bottom = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(16, 8, 3, stride=2, padding=1, output_padding=1)
        self.out = nn.Conv2d(16, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        skip = torch.relu(self.down(x))
        up = self.up(torch.relu(self.bottom(skip)))
        return self.out(torch.cat([skip, up], 1))


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        gate = torch.sigmoid(ctx.saved_tensors[0])
        return grad * gate * (1 + ctx.saved_tensors[0] * (1 - gate))


class Functional(nn.Module):
    """Parameters of its own, used by functions; an einsum; a scale; a norm of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(12, 8))
        self.b1 = nn.Parameter(torch.zeros(12))
        self.w2 = nn.Parameter(torch.randn(12, 6))
        self.gain = nn.Parameter(torch.ones(6))

    def forward(self, x: Tensor) -> Tensor:
        hidden = Swish.apply(functional.linear(x, self.w1, self.b1))
        out = torch.einsum("bnk,km->bnm", hidden, self.w2)
        mixed = torch.einsum("bnk,bmk->bnm", out, out)
        return (mixed @ out) * torch.rsqrt(out.square().mean(-1, keepdim=True) + 1e-6) * self.gain


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.again = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.relu(self.again(torch.relu(self.again(self.first(x))))))


def frozen() -> tuple[nn.Module, Any]:
    backbone = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Flatten())
    backbone.requires_grad_(False)
    return nn.Sequential(backbone, nn.Linear(8 * 16, 5), nn.ReLU(), nn.Linear(5, 2)), torch.empty(4, 3, 8, 8)


@dataclass
class Answer:
    scores: Tensor
    features: Tensor
    names: Any = None


class Outputs(nn.Module):
    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form
        self.body = nn.Linear(6, 10)
        self.head = nn.Linear(10, 4)

    def forward(self, x: Tensor) -> Any:
        features = torch.tanh(self.body(x))
        scores = self.head(features)
        if self.form == "tuple":
            return scores, [features, 3]
        if self.form == "dict":
            return {"scores": scores, "inner": {"features": features}, "steps": 1}
        return Answer(scores, features)


class TwoInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Conv2d(3, 4, 3)
        self.text = nn.Embedding(20, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, image: Tensor, text: Tensor) -> Tensor:
        return self.head(self.image(image).mean((2, 3)) + self.text(text).mean(1))


class Mixing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return torch.fft.fft(self.proj(x).double(), dim=1).real.float()


def fourier() -> tuple[nn.Module, Any]:
    block = nn.Sequential(nn.LayerNorm(8), Mixing(), nn.Linear(8, 8), nn.GELU())
    return nn.Sequential(nn.Linear(4, 8), block, nn.Linear(8, 2)), torch.empty(3, 5, 4)


class Deciding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6)
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.a(x)
        if hidden.sum() > 1e9:
            hidden = hidden * 2
        return self.head(self.b(hidden))


class SeqToSeq(nn.Module):
    """The decoder starts from the encoder's state; its keys and values are the encoder's outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.GRU(5, 8, batch_first=True)
        self.decoder = nn.GRU(4, 8, batch_first=True)
        self.look = nn.MultiheadAttention(8, 2, batch_first=True, dropout=0.1)
        self.norm = nn.LayerNorm(8, bias=False)
        self.head = nn.Linear(8, 3)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory, state = self.encoder(source)
        decoded, _ = self.decoder(target, state)
        seen, _ = self.look(decoded, memory, memory, need_weights=False)
        return self.head(self.norm(decoded + seen))


def normalised() -> tuple[nn.Module, Any]:
    norm = nn.utils.parametrizations.weight_norm
    model = nn.Sequential(
        norm(nn.Conv2d(3, 8, 3)),
        nn.GroupNorm(2, 8),
        nn.InstanceNorm2d(8, affine=True),
        nn.PReLU(8),
        nn.BatchNorm2d(8, affine=False),
        nn.Upsample(scale_factor=2),
        nn.Conv2d(8, 4, 3, padding="same", padding_mode="circular"),
    )
    return model, torch.empty(2, 3, 8, 8)


UNUSUAL = {
    "depthwise": depthwise,
    "unet": lambda: (UNet(), torch.empty(2, 3, 16, 16)),
    "functional": lambda: (Functional(), torch.empty(2, 5, 8)),
    "twice": lambda: (Twice(), torch.empty(4, 8)),
    "frozen": frozen,
    "tuple": lambda: (Outputs("tuple"), torch.empty(4, 6)),
    "dict": lambda: (Outputs("dict"), torch.empty(4, 6)),
    "dataclass": lambda: (Outputs("dataclass"), torch.empty(4, 6)),
    "two_inputs": lambda: (TwoInputs(), (torch.empty(3, 3, 8, 8), torch.zeros(3, 5, dtype=torch.long))),
    "fourier": fourier,
    "deciding": lambda: (Deciding(), torch.zeros(4, 6)),
    "seq_to_seq": lambda: (SeqToSeq(), {"source": torch.empty(2, 5, 5), "target": torch.empty(2, 4, 4)}),
    "normalised": normalised,
}
