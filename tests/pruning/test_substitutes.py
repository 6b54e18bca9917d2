"""Recurrent layers and attention, narrowed with all their gates and heads."""

import pytest
import torch
from torch import nn

import ampere
from ampere.pruning import saving
from ampere.pruning.probing import probe
from ampere.pruning.saving import write_tensors
from ampere.pruning.structure import find_groups, without
from ampere.pruning.substitutes import hidden, read
from ampere.storage.files import write_document
from ampere.tracing.trace import trace

SMALL = {
    "lstm": {"hidden": [24, 16], "batch": 4},
    "transformer": {"layers": 2, "width": 32, "heads": 4, "ff": 64, "sequence": 8, "vocabulary": 50, "batch": 4},
    "resnet": {"blocks": [1, 1], "widths": [8, 16], "batch": 4},
}


def probed(model, inputs):
    return probe(model, inputs, trace(model, inputs), (), lambda done, total, words: None)


def halved(prunable):
    """Every group at half its width."""
    return without(prunable.model, prunable.groups, {g.name: range(g.width // 2) for g in prunable.groups})


def output_of(model, inputs):
    return model(**inputs) if isinstance(inputs, dict) else model(*inputs)


def learns(model, inputs):
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.01), []
    for _ in range(12):
        optimizer.zero_grad()
        output = output_of(model.train(), inputs)
        loss = nn.functional.cross_entropy(getattr(output, "logits", output), torch.arange(4) % 2)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[-1] < losses[0]


@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("layers", [1, 2])
def test_a_recurrent_layer_without_units_that_do_nothing_says_the_same(cell, layers):
    """Units whose outgoing weights are zero change nothing for the others."""
    torch.manual_seed(0)
    layer, gone = cell(5, 8, num_layers=layers, batch_first=True), [1, 6]
    with torch.no_grad():
        for name, weight in layer.named_parameters():
            if name.startswith("weight") and not name.startswith("weight_ih_l0"):
                weight[:, gone] = 0
    x = torch.randn(3, 7, 5)
    before = layer(x)[0]
    after = hidden(layer, gone)(x)[0]
    assert layer.hidden_size == 6
    assert torch.allclose(after, before[..., [0, 2, 3, 4, 5, 7]], atol=1e-6)


def test_a_recurrent_layer_reads_fewer_features():
    torch.manual_seed(0)
    layer, x = nn.LSTM(5, 8, batch_first=True), torch.randn(3, 7, 5)
    x[..., 2] = 0
    before = layer(x)[0]
    assert torch.allclose(read(layer, [2])(x[..., [0, 1, 3, 4]])[0], before, atol=1e-6)


@pytest.mark.parametrize("family", SMALL)
def test_families_are_narrowed_everywhere_and_learn(family):
    torch.manual_seed(0)
    loaded = ampere.load_model(family, **SMALL[family])
    prunable = probed(loaded.model, loaded.inputs)
    narrowed = halved(prunable)
    assert [reason.split(":")[1] for reason in prunable.fixed] == [" its channels are the model's output"]
    assert output_of(narrowed, loaded.inputs).shape == output_of(loaded.model, loaded.inputs).shape
    assert learns(narrowed, loaded.inputs)
    parameters = [sum(p.numel() for p in model.parameters()) for model in (narrowed, loaded.model)]
    assert parameters[0] < 0.6 * parameters[1]


def test_attention_loses_the_same_channels_of_every_head():
    loaded = ampere.load_model("transformer", **SMALL["transformer"])
    prunable = probed(loaded.model, loaded.inputs)
    stream = max(prunable.groups, key=lambda group: len(group.members))
    assert (stream.width, stream.channels_each) == (8, 4)
    narrowed = without(prunable.model, [stream], {stream.name: [3]})
    attention = narrowed.encoder.layers[0].self_attn
    assert (attention.embed_dim, attention.head_dim, attention.num_heads) == (28, 7, 4)
    kept = [c for c in range(32) if c % 8 != 3]
    assert torch.equal(
        attention.out_proj.weight, loaded.model.encoder.layers[0].self_attn.out_proj.weight[kept][:, kept]
    )


@pytest.mark.parametrize("family", ["lstm", "transformer"])
def test_what_was_saved_is_loaded_again(family, tmp_path):
    loaded = ampere.load_model(family, **SMALL[family])
    narrowed = halved(probed(loaded.model, loaded.inputs))
    fresh = ampere.load_model(family, **SMALL[family]).model
    body = {"modules": saving._changes(loaded.model, narrowed), "weights": "pruned.safetensors"}
    write_tensors(tmp_path / "pruned.safetensors", narrowed.state_dict())
    write_document(tmp_path / "pruned.json", saving.KIND, saving.FORMAT, body)
    again = saving.load_pruned(tmp_path / "pruned.json", fresh).eval()
    assert torch.equal(output_of(again, loaded.inputs), output_of(narrowed.eval(), loaded.inputs))


class Reader(nn.Module):
    """A user's: a convolution, a GRU over what it sees, and attention of one head written by hand."""

    def __init__(self):
        super().__init__()
        self.see, self.memory = nn.Conv1d(3, 12, 3, padding=1), nn.GRU(12, 16, batch_first=True)
        self.ask, self.key, self.value = nn.Linear(16, 8), nn.Linear(16, 8), nn.Linear(16, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        steps, _ = self.memory(self.see(x).relu().transpose(1, 2))
        near = (self.ask(steps) @ self.key(steps).transpose(1, 2)).softmax(-1)
        return self.head((near @ self.value(steps)).mean(1))


def test_a_users_model_of_several_sorts():
    torch.manual_seed(0)
    model, x = Reader(), (torch.randn(4, 3, 10),)
    prunable = probed(model, x)
    assert {"see", "memory"} <= {g.name for g in prunable.groups}
    narrowed = halved(prunable)
    assert narrowed.memory.hidden_size == 8
    assert learns(narrowed, x)
    assert model.memory.hidden_size == 16


def test_a_layer_of_two_directions_is_left_alone():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.memory, self.mix, self.head = nn.LSTM(8, 8, bidirectional=True), nn.Linear(16, 12), nn.Linear(12, 2)

        def forward(self, x):
            return self.head(self.mix(self.memory(x)[0]).relu().mean(0))

    names = {g.name for g in find_groups(Both(), (torch.randn(5, 4, 8),)) if not g.obstacle}
    assert "mix" in names


@pytest.mark.parametrize("sort", ["resnet", "vit", "bert"])
def test_models_of_transformers(sort):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    pixels = {"pixel_values": torch.randn(4, 3, 16, 16)}
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    if sort == "resnet":
        config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic")
        model, inputs = transformers.ResNetForImageClassification(config), pixels
    elif sort == "vit":
        config = transformers.ViTConfig(**sizes, image_size=16, patch_size=8)
        model, inputs = transformers.ViTForImageClassification(config), pixels
    else:
        config = transformers.BertConfig(**sizes, vocab_size=60, max_position_embeddings=16)
        model, inputs = transformers.BertForSequenceClassification(config), {"input_ids": torch.randint(60, (4, 12))}
    prunable = probed(model, inputs)
    if sort != "resnet":
        heads = [group for group in prunable.groups if group.channels_each == 8]
        assert [group.width for group in heads] == [4, 4]
    narrowed = halved(prunable)
    assert narrowed(**inputs).logits.shape == model(**inputs).logits.shape
    assert learns(narrowed, inputs)
