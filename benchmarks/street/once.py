"""Models as their owners write them: the half that is looked at once, at the end. Nothing here knows of Ampere.

Each function returns a model and one batch of inputs. See `development.py` for how the halves were drawn.
"""

import torch
import torch.nn.functional as F
from torch import nn

# From `transformers`, by configuration: small, with random weights.


def clip(batch: int = 4, width: int = 128):
    from transformers import CLIPConfig, CLIPModel

    sides = {"hidden_size": width, "intermediate_size": 4 * width, "num_hidden_layers": 3, "num_attention_heads": 4}
    text = {**sides, "vocab_size": 3000, "max_position_embeddings": 32, "bos_token_id": 1, "eos_token_id": 2}
    vision = {**sides, "image_size": 64, "patch_size": 16}
    config = CLIPConfig(text_config=text, vision_config=vision, projection_dim=64)
    ids = torch.randint(3, 3000, (batch, 24))
    ids[:, -1] = 2
    return CLIPModel(config), {
        "input_ids": ids,
        "pixel_values": torch.randn(batch, 3, 64, 64),
        "return_loss": torch.tensor(True),
    }


def segformer(batch: int = 2, size: int = 96):
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    config = SegformerConfig(num_labels=6, depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 64, 128], decoder_hidden_size=64)
    labels = torch.randint(0, 6, (batch, size, size))
    return SegformerForSemanticSegmentation(config), {
        "pixel_values": torch.randn(batch, 3, size, size),
        "labels": labels,
    }


def t5(batch: int = 4, length: int = 40, width: int = 128):
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=3000,
        d_model=width,
        d_kv=32,
        d_ff=4 * width,
        num_layers=3,
        num_heads=4,
        decoder_start_token_id=0,
    )
    ids, labels = torch.randint(2, 3000, (batch, length)), torch.randint(2, 3000, (batch, length // 2))
    return T5ForConditionalGeneration(config), {"input_ids": ids, "labels": labels}


def vit(batch: int = 4, size: int = 96, width: int = 192):
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=width,
        num_hidden_layers=6,
        num_attention_heads=6,
        intermediate_size=4 * width,
        image_size=size,
        patch_size=8,
        num_labels=10,
    )
    labels = torch.randint(0, 10, (batch,))
    return ViTForImageClassification(config), {"pixel_values": torch.randn(batch, 3, size, size), "labels": labels}


def whisper(batch: int = 1, frames: int = 600, width: int = 192):
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=3000,
        d_model=width,
        encoder_layers=3,
        decoder_layers=3,
        encoder_attention_heads=6,
        decoder_attention_heads=6,
        encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
        max_source_positions=frames // 2,
        num_mel_bins=80,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    features, labels = torch.randn(batch, 80, frames), torch.randint(3, 3000, (batch, 32))
    return WhisperForConditionalGeneration(config), {"input_features": features, "labels": labels}


class LowRank(nn.Module):
    """A frozen linear layer and a trained correction of low rank."""

    def __init__(self, frozen, rank):
        super().__init__()
        self.frozen = frozen
        self.a = nn.Parameter(torch.randn(rank, frozen.in_features) * 0.02)
        self.b = nn.Parameter(torch.zeros(frozen.out_features, rank))

    def forward(self, x):
        return self.frozen(x) + x @ self.a.T @ self.b.T


def lora_bert(batch: int = 4, length: int = 48, width: int = 256, rank: int = 8):
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=8000,
        hidden_size=width,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=4 * width,
        num_labels=2,
    )
    model = BertForSequenceClassification(config)
    for parameter in model.bert.parameters():
        parameter.requires_grad = False
    for layer in model.bert.encoder.layer:
        attention = layer.attention.self
        attention.query, attention.value = LowRank(attention.query, rank), LowRank(attention.value, rank)
    ids, labels = torch.randint(0, 8000, (batch, length)), torch.randint(0, 2, (batch,))
    return model, {"input_ids": ids, "labels": labels}


# Written by hand.


class Tagger(nn.Module):
    def __init__(self, vocabulary, width, tags):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width, padding_idx=0)
        self.lstm = nn.LSTM(width, width, num_layers=2, bidirectional=True, batch_first=True, dropout=0.3)
        self.out = nn.Linear(2 * width, tags)

    def forward(self, words, tags):
        hidden, _ = self.lstm(F.dropout(self.embed(words), 0.3, self.training))
        scores = self.out(hidden)
        return {"loss": F.cross_entropy(scores.flatten(0, 1), tags.flatten()), "scores": scores}


