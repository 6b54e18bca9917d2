"""Further models for benchmarks/memory.py, of other kinds. LATER were looked at once, after all rules were written.

Each function returns (module, example inputs), as those of memory_models do.
"""

import torch
from memory_models import Losing, UNet, conv, tokens
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class MixerBlock(nn.Module):
    def __init__(self, patches, width):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.across = nn.Sequential(nn.Linear(patches, 256), nn.GELU(), nn.Linear(256, patches))
        self.within = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.across(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        return x + self.within(self.norms[1](x))


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 256, 8, 8)
        self.blocks = nn.Sequential(*(MixerBlock(256, 256) for _ in range(6)))
        self.head = nn.Linear(256, 50)

    def forward(self, x):
        return self.head(self.blocks(self.patch(x).flatten(2).transpose(1, 2)).mean(1))


def mixer():
    return Mixer(), torch.randn(12, 3, 128, 128)


class NextBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.spread, self.norm = nn.Conv2d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        return x + self.mlp(self.norm(self.spread(x).permute(0, 2, 3, 1))).permute(0, 3, 1, 2)


def convnext():
    def stage(width):
        return [NextBlock(width), NextBlock(width)]

    layers = [nn.Conv2d(3, 48, 4, 4), *stage(48), nn.Conv2d(48, 96, 2, 2), *stage(96), nn.Conv2d(96, 192, 2, 2)]
    pooled = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(192, 30)]
    return nn.Sequential(*layers, *stage(192), *pooled), torch.randn(16, 3, 160, 160)


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(6000, 192)
        self.body = nn.Transformer(192, 6, 3, 3, 768, batch_first=True)
        self.head = nn.Linear(192, 6000)

    def forward(self, ids):
        x = self.embed(ids)
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        return self.head(self.body(x, x, tgt_mask=mask, tgt_is_causal=True))


def translator():
    return Losing(Translator(), 6000), tokens(16, 96, 6000)


def generator():
    layers, last = [], 128
    for width in (256, 128, 64, 32):
        layers += [nn.ConvTranspose2d(last, width, 4, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True)]
        last = width
    return nn.Sequential(*layers, nn.Conv2d(32, 3, 3, padding=1), nn.Tanh()), torch.randn(32, 128, 5, 5)


