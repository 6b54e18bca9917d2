"""Training as it is done: one way a function. Nothing here knows of Ampere.

A function returns a model with one batch of inputs, or a function that does a whole training step. `train.py` trains
either in a plain loop.
"""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

# Models that several ways share.


def _images(batch: int = 16, size: int = 24, channels: int = 3) -> tuple[Tensor, Tensor]:
    return torch.randn(batch, channels, size, size), torch.randint(0, 10, (batch,))


def _convolutional(width: int = 24) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, padding=1, stride=2),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.Conv2d(2 * width, 4 * width, 3, padding=1, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4 * width, 10),
    )


class Block(nn.Module):
    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.query_key_value(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(mixed)
        return x + self.down(F.gelu(self.up(self.after(x))))


class Language(nn.Module):
    """A small decoder with a loss of its own."""

    def __init__(self, width: int = 128, depth: int = 4, words: int = 2000, tied: bool = False) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(512, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.recomputing = False
        if tied:
            self.head.weight = self.words.weight

    def forward(self, ids: Tensor) -> dict[str, Tensor]:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recomputing else block(x)
        scores = self.head(self.norm(x))
        return {"loss": F.cross_entropy(scores[:, :-1].flatten(0, 1), ids[:, 1:].flatten())}


def _sentences(batch: int = 4, length: int = 64, words: int = 2000) -> Tensor:
    return torch.randint(0, words, (batch, length))


# Ways of a model.


def checkpointed():
    model = Language()
    model.recomputing = True
    return model, _sentences()


def tied():
    return Language(tied=True), _sentences()


class LowRank(nn.Module):
    """A frozen layer, and a small trained one beside it."""

    def __init__(self, frozen: nn.Linear, rank: int = 8) -> None:
        super().__init__()
        self.frozen = frozen.requires_grad_(False)
        self.down = nn.Linear(frozen.in_features, rank, bias=False)
        self.up = nn.Linear(rank, frozen.out_features, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.frozen(x) + self.up(self.down(x))


def adapters_by_hand():
    model = Language().requires_grad_(False)
    for block in model.blocks:
        block.query_key_value, block.up = LowRank(block.query_key_value), LowRank(block.up)
    return model, _sentences()


def adapters_by_peft():
    from peft import LoraConfig, get_peft_model
    from transformers import GPT2Config, GPT2LMHeadModel

    ids = _sentences()
    model = GPT2LMHeadModel(GPT2Config(vocab_size=2000, n_positions=64, n_embd=128, n_layer=4, n_head=4))
    adapted = get_peft_model(model, LoraConfig(r=8, target_modules=["c_attn"], fan_in_fan_out=True))
    return adapted, {"input_ids": ids, "labels": ids}


class Recommender(nn.Module):
    def __init__(self, rows: int = 200_000, width: int = 64) -> None:
        super().__init__()
        self.table = nn.Embedding(rows, width, sparse=True)
        self.net = nn.Sequential(nn.Linear(8 * width, 256), nn.ReLU(), nn.Linear(256, 2))

    def forward(self, ids: Tensor) -> Tensor:
        return self.net(self.table(ids).flatten(1))


def sparse_embeddings():
    return Recommender(), torch.randint(0, 200_000, (256, 8))


# Ways of a step.


def accumulation():
    model = _convolutional()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    parts = [_images(8) for _ in range(4)]

    def step():
        optimizer.zero_grad()
        for images, labels in parts:
            loss = F.cross_entropy(model(images), labels) / len(parts)
            loss.backward()
        optimizer.step()
        return loss

    return step


def clipping():
    model, ids = Language(), _sentences()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step():
        optimizer.zero_grad()
        loss = model(ids)["loss"]
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return step


def mixed_precision():
    model, (images, labels) = _convolutional(), _images()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


class TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = _convolutional()
        self.classes, self.boxes = nn.Linear(10, 10), nn.Linear(10, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.trunk(x)
        return self.classes(features), self.boxes(features)


def several_losses():
    model, (images, labels) = TwoHeads(), _images()
    optimizer, boxes = torch.optim.Adam(model.parameters(), lr=1e-4), torch.rand(len(labels), 4)

    def step():
        optimizer.zero_grad()
        scores, places = model(images)
        loss = F.cross_entropy(scores, labels) + 0.5 * F.smooth_l1_loss(places, boxes)
        loss.backward()
        optimizer.step()
        return loss

    return step


def gan():
    generator = nn.Sequential(
        nn.Linear(64, 64 * 36),
        nn.Unflatten(1, (64, 6, 6)),
        nn.ReLU(),
        nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(32, 3, 4, stride=2, padding=1),
        nn.Tanh(),
    )
    discriminator = nn.Sequential(
        nn.Conv2d(3, 32, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(32, 64, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(64 * 36, 1),
    )
    making = torch.optim.Adam(generator.parameters(), lr=2e-4)
    judging = torch.optim.Adam(discriminator.parameters(), lr=2e-4)
    real, _ = _images()
    ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)

    def step():
        made = generator(torch.randn(len(real), 64))
        judging.zero_grad()
        judged = F.binary_cross_entropy_with_logits(discriminator(real), ones)
        judged = judged + F.binary_cross_entropy_with_logits(discriminator(made.detach()), zeros)
        judged.backward()
        judging.step()
        making.zero_grad()
        fooled = F.binary_cross_entropy_with_logits(discriminator(made), ones)
        fooled.backward()
        making.step()
        return judged, fooled

    return step


def teacher_and_student():
    teacher, student = _convolutional(48).eval(), _convolutional(16)
    images, labels = _images()
    optimizer = torch.optim.SGD(student.parameters(), lr=1e-3, momentum=0.9)

    def step():
        optimizer.zero_grad()
        with torch.no_grad():
            wanted = teacher(images).softmax(1)
        scores = student(images)
        loss = F.kl_div(scores.log_softmax(1), wanted, reduction="batchmean") + F.cross_entropy(scores, labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


def schedule_and_average():
    model, (images, labels) = _convolutional(), _images()
    average = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10_000)

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            for kept, new in zip(average.parameters(), model.parameters(), strict=True):
                kept.lerp_(new, 0.001)
        return loss

    return step


# Batches of two shapes: what the plain loop does, and the model by itself. Three of four are short.


def two_lengths():
    model = Language()
    batches = [*(_sentences(4, 32) for _ in range(3)), _sentences(4, 128)]
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def step():
        for ids in batches:
            optimizer.zero_grad()
            model(ids)["loss"].backward()
            optimizer.step()

    return step


def language():
    """The model of `two_lengths`, for shapes that are given."""
    return Language()
