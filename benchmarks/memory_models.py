"""Models of different kinds whose training takes between ten megabytes and a few gigabytes: what a user might write.

Each function returns (module, example inputs). DEVELOPMENT were looked at while the rules for layers were written,
UNSEEN once after. The rules for a touch were written with all of them in sight.
"""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class Losing(nn.Module):
    """A model of sequences that returns its own loss: cross entropy of the next token."""

    def __init__(self, body, vocabulary):
        super().__init__()
        self.body, self.vocabulary = body, vocabulary

    def forward(self, tokens):
        scores = self.body(tokens)
        return {"loss": F.cross_entropy(scores[:, :-1].reshape(-1, self.vocabulary), tokens[:, 1:].reshape(-1))}


def tokens(batch, length, vocabulary):
    return torch.randint(vocabulary, (batch, length))


def conv(cin, cout, kernel=3, stride=1, groups=1):
    return nn.Sequential(
        nn.Conv2d(cin, cout, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
    )


# ---- development


def small_cnn():
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 49, 10),
    )  # fmt: skip
    return model, torch.randn(32, 1, 28, 28)


def vgg():
    layers, last = [], 3
    for width, count in ((64, 2), (128, 2), (256, 3), (512, 3)):
        for _ in range(count):
            layers += [nn.Conv2d(last, width, 3, padding=1), nn.ReLU(inplace=True)]
            last = width
        layers.append(nn.MaxPool2d(2))
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(512 * 16, 1024), nn.ReLU(), nn.Linear(1024, 100))
    return model, torch.randn(16, 3, 64, 64)


class Residual(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.first, self.second = (
            conv(cin, cout, 3, stride),
            nn.Sequential(nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout)),
        )
        self.short = nn.Identity() if stride == 1 and cin == cout else nn.Conv2d(cin, cout, 1, stride)

    def forward(self, x):
        return F.relu(self.second(self.first(x)) + self.short(x))


def resnet18():
    blocks, last = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for width in (64, 128, 256, 512):
        blocks += [Residual(last, width, 1 if width == 64 else 2), Residual(width, width, 1)]
        last = width
    model = nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))
    return model, torch.randn(16, 3, 160, 160)


def mobile():
    def inverted(cin, cout, stride):
        return nn.Sequential(conv(cin, 6 * cin, 1), conv(6 * cin, 6 * cin, 3, stride, 6 * cin), conv(6 * cin, cout, 1))

    model = nn.Sequential(
        conv(3, 16, 3, 2), inverted(16, 24, 2), inverted(24, 24, 1), inverted(24, 40, 2), inverted(40, 80, 2),
        inverted(80, 80, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(80, 100),
    )  # fmt: skip
    return model, torch.randn(32, 3, 128, 128)


def encoder():
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    model = nn.Sequential(nn.Embedding(8000, 256), nn.TransformerEncoder(layer, 6, enable_nested_tensor=False))
    return Losing(nn.Sequential(model, nn.Linear(256, 8000)), 8000), tokens(8, 128, 8000)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norms[1](x))


class GPT(nn.Module):
    def __init__(self, width, heads, depth, vocabulary, length, recompute=False):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.recompute = recompute

    def forward(self, ids):
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        return self.head(self.norm(x))


def gpt():
    return Losing(GPT(384, 6, 8, 12000, 256), 12000), tokens(8, 256, 12000)


def gpt_checkpointed():
    return Losing(GPT(384, 6, 12, 8000, 256, recompute=True), 8000), tokens(16, 256, 8000)


class Recurrent(nn.Module):
    def __init__(self, kind, vocabulary, width, layers, **more):
        super().__init__()
        self.embed, self.cell = nn.Embedding(vocabulary, width), kind(width, width, layers, batch_first=True, **more)
        self.head = nn.Linear(width * (2 if more.get("bidirectional") else 1), vocabulary)

    def forward(self, ids):
        return self.head(self.cell(self.embed(ids))[0])


def lstm():
    return Losing(Recurrent(nn.LSTM, 5000, 256, 2), 5000), tokens(16, 64, 5000)


