"""Adapters by peft: frozen weights have no gradient and no state, in what is traced and in memory."""

import importlib.util

import pytest

from ampere.core.allocations import GRADIENTS, OPTIMIZER, PARAMETERS, alive_at
from ampere.tracing.memory import allocations_of
from ampere.tracing.trace import trace

missing = [name for name in ("peft", "transformers") if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} is not installed")


def test_only_adapters_are_trained():
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import GPT2Config, GPT2LMHeadModel

    ids = torch.randint(0, 100, (2, 8))
    small = GPT2Config(vocab_size=100, n_positions=8, n_embd=16, n_layer=1, n_head=2, eos_token_id=None)
    model = get_peft_model(GPT2LMHeadModel(small), LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True))
    inputs = {"input_ids": ids, "labels": ids}
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert trained == 2 * 16 + 2 * 3 * 16
    assert trace(model, inputs).layers

    found = allocations_of(model, inputs, "adam")
    end = max(each.begins for each in found)

    def held(part: str) -> int:
        return sum(each.bytes for each in alive_at(found, end) if each.part == part)

    assert held(GRADIENTS) == 4 * trained
    assert held(OPTIMIZER) == pytest.approx(2 * 4 * trained, abs=64)
    assert held(PARAMETERS) > 20 * held(GRADIENTS)
