"""Models as their owners write them: the half for development. Nothing here knows of Ampere.

Each function returns a model and one batch of inputs. Which model is in which half was drawn once, before any was
measured: `random.Random(16).sample(sorted(names), len(names) // 2)`. `once.py` has the other half.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# From `transformers`, by configuration: small, with random weights.


def tokens(vocabulary: int, batch: int, length: int) -> Tensor:
    return torch.randint(0, vocabulary, (batch, length))


def bert(batch: int = 4, length: int = 64, width: int = 256):
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=8000,
        hidden_size=width,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=4 * width,
        num_labels=5,
    )
    labels = torch.randint(0, 5, (batch,))
    inputs = {"input_ids": tokens(8000, batch, length), "attention_mask": torch.ones(batch, length, dtype=torch.long)}
    return BertForSequenceClassification(config), {**inputs, "labels": labels}


def gpt2(batch: int = 2, length: int = 96, width: int = 192):
    from transformers import GPT2Config, GPT2LMHeadModel

    ids = tokens(5000, batch, length)
    config = GPT2Config(vocab_size=5000, n_positions=length, n_embd=width, n_layer=5, n_head=6)
    return GPT2LMHeadModel(config), {"input_ids": ids, "labels": ids}


def llama(batch: int = 2, length: int = 128, width: int = 320):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=4000,
        hidden_size=width,
        intermediate_size=2 * width + width // 2,
        num_hidden_layers=6,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=length,
    )
    ids = tokens(4000, batch, length)
    return LlamaForCausalLM(config), {"input_ids": ids, "labels": ids}


def mamba(batch: int = 2, length: int = 48, width: int = 96):
    from transformers import MambaConfig, MambaForCausalLM

    config = MambaConfig(vocab_size=2000, hidden_size=width, num_hidden_layers=3, state_size=8, use_cache=False)
    ids = tokens(2000, batch, length)
    return MambaForCausalLM(config), {"input_ids": ids, "labels": ids}


def mobilenet_v2(batch: int = 4, size: int = 96):
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    config = MobileNetV2Config(num_labels=20, image_size=size, depth_multiplier=1.0)
    images = torch.randn(batch, 3, size, size)
    return MobileNetV2ForImageClassification(config), {"pixel_values": images, "labels": torch.randint(0, 20, (batch,))}


def resnet(batch: int = 8, size: int = 64):
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(
        embedding_size=32, hidden_sizes=[32, 64, 128, 256], depths=[2, 2, 2, 2], layer_type="basic", num_labels=10
    )
    images = torch.randn(batch, 3, size, size)
    return ResNetForImageClassification(config), {"pixel_values": images, "labels": torch.randint(0, 10, (batch,))}


# Written by hand.


class Discriminator(nn.Module):
    """DCGAN's, scoring real images and generated ones in one batch."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(3, width, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(width, width * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(width * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(width * 2, width * 4, 4, 2, 1, bias=False),
            nn.BatchNorm2d(width * 4),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(width * 4, width * 8, 4, 2, 1, bias=False),
            nn.BatchNorm2d(width * 8),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(width * 8, 1, 4, 1, 0, bias=False),
        )

    def forward(self, real, fake):
        scores = self.main(torch.cat([real, fake])).flatten()
        wanted = torch.cat([scores.new_ones(len(real)), scores.new_zeros(len(fake))])
        return {"loss": F.binary_cross_entropy_with_logits(scores, wanted), "scores": scores}


def dcgan_discriminator(batch: int = 8, width: int = 48):
    return Discriminator(width), (torch.randn(batch, 3, 64, 64), torch.randn(batch, 3, 64, 64))


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.heads = heads

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        weights = q @ k.transpose(-2, -1) / math.sqrt(c // self.heads)
        mask = torch.triu(torch.ones(t, t, dtype=torch.bool, device=x.device), 1)
        weights = weights.masked_fill(mask, float("-inf")).softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, c))


class GPTBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = SelfAttention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    """About ten million parameters, tied input and output."""

    def __init__(self, vocabulary, length, width, depth, heads):
        super().__init__()
        self.tok = nn.Embedding(vocabulary, width)
        self.pos = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(GPTBlock(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids):
        x = self.tok(ids) + self.pos(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tok.weight)
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        return logits, {"loss": loss}


class LossOnly(nn.Module):
    """What a training loop calls when the loss is written next to the model."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model(ids)[1]


def gpt_10m(batch: int = 4, length: int = 256, width: int = 320, depth: int = 8):
    return LossOnly(GPT(1024, length, width, depth, 8)), tokens(1024, batch, length)


class SageLayer(nn.Module):
    """Mean of the neighbours by gather and scatter."""

    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.own, self.neighbours = nn.Linear(channels_in, channels_out), nn.Linear(channels_in, channels_out)

    def forward(self, x, edges):
        source, target = edges
        summed = torch.zeros(len(x), x.shape[1], device=x.device).index_add_(0, target, x[source])
        degree = torch.zeros(len(x), device=x.device).scatter_add_(0, target, torch.ones_like(target, dtype=x.dtype))
        return self.own(x) + self.neighbours(summed / degree.clamp(min=1).unsqueeze(1))


class GraphSage(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.layers = nn.ModuleList([SageLayer(64, width), SageLayer(width, width), SageLayer(width, classes)])

    def forward(self, x, edges):
        for layer in self.layers[:-1]:
            x = F.dropout(F.relu(layer(x, edges)), 0.5, self.training)
        return self.layers[-1](x, edges)


def graphsage(nodes: int = 2000, edges: int = 16000, width: int = 96):
    return GraphSage(width, 7), (torch.randn(nodes, 64), torch.randint(0, nodes, (2, edges)))


class Expert(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return self.down(F.silu(self.up(x)))


class MixtureLayer(nn.Module):
    """Each token goes to its two best experts."""

    def __init__(self, width, experts):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(Expert(width) for _ in range(experts))

    def forward(self, x):
        shape, x = x.shape, x.flatten(0, -2)
        weights, chosen = self.gate(x).softmax(-1).topk(2, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            share = (weights * (chosen == number)).sum(-1, keepdim=True)
            out = out + share * expert(x)
        return out.view(shape)


class MixtureClassifier(nn.Module):
    def __init__(self, width, experts, depth):
        super().__init__()
        self.embed = nn.Linear(32, width)
        self.layers = nn.ModuleList(MixtureLayer(width, experts) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.embed(x)
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = x + layer(norm(x))
        return self.head(x.mean(dim=1))


def mixture_of_experts(batch: int = 16, length: int = 16, width: int = 96):
    return MixtureClassifier(width, 4, 2), torch.randn(batch, length, 32)


class SpectrogramCNN(nn.Module):
    """A waveform, its spectrogram, and a CNN over it."""

    def __init__(self, width):
        super().__init__()
        self.register_buffer("window", torch.hann_window(256))
        self.conv1 = nn.Conv2d(1, width, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.conv3 = nn.Conv2d(2 * width, 4 * width, 3, stride=2, padding=1)
        self.head = nn.Linear(4 * width, 12)

    def forward(self, waves):
        spectrum = torch.stft(waves, 256, 128, window=self.window, return_complex=True).abs()
        x = torch.log1p(spectrum).unsqueeze(1)
        for conv in (self.conv1, self.conv2, self.conv3):
            x = F.relu(conv(x))
        return self.head(x.mean(dim=(2, 3)))


def spectrogram_cnn(batch: int = 8, samples: int = 16000, width: int = 24):
    return SpectrogramCNN(width), torch.randn(batch, samples)


class TabularMLP(nn.Module):
    """Numbers and categories of a table; the categories are embedded."""

    def __init__(self, sizes, numbers, width):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size, 8) for size in sizes)
        self.norm = nn.BatchNorm1d(numbers)
        self.layers = nn.Sequential(
            nn.Linear(8 * len(sizes) + numbers, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(width, width // 2),
            nn.BatchNorm1d(width // 2),
            nn.ReLU(),
            nn.Linear(width // 2, 2),
        )

    def forward(self, categories, numbers):
        embedded = [table(categories[:, i]) for i, table in enumerate(self.tables)]
        return self.layers(torch.cat([*embedded, self.norm(numbers)], dim=1))


def tabular_mlp(batch: int = 256, width: int = 256):
    sizes = [50, 12, 7, 31, 100]
    categories = torch.stack([torch.randint(0, size, (batch,)) for size in sizes], dim=1)
    return TabularMLP(sizes, 20, width), (categories, torch.randn(batch, 20))


class UNetBlock(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv1, self.conv2 = (
            nn.Conv2d(channels_in, channels_out, 3, padding=1),
            nn.Conv2d(channels_out, channels_out, 3, padding=1),
        )
        self.norm1, self.norm2 = nn.GroupNorm(8, channels_out), nn.GroupNorm(8, channels_out)
        self.skip = nn.Conv2d(channels_in, channels_out, 1) if channels_in != channels_out else nn.Identity()

    def forward(self, x):
        h = F.silu(self.norm1(self.conv1(x)))
        return F.silu(self.norm2(self.conv2(h)) + self.skip(x))


class PixelAttention(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.GroupNorm(8, channels)
        self.qkv, self.out = nn.Conv2d(channels, 3 * channels, 1), nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(b, 3, c, h * w).unbind(1)
        weights = torch.einsum("bci,bcj->bij", q, k).div(math.sqrt(c)).softmax(-1)
        return x + self.out(torch.einsum("bij,bcj->bci", weights, v).reshape(b, c, h, w))


class UNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down1, self.down2 = UNetBlock(width, width), UNetBlock(width, 2 * width)
        self.middle1, self.attention = UNetBlock(2 * width, 4 * width), PixelAttention(4 * width)
        self.up2 = UNetBlock(4 * width + 2 * width, 2 * width)
        self.up1 = UNetBlock(2 * width + width, width)
        self.last = nn.Conv2d(width, 3, 1)

    def forward(self, noisy):
        a = self.down1(self.first(noisy))
        b = self.down2(F.avg_pool2d(a, 2))
        c = self.attention(self.middle1(F.avg_pool2d(b, 2)))
        b = self.up2(torch.cat([F.interpolate(c, scale_factor=2, mode="nearest"), b], dim=1))
        a = self.up1(torch.cat([F.interpolate(b, scale_factor=2, mode="nearest"), a], dim=1))
        return self.last(a)


def unet(batch: int = 4, size: int = 48, width: int = 32):
    return UNet(width), torch.randn(batch, 3, size, size)


class WaveNetLayer(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.padding = dilation
        self.filter = nn.Conv1d(channels, channels, 2, dilation=dilation)
        self.gate = nn.Conv1d(channels, channels, 2, dilation=dilation)
        self.residual, self.skip = nn.Conv1d(channels, channels, 1), nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        padded = F.pad(x, (self.padding, 0))
        h = torch.tanh(self.filter(padded)) * torch.sigmoid(self.gate(padded))
        return x + self.residual(h), self.skip(h)


class WaveNet(nn.Module):
    def __init__(self, channels, depth):
        super().__init__()
        self.embed = nn.Embedding(256, channels)
        self.layers = nn.ModuleList(WaveNetLayer(channels, 2**i) for i in range(depth))
        self.out1, self.out2 = nn.Conv1d(channels, channels, 1), nn.Conv1d(channels, 256, 1)

    def forward(self, samples):
        x, skips = self.embed(samples).transpose(1, 2), 0
        for layer in self.layers:
            x, skip = layer(x)
            skips = skips + skip
        logits = self.out2(F.relu(self.out1(F.relu(skips))))
        return {"loss": F.cross_entropy(logits[:, :, :-1], samples[:, 1:])}


def wavenet(batch: int = 2, length: int = 1000, channels: int = 32):
    return WaveNet(channels, 8), torch.randint(0, 256, (batch, length))
