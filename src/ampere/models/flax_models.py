"""Models written with flax: known for what they are without importing flax, and their inputs as arrays."""

from __future__ import annotations

import sys
from typing import Any

from ampere.errors import ModelError, UsageError


def is_flax(model: Any) -> bool:
    """Whoever made a flax model has imported flax."""
    nnx = sys.modules.get("flax.nnx")
    return nnx is not None and isinstance(model, nnx.Module)


def refuse_flax(model: Any, done: str) -> None:
    if is_flax(model):
        raise ModelError(f"only PyTorch models can be {done}, and {type(model).__name__} is written with flax")


def arrays_from_text(text: str) -> tuple[Any, ...]:
    """`10x28x28x1` as arrays: only their shapes and types are looked at."""
    import numpy as np

    from ampere.tracing.inputs import parse_input

    try:
        return tuple(np.zeros(spec.shape, spec.dtype) for spec in parse_input(text))
    except (TypeError, MemoryError) as error:
        raise UsageError(f"an input of {text} is no array: {error}") from error


def checked_arrays(example: Any, spec: str) -> Any:
    """Positional ones as a tuple, named ones as a dict."""
    inputs = (
        example if isinstance(example, (dict, tuple)) else tuple(example) if isinstance(example, list) else (example,)
    )
    arrays = [value for value in (inputs.values() if isinstance(inputs, dict) else inputs) if hasattr(value, "shape")]
    if not arrays:
        raise ModelError(f"{spec} gives no array as input: return (module, array), or a tuple or dict of arrays")
    if any(0 in array.shape for array in arrays):
        raise ModelError(f"{spec} gives an empty input: its batch must be 1 or more")
    return inputs