class Dilated(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(1, 48, 1)
        self.layers = nn.ModuleList(
            nn.Conv1d(48, 96, 3, padding=2**i, dilation=2**i) for _ in range(2) for i in range(6)
        )
        self.mix = nn.ModuleList(nn.Conv1d(48, 96, 1) for _ in self.layers)
        self.last = nn.Conv1d(48, 64, 1)

    def forward(self, x):
        x, skipped = self.first(x), 0
        for layer, mix in zip(self.layers, self.mix, strict=True):
            a, b = layer(x).chunk(2, 1)
            more, skip = mix(torch.tanh(a) * torch.sigmoid(b)).chunk(2, 1)
            x, skipped = x + more, skipped + skip
        return self.last(F.relu(skipped))


def dilated_sound():
    return Dilated(), torch.randn(4, 1, 8000)


class Messages(nn.Module):
    def __init__(self, nodes=8000, edges=60_000):
        super().__init__()
        drawn = torch.Generator().manual_seed(1)
        self.register_buffer("ends", torch.randint(nodes, (2, edges), generator=drawn))
        self.layers = nn.ModuleList(nn.Linear(128, 64) for _ in range(3))
        self.first, self.head = nn.Linear(32, 64), nn.Linear(64, 7)

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            sent = F.relu(layer(torch.cat((x[self.ends[0]], x[self.ends[1]]), 1)))
            x = x + torch.zeros_like(x).index_add(0, self.ends[1], sent)
        return self.head(x)


def graph():
    return Messages(), torch.randn(8000, 32)


class Variational(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Linear(784, 400), nn.Sequential(nn.Linear(20, 400), nn.ReLU(), nn.Linear(400, 784))
        self.mean, self.spread = nn.Linear(400, 20), nn.Linear(400, 20)

    def forward(self, x):
        hidden = F.relu(self.down(x))
        mean, spread = self.mean(hidden), self.spread(hidden)
        made = self.up(mean + torch.randn_like(spread) * torch.exp(0.5 * spread))
        return {"loss": F.mse_loss(made, x) - 0.5 * (1 + spread - mean.square() - spread.exp()).mean()}


def variational():
    return Variational(), torch.rand(128, 784)


class Squeezed(nn.Module):
    def __init__(self, width, groups):
        super().__init__()
        self.body = nn.Sequential(conv(width, width, 1), conv(width, width, 3, 1, groups), conv(width, width, 1))
        self.gate = nn.Sequential(nn.Linear(width, width // 8), nn.ReLU(), nn.Linear(width // 8, width), nn.Sigmoid())

    def forward(self, x):
        y = self.body(x)
        return x + y * self.gate(y.mean((2, 3)))[:, :, None, None]


def grouped():
    blocks = [conv(3, 64, 5, 2), Squeezed(64, 8), Squeezed(64, 8), conv(64, 128, 3, 2)]
    blocks += [
        Squeezed(128, 16),
        Squeezed(128, 16),
        conv(128, 256, 3, 2),
        Squeezed(256, 32),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    ]
    return nn.Sequential(*blocks, nn.Linear(256, 200)), torch.randn(24, 3, 144, 144)


class Video(nn.Module):
    """A convolutional LSTM over the frames of a film."""

    def __init__(self):
        super().__init__()
        self.gates, self.head = nn.Conv2d(3 + 24, 96, 3, padding=1), nn.Conv2d(24, 3, 1)

    def forward(self, frames):
        state = cell = frames.new_zeros(len(frames), 24, *frames.shape[-2:])
        for t in range(frames.shape[1]):
            i, f, o, g = self.gates(torch.cat((frames[:, t], state), 1)).chunk(4, 1)
            cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
            state = torch.sigmoid(o) * torch.tanh(cell)
        return self.head(state)


def video():
    return Video(), torch.randn(6, 8, 3, 64, 64)


def unet_large():
    return UNet(20, 4), torch.randn(16, 3, 256, 256)


class Noised(nn.Module):
    """A residual block of a diffusion model, with the time added in the middle."""

    def __init__(self, cin, cout):
        super().__init__()
        self.norms = nn.ModuleList((nn.GroupNorm(8, cin), nn.GroupNorm(8, cout)))
        self.convs = nn.ModuleList((nn.Conv2d(cin, cout, 3, padding=1), nn.Conv2d(cout, cout, 3, padding=1)))
        self.time, self.short = nn.Linear(64, cout), nn.Conv2d(cin, cout, 1)

    def forward(self, x, when):
        y = self.convs[0](F.silu(self.norms[0](x))) + self.time(when)[:, :, None, None]
        return self.convs[1](F.silu(self.norms[1](y))) + self.short(x)


class Diffusion(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 3, 3, padding=1)
        self.down, self.up = nn.ModuleList((Noised(32, 32), Noised(32, 64))), nn.ModuleList((Noised(128, 32),))
        self.middle, self.attend = Noised(64, 64), nn.MultiheadAttention(64, 4, batch_first=True)

    def forward(self, x):
        when, noise = torch.randn(len(x), 64), torch.randn_like(x)
        y = self.down[0](self.first(x + noise), when)
        deep = self.middle(self.down[1](F.avg_pool2d(y, 2), when), when)
        tokens_of = deep.flatten(2).transpose(1, 2)
        deep = deep + self.attend(tokens_of, tokens_of, tokens_of)[0].transpose(1, 2).view_as(deep)
        wide = F.interpolate(deep, scale_factor=2)
        return {"loss": F.mse_loss(self.last(self.up[0](torch.cat((wide, y, y), 1), when)), noise)}


def diffusion():
    return Diffusion(), torch.randn(8, 3, 64, 64)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.cell = nn.Embedding(12_000, 200), nn.LSTM(200, 200, 2, batch_first=True, dropout=0.2)
        self.head = nn.Linear(200, 12_000)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.cell(self.embed(ids))[0])


def lstm_tied():
    return Losing(Tied(), 12_000), tokens(16, 48, 12_000)


class Scattered(nn.Module):
    def __init__(self, nodes=6000, edges=50_000):
        super().__init__()
        drawn = torch.Generator().manual_seed(2)
        self.register_buffer("ends", torch.randint(nodes, (2, edges), generator=drawn))
        self.first, self.head = nn.Linear(16, 96), nn.Linear(96, 5)
        self.layers = nn.ModuleList(nn.Linear(96, 96) for _ in range(4))

    def forward(self, x):
        x = F.relu(self.first(x))
        for layer in self.layers:
            places = self.ends[1][:, None].expand(-1, x.shape[1])
            x = F.elu(layer(x + torch.zeros_like(x).scatter_add(0, places, x[self.ends[0]])))
        return self.head(x)


def graph_scattered():
    return Scattered(), torch.randn(6000, 16)


class Thrifty(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(3000, 192), nn.Linear(192, 3000)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(192, 6, 768, batch_first=True) for _ in range(6))

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return self.head(x)


def encoder_checkpointed():
    return Losing(Thrifty(), 3000), tokens(8, 128, 3000)


class Twins(nn.Module):
    """Two views through one network, and a loss over all pairs."""

    def __init__(self):
        super().__init__()
        body = [conv(3, 32, 3, 2), conv(32, 64, 3, 2), conv(64, 128, 3, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        self.body = nn.Sequential(*body, nn.Linear(128, 64))

    def forward(self, x):
        a, b = (F.normalize(self.body(view)) for view in (x, x.flip(-1)))
        return {"loss": F.cross_entropy(a @ b.T / 0.1, torch.arange(len(x)))}


def contrastive():
    return Twins(), torch.randn(48, 3, 96, 96)


def tabular():
    layers = [part for _ in range(4) for part in (nn.Linear(512, 512), nn.BatchNorm1d(512), nn.SiLU(), nn.Dropout(0.1))]
    return nn.Sequential(nn.Linear(40, 512), *layers, nn.Linear(512, 2)), torch.randn(8192, 40)


FURTHER = {
    "mixer": "adam", "convnext": "momentum", "translator": "adamw", "generator": "adam", "dilated_sound": "adam",
    "graph": "rmsprop", "variational": "adam", "grouped": "momentum", "video": "sgd", "unet_large": "sgd",
}  # fmt: skip
LATER = {
    "diffusion": "adamw", "lstm_tied": "adam", "graph_scattered": "rmsprop", "encoder_checkpointed": "adam",
    "contrastive": "momentum", "tabular": "adamw",
}  # fmt: skip
FURTHER |= LATER
