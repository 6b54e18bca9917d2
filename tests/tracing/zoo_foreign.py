"""Models of `transformers`, small, built from their configurations."""

from typing import Any

import torch
from torch import nn


def tokens(batch: int = 2, length: int = 6, vocabulary: int = 50) -> torch.Tensor:
    return torch.randint(vocabulary, (batch, length), generator=torch.Generator().manual_seed(0))


def bert(masked: bool = False) -> tuple[nn.Module, Any]:
    """With a mask its Python looks at the mask's values."""
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, num_labels=3
    )
    inputs = {"input_ids": tokens(), "labels": torch.zeros(2, dtype=torch.long)}
    mask = {"attention_mask": torch.ones(2, 6, dtype=torch.long)} if masked else {}
    return BertForSequenceClassification(config), {**inputs, **mask}


def gpt2() -> tuple[nn.Module, Any]:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=2, n_positions=8)
    return GPT2LMHeadModel(config), {"input_ids": tokens(), "labels": tokens()}


def llama() -> tuple[nn.Module, Any]:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=50,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    return LlamaForCausalLM(config), {"input_ids": tokens()}


def vit() -> tuple[nn.Module, Any]:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        image_size=16,
        patch_size=8,
        num_labels=3,
    )
    return ViTForImageClassification(config), torch.empty(2, 3, 16, 16)


def resnet() -> tuple[nn.Module, Any]:
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(embedding_size=8, hidden_sizes=[16, 32], depths=[1, 2], layer_type="bottleneck", num_labels=3)
    return ResNetForImageClassification(config), {"pixel_values": torch.empty(2, 3, 32, 32)}


FOREIGN = {
    "hf_bert": bert,
    "hf_bert_masked": lambda: bert(masked=True),
    "hf_gpt2": gpt2,
    "hf_llama": llama,
    "hf_vit": vit,
    "hf_resnet": resnet,
}
