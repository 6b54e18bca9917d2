"""Ten more models as their owners write them, to look at once: nothing was chosen with them."""

import torch
import torch.nn.functional as F
from torch import nn


class Conformer(nn.Module):
    """Speech recognition: half-step feed-forwards around attention and a depthwise convolution."""

    def __init__(self, width, heads, kernel):
        super().__init__()
        self.first = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width)
        )
        self.norm, self.attention = nn.LayerNorm(width), nn.MultiheadAttention(width, heads, batch_first=True)
        self.before = nn.Sequential(nn.Conv1d(width, 2 * width, 1), nn.GLU(1))
        self.depthwise = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.after = nn.Sequential(nn.BatchNorm1d(width), nn.SiLU(), nn.Conv1d(width, width, 1))
        self.last = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        x = x + 0.5 * self.first(x)
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        x = x + self.after(self.depthwise(self.before(x.transpose(1, 2)))).transpose(1, 2)
        return x + 0.5 * self.last(x)


def conformer(batch: int = 4, frames: int = 120):
    blocks = [Conformer(96, 4, 15) for _ in range(3)]
    return nn.Sequential(nn.Linear(40, 96), *blocks, nn.Linear(96, 50)), torch.randn(batch, frames, 40)


class Fire(nn.Module):
    def __init__(self, channels, squeeze, expand):
        super().__init__()
        self.squeeze = nn.Conv2d(channels, squeeze, 1)
        self.small, self.large = nn.Conv2d(squeeze, expand, 1), nn.Conv2d(squeeze, expand, 3, padding=1)

    def forward(self, x):
        x = F.relu(self.squeeze(x))
        return torch.cat([F.relu(self.small(x)), F.relu(self.large(x))], 1)


def squeezenet(batch: int = 8, size: int = 64):
    pool = nn.MaxPool2d(3, 2, ceil_mode=True)
    layers = [nn.Conv2d(3, 64, 3, 2), nn.ReLU(), pool, Fire(64, 16, 64), Fire(128, 16, 64), pool, Fire(128, 32, 128)]
    layers += [Fire(256, 32, 128), nn.Dropout(0.5), nn.Conv2d(256, 100, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
    return nn.Sequential(*layers, nn.Flatten()), torch.randn(batch, 3, size, size)


class Perceiver(nn.Module):
    """A few latent vectors ask a long input, again and again."""

    def __init__(self, latents, width, rounds):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(latents, width))
        self.read = nn.Linear(32, width)
        self.cross = nn.MultiheadAttention(width, 1, batch_first=True)
        self.inner = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, "gelu", batch_first=True) for _ in range(rounds)
        )
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x, z = self.read(x), self.latents.expand(len(x), -1, -1)
        for layer in self.inner:
            z = layer(z + self.cross(z, x, x)[0])
        return self.head(z.mean(1))


def perceiver(batch: int = 4, length: int = 512):
    return Perceiver(48, 128, 4), torch.randn(batch, length, 32)


class Cycle(nn.Module):
    """An image-to-image generator with reflected borders and instance norms."""

    def __init__(self, width, blocks):
        super().__init__()
        w, norm, relu = width, nn.InstanceNorm2d, nn.ReLU()
        self.down = nn.Sequential(
            nn.ReflectionPad2d(3), nn.Conv2d(3, w, 7), norm(w), relu, nn.Conv2d(w, 2 * w, 3, 2, 1), norm(2 * w), relu
        )
        self.blocks = nn.ModuleList(
            nn.Sequential(
                *[nn.ReflectionPad2d(1), nn.Conv2d(2 * w, 2 * w, 3), norm(2 * w), relu],
                *[nn.ReflectionPad2d(1), nn.Conv2d(2 * w, 2 * w, 3), norm(2 * w)],
            )
            for _ in range(blocks)
        )
        self.up = nn.Sequential(nn.ConvTranspose2d(2 * w, w, 3, 2, 1, 1), norm(w), relu, nn.ReflectionPad2d(3))
        self.out = nn.Conv2d(w, 3, 7)

    def forward(self, x):
        x = self.down(x)
        for block in self.blocks:
            x = x + block(x)
        return torch.tanh(self.out(self.up(x)))


def cycle_generator(batch: int = 1, size: int = 64):
    return Cycle(24, 4), torch.randn(batch, 3, size, size)


def super_resolution(batch: int = 4, size: int = 40):
    layers = [nn.Conv2d(3, 64, 5, padding=2), nn.LeakyReLU(0.2), nn.Conv2d(64, 64, 3, padding=1), nn.LeakyReLU(0.2)]
    layers += [nn.Conv2d(64, 32, 3, padding=1), nn.LeakyReLU(0.2), nn.Conv2d(32, 27, 3, padding=1), nn.PixelShuffle(3)]
    return nn.Sequential(*layers), torch.randn(batch, 3, size, size)


