"""Models as their owners write them, added when the others had been looked at. Nothing here knows of Ampere.

Each function returns a model and one batch of inputs.
"""

import itertools
import math

import torch
import torch.nn.functional as F
from torch import nn

# From `transformers`, by configuration: small, with random weights.


def swin(batch: int = 4, size: int = 64):
    from transformers import SwinConfig, SwinForImageClassification

    config = SwinConfig(
        image_size=size, patch_size=4, embed_dim=48, depths=[2, 2, 2], num_heads=[2, 4, 8], window_size=4, num_labels=10
    )
    return SwinForImageClassification(config), {
        "pixel_values": torch.randn(batch, 3, size, size),
        "labels": torch.randint(0, 10, (batch,)),
    }


def convnext(batch: int = 4, size: int = 96):
    from transformers import ConvNextConfig, ConvNextForImageClassification

    config = ConvNextConfig(hidden_sizes=[48, 96, 192], depths=[2, 2, 4], num_stages=3, num_labels=10)
    return ConvNextForImageClassification(config), {
        "pixel_values": torch.randn(batch, 3, size, size),
        "labels": torch.randint(0, 10, (batch,)),
    }


def wav2vec2(batch: int = 2, samples: int = 8000):
    from transformers import Wav2Vec2Config, Wav2Vec2ForSequenceClassification

    config = Wav2Vec2Config(
        hidden_size=128,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=512,
        conv_dim=(64,) * 7,
        num_conv_pos_embeddings=32,
        num_conv_pos_embedding_groups=4,
        apply_spec_augment=False,
        layerdrop=0.0,
        num_labels=8,
    )
    return Wav2Vec2ForSequenceClassification(config), {
        "input_values": torch.randn(batch, samples),
        "labels": torch.randint(0, 8, (batch,)),
    }


def qwen2(batch: int = 2, length: int = 96):
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(
        vocab_size=8000,
        hidden_size=192,
        intermediate_size=512,
        num_hidden_layers=5,
        num_attention_heads=6,
        num_key_value_heads=2,
    )
    ids = torch.randint(0, 8000, (batch, length))
    return Qwen2ForCausalLM(config), {"input_ids": ids, "labels": ids}


def distilbert_tokens(batch: int = 16, length: int = 40):
    from transformers import DistilBertConfig, DistilBertForTokenClassification

    config = DistilBertConfig(vocab_size=6000, dim=192, hidden_dim=768, n_layers=4, n_heads=6, num_labels=9)
    ids = torch.randint(0, 6000, (batch, length))
    return DistilBertForTokenClassification(config), {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "labels": torch.randint(0, 9, (batch, length)),
    }


# By hand.


