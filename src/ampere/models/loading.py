"""From what the user names to a model with inputs: `cnn5`, `file.py:function` or `package.module:function`."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.core.errors import ModelError, RuntimeMissingError, UsageError

from .spaces import SPACES, Space
from .user_code import find_function, guarded, is_file

if TYPE_CHECKING:
    from torch import Tensor

    Inputs = tuple[Any, ...] | dict[str, Any]


# Models written with flax: known for what they are without importing flax, and their inputs as arrays.


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


# From what the user writes to a model with inputs: `cnn5`, `file.py:function` or `package.module:function`.


@dataclass(frozen=True)
class LoadedModel:
    """A model, what it is called with, and how to make it again."""

    model: Any  # a torch.nn.Module, or a flax.nnx.Module
    inputs: Inputs  # positional ones as a tuple, named ones as a dict
    name: str
    factory: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    space: Space | None = None


def load_model(spec: str, /, input: str | None = None, **arguments: Any) -> LoadedModel:
    """A family by name, or what a function of the user's returns; `arguments` go to the function that builds it."""
    if ":" not in spec:
        need_torch()
        return load_from_space(find_space(spec), input, arguments)
    need_a_library()
    source, _, function_name = spec.rpartition(":")
    function, folder = find_function(source, function_name)
    _need_no_more(function, function_name, arguments)
    with guarded(f"{function_name} in {source}", folder):
        built = function(**arguments)
    model, inputs = _model_and_inputs(built, spec, input)
    factory = f"{Path(source).expanduser().resolve()}:{function_name}" if is_file(source) else spec
    return LoadedModel(model, inputs, _short(source, function_name), factory, arguments)


def _need_no_more(function: Callable[..., Any], name: str, given: Mapping[str, Any]) -> None:
    """A class that wants its sizes is the usual mistake."""
    wanted = [
        parameter.name
        for parameter in _parameters(function)
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    missing = [wish for wish in wanted if wish not in given]
    if missing:
        raise ModelError(
            f"{name} wants {', '.join(missing)}, and is called without: name a function that needs nothing, "
            f"such as def build(): return {name}(...)"
        )


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """A class is asked for those of its __init__: flax's are called in a way of their own."""
    try:
        if isinstance(function, type):
            return list(_signature(inspect.getattr_static(function, "__init__")).parameters.values())[1:]
        return list(_signature(function).parameters.values())
    except (TypeError, ValueError):  # what is written in C does not tell
        return []


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """A decorator that gives the arguments itself is called without, whatever it is wrapped around."""
    return inspect.signature(function, follow_wrapped=False)


def load_from_space(space: Space, input: str | None, changed: Mapping[str, Any]) -> LoadedModel:
    unknown = sorted(set(changed) - set(space.default))
    if unknown:
        raise UsageError(f"{space.name} has no argument {unknown[0]!r}: it has {', '.join(space.default)}")
    arguments = space.arguments(changed)
    if not isinstance(arguments["batch"], int) or arguments["batch"] < 1:
        raise UsageError(f"a batch of {arguments['batch']!r} trains nothing: give 1 or more")
    source, _, function_name = space.factory.rpartition(":")
    build = getattr(importlib.import_module(source), function_name)
    with guarded(f"{space.name} with {dict(changed)}", Path.cwd()):
        built = build(**arguments)
    model, inputs = _model_and_inputs(built, space.name, input)
    # With inputs of the user's own it is no longer the network that the space samples around.
    return LoadedModel(model, inputs, space.name, space.factory, arguments, space if input is None else None)


def find_space(name: str) -> Space:
    if name in SPACES:
        return SPACES[name]
    if is_file(name):
        raise UsageError(f"{name} names no function: write {name}:NAME, the function that returns the model")
    near = difflib.get_close_matches(name.lower(), SPACES, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"the families are {', '.join(SPACES)};"
    raise UsageError(f"there is no model {name!r}: {hint} A model of your own is file.py:function")


def need_a_library() -> None:
    """A model of the user's is written with PyTorch, or with flax."""
    if importlib.util.find_spec("flax") is None:
        need_torch()


def need_torch() -> None:
    if importlib.util.find_spec("torch") is None:
        raise RuntimeMissingError("PyTorch is not installed: pip install 'ampere-energy[torch]'")


def _model_and_inputs(built: Any, spec: str, input: str | None) -> tuple[Any, Inputs]:
    model, example = built if isinstance(built, tuple) and len(built) == 2 else (built, None)
    flax = is_flax(model)
    if not flax:
        _need_module(model, spec)
    if input is not None:
        example = arrays_from_text(input) if flax else _inputs_from_text(input)
    if example is None:
        shape = "10x28x28x1" if flax else "10x1x28x28"
        raise ModelError(f"{spec} does not tell its input: give --input {shape}, or return (module, example inputs)")
    return model, checked_arrays(example, spec) if flax else _checked(example, spec)


def _need_module(model: Any, spec: str) -> None:
    need_torch()
    from torch import nn

    if not isinstance(model, nn.Module):
        raise ModelError(
            f"{spec} returned {type(model).__name__}, not a model: return a torch.nn.Module or a flax.nnx.Module, "
            "alone or as (module, example inputs)"
        )


def _inputs_from_text(text: str) -> Any:
    from ampere.runtimes.torch_model import tensors_of
    from ampere.tracing.inputs import parse_input

    try:
        return tensors_of(parse_input(text))
    except (RuntimeError, MemoryError) as error:
        raise UsageError(f"an input of {text} does not fit into memory: give a smaller batch") from error


def _checked(example: Any, spec: str) -> Inputs:
    from torch import Tensor

    inputs = (
        example if isinstance(example, dict) else tuple(example) if isinstance(example, (list, tuple)) else (example,)
    )
    tensors: list[Tensor] = [
        v for v in (inputs.values() if isinstance(inputs, dict) else inputs) if isinstance(v, Tensor)
    ]
    if not tensors:
        raise ModelError(f"{spec} gives no tensor as input: return (module, tensor), or a tuple or dict of tensors")
    if any(tensor.numel() == 0 for tensor in tensors):
        raise ModelError(f"{spec} gives an empty input: its batch must be 1 or more")
    return inputs


def _short(source: str, function_name: str) -> str:
    stem = Path(source).stem if is_file(source) else source.rpartition(".")[2]
    return f"{stem}:{function_name}"
