"""What a model is called with: checked, made from text, and brought to another batch size; of PyTorch or of flax."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ampere.core.errors import ModelError, UsageError

Inputs = tuple[Any, ...] | dict[str, Any]


def from_text(text: str, flax: bool) -> Inputs:
    """`10x1x28x28` as tensors, or as arrays of which only shapes and types are looked at."""
    from ampere.tracing.inputs import parse_input

    specs = parse_input(text)
    try:
        if flax:
            import numpy as np

            return tuple(np.zeros(spec.shape, spec.dtype) for spec in specs)
        from ampere.runtimes.torch_model import tensors_of

        return tuple(tensors_of(specs))
    except TypeError as error:
        raise UsageError(f"an input of {text} is no array: {error}") from error
    except (RuntimeError, MemoryError) as error:
        raise UsageError(f"an input of {text} does not fit into memory: give a smaller batch") from error


def checked(example: Any, source: str, flax: bool) -> Inputs:
    """Positional inputs as a tuple, named ones as a dict."""
    if not isinstance(example, dict):
        example = tuple(example) if isinstance(example, (list, tuple)) else (example,)
    found, kind = list(tensors(example)), "array" if flax else "tensor"
    if not found:
        raise ModelError(f"{source} gives no {kind} as input: return (module, {kind}), or a tuple or dict of {kind}s")
    foreign = next((x for x in found if not flax and type(x).__module__ == "numpy"), None)
    if foreign is not None:
        raise ModelError(f"{source} gives an array of NumPy as input: make it a tensor with torch.from_numpy")
    if any(0 in tensor.shape[:1] for tensor in found):
        raise ModelError(f"{source} gives an empty input: its batch must be 1 or more")
    inputs: Inputs = example
    return inputs


def tensors(value: Any) -> Iterator[Any]:
    """The tensors or arrays among inputs, however they are nested."""
    if hasattr(value, "shape"):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from tensors(part)


def with_batch(inputs: Inputs, batch: int) -> Inputs:
    """The inputs with another batch: every tensor whose first dimension is the batch is repeated or cut."""
    before = next((int(x.shape[0]) for x in tensors(inputs) if len(x.shape)), 1)
    changed: Inputs = _rebatched(inputs, before, batch)
    return changed


def _rebatched(value: Any, before: int, after: int) -> Any:
    if hasattr(value, "shape"):
        batched = len(value.shape) and value.shape[0] == before
        return value[[place % before for place in range(after)]] if batched else value
    if isinstance(value, dict):
        return {name: _rebatched(part, before, after) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [_rebatched(part, before, after) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def check_batch(batch: Any) -> None:
    if not isinstance(batch, int) or isinstance(batch, bool) or batch < 1:
        raise UsageError(f"a batch of {batch!r} trains nothing: give 1 or more")