class SqueezeExcite(nn.Module):
    def __init__(self, channels, reduction=4):
        super().__init__()
        self.down, self.up = (
            nn.Conv2d(channels, channels // reduction, 1),
            nn.Conv2d(channels // reduction, channels, 1),
        )

    def forward(self, x):
        return x * torch.sigmoid(self.up(F.silu(self.down(F.adaptive_avg_pool2d(x, 1)))))


class InvertedBlock(nn.Module):
    def __init__(self, cin, cout, expand=4, stride=1, kernel=3):
        super().__init__()
        mid = cin * expand
        self.body = nn.Sequential(
            nn.Conv2d(cin, mid, 1, bias=False),
            nn.BatchNorm2d(mid),
            nn.SiLU(),
            nn.Conv2d(mid, mid, kernel, stride, kernel // 2, groups=mid, bias=False),
            nn.BatchNorm2d(mid),
            nn.SiLU(),
            SqueezeExcite(mid),
            nn.Conv2d(mid, cout, 1, bias=False),
            nn.BatchNorm2d(cout),
        )
        self.skip = stride == 1 and cin == cout

    def forward(self, x):
        return x + self.body(x) if self.skip else self.body(x)


def efficientnet(batch: int = 8, size: int = 64):
    plan = [(16, 24, 2), (24, 24, 1), (24, 40, 2), (40, 40, 1), (40, 80, 2), (80, 80, 1)]
    blocks = [InvertedBlock(i, o, stride=s, kernel=5 if o == 40 else 3) for i, o, s in plan]
    stem = [nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.SiLU()]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(80, 100)]
    return nn.Sequential(*stem, *blocks, *head), torch.randn(batch, 3, size, size)


class MixerBlock(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens = nn.Sequential(nn.Linear(tokens, 2 * tokens), nn.GELU(), nn.Linear(2 * tokens, tokens))
        self.channels = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, size, patch, width, depth):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.blocks = nn.Sequential(*(MixerBlock((size // patch) ** 2, width) for _ in range(depth)))
        self.head = nn.Linear(width, 20)

    def forward(self, x):
        return self.head(self.blocks(self.patches(x).flatten(2).transpose(1, 2)).mean(1))


def mixer(batch: int = 16, size: int = 32):
    return Mixer(size, 4, 128, 6), torch.randn(batch, 3, size, size)


class Crnn(nn.Module):
    """Reads lines of text: convolutions, a recurrent layer, and CTC as its loss."""

    def __init__(self, letters=40, width=48):
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.MaxPool2d((2, 1)),
            nn.Conv2d(2 * width, 2 * width, (4, 3), padding=(0, 1)),
            nn.ReLU(),
        )
        self.recurrent = nn.LSTM(2 * width * 5, 96, num_layers=2, bidirectional=True)
        self.letters = nn.Linear(192, letters)

    def forward(self, images, labels):
        seen = self.convolutions(images).permute(3, 0, 1, 2).flatten(2)
        scores = self.letters(self.recurrent(seen)[0]).log_softmax(-1)
        lengths = torch.full((len(images),), len(scores))
        return {"loss": F.ctc_loss(scores, labels, lengths, torch.full((len(images),), labels.shape[1]))}


def crnn(batch: int = 8, width: int = 96):
    return Crnn(), {"images": torch.randn(batch, 1, 32, width), "labels": torch.randint(1, 40, (batch, 8))}


class Coupling(nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.half = features // 2
        self.net = nn.Sequential(
            nn.Linear(self.half, width), nn.LeakyReLU(), nn.Linear(width, width), nn.LeakyReLU(),
            nn.Linear(width, 2 * (features - self.half)),
        )  # fmt: skip

    def forward(self, x):
        kept, changed = x[:, : self.half], x[:, self.half :]
        scale, shift = self.net(kept).chunk(2, dim=1)
        scale = torch.tanh(scale)
        return torch.cat([changed * scale.exp() + shift, kept], dim=1), scale.sum(1)


class Flow(nn.Module):
    def __init__(self, features, width, depth):
        super().__init__()
        self.couplings = nn.ModuleList(Coupling(features, width) for _ in range(depth))

    def forward(self, x):
        log_det = 0.0
        for coupling in self.couplings:
            x, found = coupling(x)
            log_det = log_det + found
        return {"loss": (0.5 * x.square().sum(1) - log_det).mean()}


def normalizing_flow(batch: int = 256, features: int = 64):
    return Flow(features, 128, 8), torch.randn(batch, features)


class GraphAttention(nn.Module):
    """Over a dense matrix of neighbours."""

    def __init__(self, cin, cout, heads):
        super().__init__()
        self.heads, self.cout = heads, cout
        self.project = nn.Linear(cin, heads * cout, bias=False)
        self.source = nn.Parameter(torch.randn(heads, cout) * 0.1)
        self.target = nn.Parameter(torch.randn(heads, cout) * 0.1)

    def forward(self, x, neighbours):
        h = self.project(x).view(-1, self.heads, self.cout)
        scores = (h * self.source).sum(-1)[:, None] + (h * self.target).sum(-1)[None]
        scores = F.leaky_relu(scores, 0.2).masked_fill(~neighbours[..., None], float("-inf"))
        return torch.einsum("ijh,jhc->ihc", scores.softmax(1), h).flatten(1)


class Gat(nn.Module):
    def __init__(self, features, width, heads, classes):
        super().__init__()
        self.first = GraphAttention(features, width, heads)
        self.second = GraphAttention(width * heads, classes, 1)

    def forward(self, x, neighbours):
        return self.second(F.elu(F.dropout(self.first(x, neighbours), 0.5, self.training)), neighbours)


def gat(nodes: int = 400, features: int = 300):
    neighbours = torch.rand(nodes, nodes) < 0.03
    neighbours |= torch.eye(nodes, dtype=torch.bool)
    return Gat(features, 16, 8, 7), {"x": torch.randn(nodes, features), "neighbours": neighbours}


class Nerf(nn.Module):
    def __init__(self, width, depth, frequencies):
        super().__init__()
        self.register_buffer("bands", 2.0 ** torch.arange(frequencies) * math.pi)
        first = 3 * 2 * frequencies
        self.first = nn.Sequential(*self.dense(first, width), *self.dense(width, width) * (depth // 2))
        self.second = nn.Sequential(*self.dense(width + first, width), *self.dense(width, width))
        self.density, self.colour = nn.Linear(width, 1), nn.Linear(width, 3)

    @staticmethod
    def dense(cin, cout):
        return [nn.Linear(cin, cout), nn.ReLU()]

    def forward(self, points):
        angles = (points[..., None] * self.bands).flatten(-2)
        code = torch.cat([angles.sin(), angles.cos()], -1)
        h = self.second(torch.cat([self.first(code), code], -1))
        alpha = 1 - torch.exp(-F.relu(self.density(h)))
        through = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-6], 1), 1)[:, :-1]
        return (alpha * through * self.colour(h).sigmoid()).sum(1)


def nerf(rays: int = 64, samples: int = 32):
    return Nerf(96, 4, 6), torch.rand(rays, samples, 3)


class TemporalBlock(nn.Module):
    def __init__(self, cin, cout, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.one = nn.utils.parametrizations.weight_norm(nn.Conv1d(cin, cout, 3, dilation=dilation))
        self.two = nn.utils.parametrizations.weight_norm(nn.Conv1d(cout, cout, 3, dilation=dilation))
        self.skip = nn.Conv1d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x):
        h = F.dropout(F.relu(self.one(F.pad(x, (self.pad, 0)))), 0.1, self.training)
        h = F.dropout(F.relu(self.two(F.pad(h, (self.pad, 0)))), 0.1, self.training)
        return F.relu(h + self.skip(x))


class TemporalNetwork(nn.Module):
    def __init__(self, channels, width, depth):
        super().__init__()
        sizes = [channels] + [width] * depth
        self.blocks = nn.Sequential(*(TemporalBlock(sizes[i], sizes[i + 1], 2**i) for i in range(depth)))
        self.head = nn.Linear(width, 6)

    def forward(self, x):
        return self.head(self.blocks(x)[..., -1])


def temporal_network(batch: int = 32, length: int = 128):
    return TemporalNetwork(9, 48, 5), torch.randn(batch, 9, length)


class LinearAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        b, n, w = x.shape
        q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        q, k = F.elu(q) + 1, F.elu(k) + 1
        context = torch.einsum("bhnd,bhne->bhde", k, v)
        divisor = torch.einsum("bhnd,bhd->bhn", q, k.sum(2)).unsqueeze(-1)
        mixed = torch.einsum("bhnd,bhde->bhne", q, context) / divisor
        x = x + self.out(mixed.transpose(1, 2).reshape(b, n, w))
        return x + self.mlp(self.norm2(x))


class Forecaster(nn.Module):
    def __init__(self, channels, width, depth, horizon):
        super().__init__()
        self.embed = nn.Linear(channels, width)
        self.blocks = nn.Sequential(*(LinearAttention(width, 4) for _ in range(depth)))
        self.head = nn.Linear(width, horizon)

    def forward(self, x):
        return {"loss": F.huber_loss(self.head(self.blocks(self.embed(x))).mean(1), x[:, -24:, 0])}


def linear_attention(batch: int = 8, length: int = 256):
    return Forecaster(7, 96, 4, 24), torch.randn(batch, length, 7)


class Siamese(nn.Module):
    def __init__(self, width):
        super().__init__()
        sizes = [3, width, 2 * width, 4 * width]
        self.body = nn.Sequential(
            *(
                nn.Sequential(
                    nn.Conv2d(i, o, 3, padding=1), nn.InstanceNorm2d(o, affine=True), nn.PReLU(), nn.AvgPool2d(2)
                )
                for i, o in itertools.pairwise(sizes)
            ),
            nn.Flatten(),
            nn.Linear(4 * width * 36, 64),
        )

    def forward(self, anchor, same, other):
        codes = [F.normalize(self.body(image), dim=1) for image in (anchor, same, other)]
        return {"loss": F.triplet_margin_loss(*codes)}


def siamese(batch: int = 8, size: int = 48):
    return Siamese(24), {name: torch.randn(batch, 3, size, size) for name in ("anchor", "same", "other")}


class Quantizer(nn.Module):
    """An autoencoder whose code is the nearest of learnt vectors."""

    def __init__(self, width, codes):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, width, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(width, width, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, 1, 1),
        )
        self.codes = nn.Embedding(codes, width)
        self.decoder = nn.Sequential(
            nn.Conv2d(width, width, 3, 1, 1),
            nn.ReLU(),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(width, width, 3, 1, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(width, 3, 4, 2, 1),
        )

    def forward(self, x):
        z = self.encoder(x)
        flat = z.permute(0, 2, 3, 1).reshape(-1, z.shape[1])
        nearest = torch.cdist(flat, self.codes.weight).argmin(1)
        code = self.codes(nearest).view(z.shape[0], z.shape[2], z.shape[3], -1).permute(0, 3, 1, 2)
        commit = F.mse_loss(code.detach(), z) * 0.25 + F.mse_loss(code, z.detach())
        return {"loss": F.mse_loss(self.decoder(z + (code - z).detach()), x) + commit}


def vq_autoencoder(batch: int = 16, size: int = 32):
    return Quantizer(48, 256), torch.rand(batch, 3, size, size)


class CharacterRnn(nn.Module):
    def __init__(self, letters, width):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(letters, 48), nn.GRU(48, width, num_layers=2, batch_first=True, dropout=0.1)
        self.head = nn.Linear(width, letters)

    def forward(self, text):
        scores = self.head(self.rnn(self.embed(text[:, :-1]))[0])
        return {"loss": F.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())}


def character_rnn(batch: int = 24, length: int = 65):
    return CharacterRnn(90, 160), torch.randint(0, 90, (batch, length))


def resnext(batch: int = 8, size: int = 48):
    class Block(nn.Module):
        def __init__(self, cin, cout, stride):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(cin, cout // 2, 1, bias=False), nn.BatchNorm2d(cout // 2), nn.ReLU(inplace=True),
                nn.Conv2d(cout // 2, cout // 2, 3, stride, 1, groups=8, bias=False),
                nn.BatchNorm2d(cout // 2), nn.ReLU(inplace=True),
                nn.Conv2d(cout // 2, cout, 1, bias=False), nn.BatchNorm2d(cout),
            )  # fmt: skip
            self.skip = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

        def forward(self, x):
            return F.relu(self.body(x) + self.skip(x), inplace=True)

    stem = [nn.Conv2d(3, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(inplace=True)]
    blocks = [Block(32, 64, 1), Block(64, 128, 2), Block(128, 128, 1), Block(128, 256, 2)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10)), torch.randn(
        batch, 3, size, size
    )