def bilstm_tagger(batch: int = 16, length: int = 30, width: int = 100):
    return Tagger(5000, width, 17), (torch.randint(1, 5000, (batch, length)), torch.randint(0, 17, (batch, length)))


class VideoNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv3d(3, width, 3, padding=1), nn.BatchNorm3d(width)
        self.conv2, self.bn2 = nn.Conv3d(width, 2 * width, 3, padding=1), nn.BatchNorm3d(2 * width)
        self.conv3, self.bn3 = nn.Conv3d(2 * width, 4 * width, 3, padding=1), nn.BatchNorm3d(4 * width)
        self.fc = nn.Linear(4 * width, 10)

    def forward(self, clips):
        x = F.max_pool3d(F.relu(self.bn1(self.conv1(clips))), (1, 2, 2))
        x = F.max_pool3d(F.relu(self.bn2(self.conv2(x))), 2)
        x = F.relu(self.bn3(self.conv3(x)))
        return self.fc(F.adaptive_avg_pool3d(x, 1).flatten(1))


def cnn3d(batch: int = 2, frames: int = 8, size: int = 48, width: int = 16):
    return VideoNet(width), torch.randn(batch, 3, frames, size, size)


class DenseLayer(nn.Module):
    def __init__(self, channels, growth):
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(channels), nn.Conv2d(channels, 4 * growth, 1, bias=False)
        self.bn2, self.conv2 = nn.BatchNorm2d(4 * growth), nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, x):
        new = self.conv2(F.relu(self.bn2(self.conv1(F.relu(self.bn1(x))))))
        return torch.cat([x, new], dim=1)


class DenseNet(nn.Module):
    def __init__(self, growth, depth):
        super().__init__()
        channels, parts = 2 * growth, [nn.Conv2d(3, 2 * growth, 3, padding=1, bias=False)]
        for block in range(3):
            for _ in range(depth):
                parts.append(DenseLayer(channels, growth))
                channels += growth
            if block < 2:
                parts += [nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, channels // 2, 1), nn.AvgPool2d(2)]
                channels //= 2
        self.features, self.norm = nn.Sequential(*parts), nn.BatchNorm2d(channels)
        self.fc = nn.Linear(channels, 10)

    def forward(self, x):
        return self.fc(F.relu(self.norm(self.features(x))).mean((2, 3)))


def densenet(batch: int = 8, size: int = 32, growth: int = 12, depth: int = 6):
    return DenseNet(growth, depth), torch.randn(batch, 3, size, size)


class DLRM(nn.Module):
    """Sparse features in embedding bags, dense ones in an MLP, all pairs multiplied."""

    def __init__(self, rows, tables, width):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, width), nn.ReLU())
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(nn.Linear(pairs + width, 128), nn.ReLU(), nn.Linear(128, 1))
        self.register_buffer("rows", torch.tril_indices(tables + 1, tables + 1, -1))

    def forward(self, dense, sparse, clicked):
        x = self.bottom(dense)
        features = torch.stack([x, *(bag(sparse[:, i]) for i, bag in enumerate(self.bags))], dim=1)
        products = torch.bmm(features, features.transpose(1, 2))
        pairs = products[:, self.rows[0], self.rows[1]]
        scores = self.top(torch.cat([x, pairs], dim=1)).squeeze(1)
        return {"loss": F.binary_cross_entropy_with_logits(scores, clicked), "scores": scores}


def dlrm(batch: int = 128, rows: int = 5000, tables: int = 8, width: int = 16):
    dense, clicked = torch.randn(batch, 13), torch.rand(batch).round()
    return DLRM(rows, tables, width), (dense, torch.randint(0, rows, (batch, tables, 3)), clicked)