class Triplets(nn.Module):
    """Embeddings that are pulled together and pushed apart by distances within a batch."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(300, 512), nn.ReLU6(), nn.Linear(512, 512), nn.ReLU6(), nn.Linear(512, 64))

    def forward(self, x, labels):
        z = F.normalize(self.body(x), dim=1)
        distances = (2 - 2 * z @ z.t()).clamp(min=1e-6).sqrt()
        same = labels[:, None] == labels[None, :]
        hardest = torch.where(same, distances, torch.zeros_like(distances)).amax(1)
        nearest = distances.masked_fill(same, 10.0).amin(1)
        return {"loss": F.relu(hardest - nearest + 0.2).mean()}


def triplets(batch: int = 256):
    return Triplets(), {"x": torch.randn(batch, 300), "labels": torch.arange(batch) % 16}


class Tagger(nn.Module):
    """A recurrent tagger whose loss sums over all paths of tags, step by step."""

    def __init__(self, words, tags):
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(words, 64), nn.GRU(64, 64, batch_first=True, bidirectional=True)
        self.head, self.between = nn.Linear(128, tags), nn.Parameter(torch.zeros(tags, tags))

    def forward(self, tokens, tags):
        scores = self.head(self.rnn(self.embedding(tokens))[0])
        paths = scores[:, 0]
        for t in range(1, scores.shape[1]):
            paths = torch.logsumexp(paths[:, :, None] + self.between, 1) + scores[:, t]
        right = scores.gather(2, tags[:, :, None]).sum((1, 2)) + self.between[tags[:, :-1], tags[:, 1:]].sum(1)
        return {"loss": (torch.logsumexp(paths, 1) - right).mean()}


def path_tagger(batch: int = 16, length: int = 40):
    tokens = torch.randint(2000, (batch, length))
    return Tagger(2000, 12), {"tokens": tokens, "tags": tokens % 12}


class Shifted(nn.Module):
    """Video: frames exchange an eighth of their channels, and share the weights of an image network."""

    def __init__(self, width):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 5, 2, 2), nn.BatchNorm2d(width), nn.Hardswish())
        self.blocks = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(4))
        self.head = nn.Linear(width, 20)

    def forward(self, video):
        n, frames = video.shape[:2]
        x = self.stem(video.flatten(0, 1))
        for block in self.blocks:
            each = x.unflatten(0, (n, frames))
            part = each.shape[2] // 8
            before, after = each[:, :, :part].roll(1, 1), each[:, :, part : 2 * part].roll(-1, 1)
            x = x + F.hardswish(block(torch.cat([before, after, each[:, :, 2 * part :]], 2).flatten(0, 1)))
        return self.head(x.mean((2, 3)).unflatten(0, (n, frames)).mean(1))


def shifted_video(batch: int = 2, frames: int = 6, size: int = 48):
    return Shifted(48), torch.randn(batch, frames, 3, size, size)


class Flow(nn.Module):
    """A differential equation, solved in fixed steps through a small network."""

    def __init__(self, width, steps):
        super().__init__()
        self.slope = nn.Sequential(
            nn.Linear(33, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 32)
        )
        self.steps = steps

    def forward(self, x):
        for step in range(self.steps):
            time = torch.full_like(x[:, :1], step / self.steps)
            middle = x + self.slope(torch.cat([x, time], 1)) / (2 * self.steps)
            x = x + self.slope(torch.cat([middle, time], 1)) / self.steps
        return x


def neural_ode(batch: int = 256):
    return Flow(96, 10), torch.randn(batch, 32)


class Capsules(nn.Module):
    """Parts vote for wholes, and votes that agree count more."""

    def __init__(self, parts, wholes):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 64, 9, 2), nn.ReLU(), nn.Conv2d(64, 64, 5, 2))
        self.votes = nn.Parameter(torch.randn(1, parts, wholes, 16, 8) * 0.05)

    @staticmethod
    def squash(x):
        size = x.square().sum(-1, keepdim=True)
        return size / (1 + size) * x / (size + 1e-8).sqrt()

    def forward(self, image):
        parts = self.squash(self.stem(image).flatten(2).reshape(len(image), -1, 8))
        votes = (self.votes @ parts[:, :, None, :, None]).squeeze(-1)
        counts = torch.zeros(*votes.shape[:3], 1)
        for _ in range(3):
            whole = self.squash((counts.softmax(2) * votes).sum(1, keepdim=True))
            counts = counts + (votes * whole).sum(-1, keepdim=True)
        return whole.squeeze(1).norm(dim=-1)


def capsules(batch: int = 16, size: int = 28):
    return Capsules(72, 10), torch.randn(batch, 1, size, size)
