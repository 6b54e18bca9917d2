"""The same models twice: in flax, channels last, and in PyTorch, channels first."""

import jax.numpy as jnp
import torch
from flax import nnx
from torch import nn

from ampere.models import cnn5 as torch_cnn5
from ampere.models import lenet5 as torch_lenet5


class Lenet5(nnx.Module):
    def __init__(self, rngs):
        self.conv1 = nnx.Conv(1, 6, (5, 5), rngs=rngs)
        self.conv2 = nnx.Conv(6, 16, (5, 5), padding="VALID", rngs=rngs)
        self.fc1 = nnx.Linear(400, 120, rngs=rngs)
        self.fc2 = nnx.Linear(120, 84, rngs=rngs)
        self.fc3 = nnx.Linear(84, 10, rngs=rngs)

    def __call__(self, x):
        for conv in (self.conv1, self.conv2):
            x = nnx.max_pool(nnx.relu(conv(x)), (2, 2), (2, 2))
        x = nnx.relu(self.fc1(x.reshape(x.shape[0], -1)))
        return self.fc3(nnx.relu(self.fc2(x)))


class Cnn5(nnx.Module):
    def __init__(self, channels, rngs):
        pairs = zip([1, *channels], channels, strict=False)
        self.convs = nnx.List([nnx.Conv(a, b, (3, 3), rngs=rngs) for a, b in pairs])
        self.head = nnx.Linear(channels[-1] * 49, 10, rngs=rngs)

    def __call__(self, x):
        for place, conv in enumerate(self.convs):
            x = nnx.relu(conv(x))
            x = nnx.max_pool(x, (2, 2), (2, 2)) if place < 2 else x
        return self.head(x.reshape(x.shape[0], -1))


class Mlp(nnx.Module):
    def __init__(self, rngs):
        self.norm = nnx.LayerNorm(20, rngs=rngs)
        self.first = nnx.Linear(20, 64, rngs=rngs)
        self.drop = nnx.Dropout(0.1, rngs=rngs)
        self.last = nnx.Linear(64, 3, use_bias=False, rngs=rngs)

    def __call__(self, x):
        return self.last(self.drop(nnx.gelu(self.first(self.norm(x)))))


class Block(nnx.Module):
    def __init__(self, width, heads, rngs):
        self.norm1, self.norm2 = nnx.LayerNorm(width, rngs=rngs), nnx.LayerNorm(width, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(heads, width, rngs=rngs, decode=False)
        self.up, self.down = nnx.Linear(width, 4 * width, rngs=rngs), nnx.Linear(4 * width, width, rngs=rngs)

    def __call__(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(nnx.relu(self.up(self.norm2(x))))


class Transformer(nnx.Module):
    def __init__(self, rngs, width=32, heads=4, sequence=12):
        self.embedding = nnx.Embed(100, width, rngs=rngs)
        self.position = nnx.Param(jnp.zeros((sequence, width)))
        self.blocks = nnx.List([Block(width, heads, rngs) for _ in range(2)])
        self.head = nnx.Linear(width, 10, rngs=rngs)

    def __call__(self, tokens):
        x = self.embedding(tokens) + self.position[...]
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(axis=1))


class TorchAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.heads = heads

    def forward(self, x):
        def parted(y):
            return y.reshape(*y.shape[:2], self.heads, -1).transpose(1, 2)

        mixed = nn.functional.scaled_dot_product_attention(*(parted(f(x)) for f in (self.query, self.key, self.value)))
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


class TorchBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = TorchAttention(width, heads)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(torch.relu(self.up(self.norm2(x))))


class TorchTransformer(nn.Module):
    def __init__(self, width=32, heads=4, sequence=12):
        super().__init__()
        self.embedding, self.position = nn.Embedding(100, width), nn.Parameter(torch.zeros(sequence, width))
        self.blocks = nn.Sequential(*(TorchBlock(width, heads) for _ in range(2)))
        self.head = nn.Linear(width, 10)

    def forward(self, tokens):
        return self.head(self.blocks(self.embedding(tokens) + self.position).mean(dim=1))


def torch_mlp():
    layers = [nn.LayerNorm(20), nn.Linear(20, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, 3, bias=False)]
    return nn.Sequential(*layers), torch.zeros(6, 20)


def rngs():
    return nnx.Rngs(0)


PAIRS = {
    "lenet5": lambda: (
        (Lenet5(rngs()), jnp.zeros((10, 28, 28, 1))),
        torch_lenet5.build([6, 16], [120, 84], 10),
    ),
    "cnn5": lambda: (
        (Cnn5([8, 16, 24, 32], rngs()), jnp.zeros((10, 28, 28, 1))),
        torch_cnn5.build([8, 16, 24, 32], 10),
    ),
    "mlp": lambda: ((Mlp(rngs()), jnp.zeros((6, 20))), torch_mlp()),
    "transformer": lambda: (
        (Transformer(rngs()), jnp.zeros((3, 12), jnp.int32)),
        (TorchTransformer(), torch.zeros(3, 12, dtype=torch.long)),
    ),
}