class Seq2Seq(nn.Module):
    """A GRU reads the source; another writes the target word by word, attending to it (Bahdanau)."""

    def __init__(self, vocabulary, width):
        super().__init__()
        self.source, self.target = nn.Embedding(vocabulary, width), nn.Embedding(vocabulary, width)
        self.encoder, self.cell = nn.GRU(width, width, batch_first=True), nn.GRUCell(2 * width, width)
        self.query, self.key, self.score = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, 1)
        self.out = nn.Linear(2 * width, vocabulary)

    def forward(self, source, target):
        memory, last = self.encoder(self.source(source))
        keys, hidden, losses = self.key(memory), last[0], []
        for t in range(target.shape[1] - 1):
            energy = self.score(torch.tanh(keys + self.query(hidden).unsqueeze(1))).squeeze(2)
            context = torch.einsum("bt,btd->bd", energy.softmax(1), memory)
            hidden = self.cell(torch.cat([self.target(target[:, t]), context], dim=1), hidden)
            losses.append(F.cross_entropy(self.out(torch.cat([hidden, context], dim=1)), target[:, t + 1]))
        return {"loss": torch.stack(losses).mean()}


def gru_seq2seq(batch: int = 16, length: int = 12, width: int = 96):
    return Seq2Seq(1500, width), (torch.randint(0, 1500, (batch, length)), torch.randint(0, 1500, (batch, length)))


class PointNet(nn.Module):
    """A small network moves the points, shared layers describe each, and the largest values describe all."""

    def __init__(self, width, classes):
        super().__init__()
        self.turn = nn.Sequential(nn.Conv1d(3, width, 1), nn.BatchNorm1d(width), nn.ReLU())
        self.matrix = nn.Linear(width, 9)
        self.conv1, self.bn1 = nn.Conv1d(3, width, 1), nn.BatchNorm1d(width)
        self.conv2, self.bn2 = nn.Conv1d(width, 2 * width, 1), nn.BatchNorm1d(2 * width)
        self.conv3, self.bn3 = nn.Conv1d(2 * width, 8 * width, 1), nn.BatchNorm1d(8 * width)
        self.fc1, self.fc2 = nn.Linear(8 * width, 2 * width), nn.Linear(2 * width, classes)

    def forward(self, points):
        turned = self.matrix(self.turn(points).amax(dim=2)).view(-1, 3, 3) + torch.eye(3, device=points.device)
        x = torch.bmm(turned, points)
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        x = self.bn3(self.conv3(x)).max(dim=2)[0]
        return F.log_softmax(self.fc2(F.dropout(F.relu(self.fc1(x)), 0.3, self.training)), dim=1)


def pointnet(batch: int = 8, points: int = 256, width: int = 32):
    return PointNet(width, 10), torch.randn(batch, 3, points)


class Bottleneck(nn.Module):
    def __init__(self, channels_in, width, stride):
        super().__init__()
        out = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(channels_in, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out)
        self.relu, self.downsample = nn.ReLU(inplace=True), None
        if stride != 1 or channels_in != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels_in, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += identity
        return self.relu(out)


class ResNet50(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        )
        blocks, channels = [], 64
        for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for number in range(count):
                blocks.append(Bottleneck(channels, width, stride if number == 0 else 1))
                channels = 4 * width
        self.blocks, self.fc = nn.Sequential(*blocks), nn.Linear(channels, classes)

    def forward(self, x):
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1), 1))


def resnet50_224(batch: int = 8):
    return ResNet50(1000), torch.randn(batch, 3, 224, 224)


class VAE(nn.Module):
    def __init__(self, width, latent):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, width, 4, 2, 1), nn.ReLU(), nn.Conv2d(width, 2 * width, 4, 2, 1), nn.ReLU(), nn.Flatten()
        )
        self.mu, self.logvar = nn.Linear(2 * width * 49, latent), nn.Linear(2 * width * 49, latent)
        self.expand, self.width = nn.Linear(latent, 2 * width * 49), width
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(2 * width, width, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(width, 1, 4, 2, 1)
        )

    def forward(self, images):
        hidden = self.encoder(images)
        mu, logvar = self.mu(hidden), self.logvar(hidden)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        drawn = self.decoder(self.expand(z).view(-1, 2 * self.width, 7, 7))
        error = F.binary_cross_entropy_with_logits(drawn, images.sigmoid(), reduction="sum")
        divergence = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return {"loss": (error + divergence) / len(images), "images": drawn}


def vae(batch: int = 32, width: int = 32, latent: int = 16):
    return VAE(width, latent), torch.randn(batch, 1, 28, 28)