class UNet(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        sizes = [width * 2**i for i in range(depth)]
        self.down = nn.ModuleList(
            nn.Sequential(conv(a, b), conv(b, b)) for a, b in zip([3, *sizes[:-1]], sizes, strict=True)
        )
        self.grow = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in pairwise(sizes))
        self.up = nn.ModuleList(nn.Sequential(conv(2 * a, a), conv(a, a)) for a in sizes[:-1])
        self.head = nn.Conv2d(width, 4, 1)

    def forward(self, x):
        kept = []
        for stage in self.down:
            x = stage(F.max_pool2d(x, 2) if kept else x)
            kept.append(x)
        for grow, stage, left in zip(reversed(self.grow), reversed(self.up), reversed(kept[:-1]), strict=True):
            x = stage(torch.cat((left, grow(x)), 1))
        return self.head(x)


def unet():
    return UNet(32, 4), torch.randn(4, 3, 192, 192)


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone, _ = resnet18()
        self.backbone[-1] = nn.Identity()
        self.backbone.requires_grad_(False)
        self.head = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 20))

    def forward(self, x):
        return self.head(self.backbone(x))


def frozen_backbone():
    return Frozen(), torch.randn(32, 3, 160, 160)


class Recommender(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.users, self.items = nn.Embedding(rows, width), nn.Embedding(rows, width)
        self.tower = nn.Sequential(nn.Linear(2 * width, 128), nn.ReLU(), nn.Linear(128, 2))

    def forward(self, ids):
        return self.tower(torch.cat((self.users(ids[:, 0]), self.items(ids[:, 1])), 1))


def recommender():
    return Recommender(300_000, 64), tokens(1024, 2, 300_000)


def wide_mlp():
    model = nn.Sequential(nn.Linear(784, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10))
    return model, torch.randn(256, 784)


# ---- looked at once


class Dense(nn.Module):
    def __init__(self, width, count, last):
        super().__init__()
        self.parts = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(last + i * width),
                nn.ReLU(inplace=True),
                nn.Conv2d(last + i * width, width, 3, padding=1),
            )
            for i in range(count)
        )

    def forward(self, x):
        for part in self.parts:
            x = torch.cat((x, part(x)), 1)
        return x


def densenet():
    model = nn.Sequential(
        conv(3, 32, 3, 2), Dense(16, 8, 32), nn.Conv2d(160, 80, 1), nn.AvgPool2d(2), Dense(16, 8, 80),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(208, 50),
    )  # fmt: skip
    return model, torch.randn(16, 3, 96, 96)


def resnet_large_images():
    model, _ = resnet18()
    return model, torch.randn(32, 3, 256, 256)


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 320, 16, 16)
        self.token, self.places = nn.Parameter(torch.zeros(1, 1, 320)), nn.Parameter(torch.zeros(1, 197, 320))
        layer = nn.TransformerEncoderLayer(320, 5, 1280, 0.1, "gelu", batch_first=True, norm_first=True)
        self.layers, self.head = nn.TransformerEncoder(layer, 8, enable_nested_tensor=False), nn.Linear(320, 100)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(len(x), -1, -1), x), 1) + self.places
        return self.head(self.layers(x)[:, 0])


def vit():
    return ViT(), torch.randn(16, 3, 224, 224)


