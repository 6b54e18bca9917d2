"""The same models twice: in flax, channels last, and in PyTorch, channels first. At the end, some in flax only."""

import jax
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


class Named(nnx.Module):
    """All that it calls, it calls by the names of their arguments."""

    def __init__(self):
        self.norm, self.rnn = nnx.LayerNorm(6, rngs=rngs()), nnx.RNN(nnx.GRUCell(6, 4, rngs=rngs()), rngs=rngs())

    def __call__(self, x):
        return self.rnn(inputs=self.norm(x=x))


class Looping(nnx.Module):
    """A recurrent layer by hand."""

    def __init__(self, rngs):
        self.gate = nnx.Linear(6, 6, rngs=rngs)
        self.head = nnx.Linear(6, 3, rngs=rngs)

    def __call__(self, x):
        kernel = self.gate.kernel[...]
        state, _ = jax.lax.scan(lambda h, row: (jnp.tanh(h @ kernel + row), None), x[:, 0], jnp.swapaxes(x, 0, 1))
        return self.head(state)


class Odd(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(8, 8, rngs=rngs)

    def __call__(self, x):
        y = self.first(x)
        return jnp.linalg.cholesky(y @ y.T + 10 * jnp.eye(len(y))).sum(axis=1, keepdims=True)


class Twice(nnx.Module):
    def __init__(self, rngs):
        self.same = nnx.Linear(8, 8, rngs=rngs)

    def __call__(self, x):
        return self.same(nnx.relu(self.same(x)))


class Strided(nnx.Module):
    def __init__(self, rngs):
        self.down = nnx.Conv(3, 8, (3, 3), strides=2, use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.deep = nnx.Conv(8, 8, (3, 3), feature_group_count=8, rngs=rngs)
        self.group = nnx.GroupNorm(8, 2, rngs=rngs)

    def __call__(self, x):
        return self.group(self.deep(nnx.relu(self.norm(self.down(x)))))


class Flagged(nnx.Module):
    """Called with a flag, a constant that nobody trains, and a product of its own."""

    def __init__(self, rngs):
        self.kernel = nnx.Param(jnp.ones((8, 4)))

    def __call__(self, x, *, wide):
        mask = jnp.triu(jnp.ones((8, 4))) if wide else 1.0
        return x @ (self.kernel[...] * mask)


class Untrainable(nnx.Module):
    def __init__(self, rngs):
        pass

    def __call__(self, x):
        return x


class Broken(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(8, 8, rngs=rngs)

    def __call__(self, x):
        return self.first(x[:, :3])