class ByHand(nn.Module):
    """Attention written by hand, with the whole matrix of weights."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(4000, 192)
        self.layers = nn.ModuleList(nn.ModuleList(nn.Linear(192, 192) for _ in range(5)) for _ in range(4))
        self.norms = nn.ModuleList(nn.LayerNorm(192) for _ in range(4))
        self.head = nn.Linear(192, 4000)

    def forward(self, ids):
        x = self.embed(ids)
        for (q, k, v, out, last), norm in zip(self.layers, self.norms, strict=True):
            heads = [f(norm(x)).view(*x.shape[:2], 6, 32).transpose(1, 2) for f in (q, k, v)]
            weights = F.dropout(torch.softmax(heads[0] @ heads[1].transpose(-1, -2) / 32**0.5, -1), 0.1)
            x = x + out((weights @ heads[2]).transpose(1, 2).reshape(x.shape))
            x = x + F.gelu(last(x))
        return self.head(x)


def attention_by_hand():
    return Losing(ByHand(), 4000), tokens(8, 384, 4000)


def gru_bidirectional():
    return Losing(Recurrent(nn.GRU, 6000, 320, 3, bidirectional=True), 6000), tokens(24, 80, 6000)


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.LSTMCell(64, 256), nn.Linear(256, 12)

    def forward(self, x):
        state = None
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
        return self.head(state[0])


def lstm_cells():
    return Cells(), torch.randn(64, 100, 64)


def unet_3d():
    def block(cin, cout):
        return nn.Sequential(nn.Conv3d(cin, cout, 3, padding=1), nn.GroupNorm(4, cout), nn.LeakyReLU())

    model = nn.Sequential(
        block(1, 16), block(16, 16), nn.MaxPool3d(2), block(16, 32), block(32, 32), nn.MaxPool3d(2), block(32, 64),
        nn.ConvTranspose3d(64, 32, 2, 2), block(32, 32), nn.ConvTranspose3d(32, 16, 2, 2), nn.Conv3d(16, 2, 1),
    )  # fmt: skip
    return model, torch.randn(2, 1, 48, 48, 48)


class Recomputed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = conv(3, 48)
        self.blocks = nn.ModuleList(Residual(48, 48, 1) for _ in range(8))
        self.head = nn.Linear(48, 10)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=True)
        return self.head(x.mean((2, 3)))


def resnet_checkpointed():
    return Recomputed(), torch.randn(32, 3, 64, 64)


class Adapter(nn.Module):
    def __init__(self, inner, rank=8):
        super().__init__()
        self.inner = inner.requires_grad_(False)
        self.down, self.up = nn.Linear(inner.in_features, rank, False), nn.Linear(rank, inner.out_features, False)

    def forward(self, x):
        return self.inner(x) + self.up(self.down(x))


def gpt_adapters():
    model = GPT(512, 8, 8, 10000, 128).requires_grad_(False)
    for block in model.blocks:
        block.qkv, block.out = Adapter(block.qkv), Adapter(block.out)
    return Losing(model, 10000), tokens(8, 128, 10000)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(conv(3, 64, 4, 2), conv(64, 128, 4, 2), conv(128, 256, 4, 2))
        self.up = nn.Sequential(
            nn.ConvTranspose2d(256, 128, 4, 2, 1), nn.LeakyReLU(0.2), nn.ConvTranspose2d(128, 64, 4, 2, 1),
            nn.LeakyReLU(0.2), nn.Upsample(scale_factor=2), nn.Conv2d(64, 3, 3, padding=1), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, x):
        made = self.up(self.down(x))
        return {"loss": F.mse_loss(made, F.interpolate(x, made.shape[2:]))}


def autoencoder():
    return Autoencoder(), torch.randn(24, 3, 128, 128)


def text_convolutions():
    class Text(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(50_000, 128)
            self.convs = nn.ModuleList(nn.Conv1d(128, 128, k, padding="same") for k in (3, 5, 7))
            self.head = nn.Linear(384, 5)

        def forward(self, ids):
            x = self.embed(ids).transpose(1, 2)
            return self.head(torch.cat([F.relu(c(x)).amax(2) for c in self.convs], 1))

    return Text(), tokens(64, 256, 50_000)


def large_mlp():
    layers = [part for _ in range(6) for part in (nn.Linear(5000, 5000), nn.Tanh())]
    return nn.Sequential(*layers, nn.Linear(5000, 10)), torch.randn(64, 5000)


DEVELOPMENT = {
    "small_cnn": "sgd", "vgg": "momentum", "resnet18": "adam", "mobile": "sgd", "encoder": "adamw", "gpt": "adamw",
    "gpt_checkpointed": "adam", "lstm": "adam", "unet": "adam", "frozen_backbone": "sgd", "recommender": "sgd",
    "wide_mlp": "adam",
}  # fmt: skip
UNSEEN = {
    "densenet": "momentum", "resnet_large_images": "sgd", "vit": "adamw", "attention_by_hand": "adam",
    "gru_bidirectional": "sgd", "lstm_cells": "rmsprop", "unet_3d": "adam", "resnet_checkpointed": "momentum",
    "gpt_adapters": "adamw", "autoencoder": "lion", "text_convolutions": "adam", "large_mlp": "adamw",
}  # fmt: skip
