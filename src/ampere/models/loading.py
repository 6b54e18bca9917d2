"""A model with its inputs: `cnn5`, `file.py:function`, `package.module:function`, a function, or a live model."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ampere.core.errors import ModelError, RuntimeMissingError, UsageError
from ampere.core.optimizers import OPTIMIZERS

from .inputs import Inputs, check_batch, checked, from_text, with_batch
from .spaces import SPACES, Space
from .user_code import find_function, guarded, is_file, offer_of_file, path_of


@dataclass(frozen=True)
class LoadedModel:
    """A model, what it is called with, and how to make it again."""

    model: Any  # a torch.nn.Module, or a flax.nnx.Module
    inputs: Inputs  # positional ones as a tuple, named ones as a dict
    name: str
    factory: str | None  # makes it in another process; None where only its layers can be trained there
    arguments: Mapping[str, Any] = field(default_factory=dict)
    space: Space | None = None
    optimizer: str | None = None  # that its own configure_optimizers names
    own_inputs: bool = False  # whether the factory makes the inputs as well
    rebatched: int | None = None  # the batch that its inputs were repeated or cut to
    step: Any = None  # the WholeStep of code that trains by itself, whose models are `model`; None of a plain model


def load_model(
    model: Any,
    /,
    inputs: Any = None,
    *,
    input: str | None = None,
    batch: int | None = None,
    arguments: Mapping[str, Any] | None = None,
    **more: Any,
) -> LoadedModel:
    """A model of a family, of the user's code, or the user's own object, ready to be traced and trained.

    `inputs` are example tensors, or text such as `10x1x28x28` (also `input`); without them the function that builds
    the model returns them with it. `arguments`, and all other keywords, go to that function. `batch` goes there too if
    the function has such a parameter; else the inputs are repeated or cut to it.
    """
    given = {**(arguments or {}), **more}
    if batch is not None:
        check_batch(batch)
    example = inputs if input is None else input
    if isinstance(model, str) and ":" not in model:
        need_torch()
        changed = given if batch is None else {**given, "batch": batch}
        return load_from_space(find_space(model), example, changed)
    need_a_library()
    if isinstance(model, str):
        return _from_reference(model, example, batch, given)
    if callable(model) and not _is_module(model):
        return _from_function(model, example, batch, given)
    return _live(model, example, batch, given)


def _from_reference(reference: str, example: Any, batch: int | None, given: dict[str, Any]) -> LoadedModel:
    source, _, name = reference.rpartition(":")
    function = find_function(source, name)
    if _is_module(function):  # it can be called, too, but not without inputs
        raise ModelError(
            f"{reference} is a model, not a function that returns one: write def build(): return {name}, "
            "torch.randn(32, 3, 32, 32), with an input like the model's own, and name build"
        )
    factory = f"{path_of(source).resolve()}:{name}" if is_file(source) else reference
    stem = Path(source).stem if is_file(source) else source.rpartition(".")[2]
    return _built(function, reference, f"{stem}:{name}", factory, example, batch, given)


def _from_function(function: Callable[..., Any], example: Any, batch: int | None, given: dict[str, Any]) -> LoadedModel:
    name = getattr(function, "__name__", type(function).__name__)
    return _built(function, name, name, _reference_to(function), example, batch, given)


def _built(
    function: Callable[..., Any],
    source: str,
    name: str,
    factory: str | None,
    example: Any,
    batch: int | None,
    given: dict[str, Any],
) -> LoadedModel:
    passes_batch = batch is not None and _takes(function, "batch")
    arguments = {**given, "batch": batch} if passes_batch else given
    _need_no_more(function, name.rpartition(":")[2], arguments)
    with guarded(f"{name.rpartition(':')[2]} in {source.rpartition(':')[0] or 'Python'}"):
        made, step = _run(function, arguments)
    if step is not None:
        if example is not None or (batch is not None and not passes_batch):
            refused = "--input" if example is not None else "--batch"
            raise UsageError(f"{name} does a whole training step with inputs of its own: leave out {refused}")
        return LoadedModel(step.model, (), name, factory, arguments, None, _agreed(step.optimizers), True, step=step)
    model, inputs = _model_and_inputs(made, source, example)
    rebatched = None if passes_batch else batch
    if rebatched is not None:
        inputs = with_batch(inputs, rebatched)
    own_inputs = example is None and isinstance(made, tuple) and rebatched is None
    return LoadedModel(model, inputs, name, factory, arguments, None, own_optimizer(model), own_inputs, rebatched)


def _run(function: Callable[..., Any], arguments: Mapping[str, Any]) -> tuple[Any, Any]:
    """What the user's function returns, and the training step that it is or makes, if any."""
    if "torch" not in sys.modules:
        return function(**arguments), None
    from ampere.runtimes.torch_step import NotAStep, run_once

    try:
        return run_once(function, dict(arguments), _is_module)
    except NotAStep as problem:
        name = getattr(function, "__name__", type(function).__name__)
        raise ModelError(f"{name} is no whole training step: it {problem}") from None


def _agreed(optimizers: list[Any]) -> str | None:
    """The name of the one optimizer that several are; None where they differ, or are none of ours."""
    names = {name_of(optimizer) for optimizer in optimizers}
    return names.pop() if len(names) == 1 else None


LEAST_SIZE = 8  # an integer argument from which on it may be a width or a length, not a number of blocks
NO_SIZE = ("batch", "seed")


def resized(loaded: LoadedModel, share: Callable[[], float]) -> LoadedModel | None:
    """The same model from its own factory, with smaller integer arguments; None where the factory has none.

    Each argument becomes about `share()` of what it is, a multiple of what it was a multiple of (up to 8).
    """
    if loaded.factory is None:
        return None
    source, _, name = loaded.factory.rpartition(":")
    usual = {p.name: p.default for p in _parameters(find_function(source, name))}
    now = {**usual, **loaded.arguments}
    sizes = {n: v for n, v in now.items() if type(v) is int and v >= LEAST_SIZE and n not in NO_SIZE}
    if not sizes:
        return None
    smaller = {n: _smaller(v, share()) for n, v in sizes.items()}
    inputs = None if loaded.own_inputs else loaded.inputs
    return load_model(loaded.factory, inputs, arguments={**loaded.arguments, **smaller})


def _smaller(size: int, share: float) -> int:
    unit = math.gcd(size, 8)
    return max(1, round(size * share / unit)) * unit


def _live(model: Any, example: Any, batch: int | None, given: Mapping[str, Any]) -> LoadedModel:
    """A model that is already there: its code cannot be run elsewhere, so a worker builds it from its layers."""
    if given:
        raise UsageError(
            f"a model that is already built takes no {next(iter(given))}: give the function that builds it"
        )
    name = type(model).__name__
    if not _is_module(model):
        raise UsageError(f"{name} is no model: give a torch.nn.Module, a flax.nnx.Module, or what builds one")
    model, inputs = _model_and_inputs((model, None), name, example)
    if batch is not None:
        inputs = with_batch(inputs, batch)
    return LoadedModel(model, inputs, name, None, optimizer=own_optimizer(model), rebatched=batch)


def _reference_to(function: Callable[..., Any]) -> str | None:
    """Where another process finds a function; None of one made on the fly, in a notebook or by the running script."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    name = getattr(function, "__qualname__", "")
    if module is None or module.__name__ == "__main__" or getattr(module, name, None) is not function:
        return None
    file = getattr(module, "__file__", None)
    return f"{Path(file).resolve()}:{name}" if file and "." not in module.__name__ else f"{module.__name__}:{name}"


def _takes(function: Callable[..., Any], name: str) -> bool:
    return any(p.name == name or p.kind is p.VAR_KEYWORD for p in _parameters(function))


def _need_no_more(function: Callable[..., Any], name: str, given: Mapping[str, Any]) -> None:
    """A class that needs its sizes is the usual mistake."""
    needed = [
        parameter.name
        for parameter in _parameters(function)
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    missing = [parameter for parameter in needed if parameter not in given]
    if missing:
        raise ModelError(
            f"{name} needs {' and '.join(missing)}: give --arg {missing[0]}=VALUE, or name a function that needs "
            f"nothing, such as def build(): return {name}(...), or return {name}, ({missing[0]},) for a training step"
        )


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function, or of a class's __init__: flax's classes are called in a way of their own."""
    try:
        if isinstance(function, type):
            return list(_signature(inspect.getattr_static(function, "__init__")).parameters.values())[1:]
        return list(_signature(function).parameters.values())
    except (TypeError, ValueError):  # what is written in C has no signature
        return []


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """A decorator that gives the arguments itself is called without, whatever it is wrapped around."""
    return inspect.signature(function, follow_wrapped=False)


def load_from_space(space: Space, example: Any, changed: Mapping[str, Any]) -> LoadedModel:
    unknown = sorted(set(changed) - set(space.default))
    if unknown:
        raise UsageError(f"{space.name} has no argument {unknown[0]!r}: it has {', '.join(space.default)}")
    arguments = space.arguments(changed)
    check_batch(arguments["batch"])
    source, _, function_name = space.factory.rpartition(":")
    build = getattr(importlib.import_module(source), function_name)
    with guarded(f"{space.name} with {dict(changed)}"):
        built = build(**arguments)
    model, inputs = _model_and_inputs(built, space.name, example)
    # With inputs of the user's own it is no longer the network that the space samples around.
    return LoadedModel(model, inputs, space.name, space.factory, arguments, space if example is None else None)


def find_space(name: str) -> Space:
    if name in SPACES:
        return SPACES[name]
    if is_file(name):
        offer = offer_of_file(path_of(name))
        raise UsageError(f"{name} names no function: write {name}:NAME, {offer}")
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


def is_flax(model: Any) -> bool:
    """Whether a model is written with flax, which then is imported already."""
    nnx = sys.modules.get("flax.nnx")
    return nnx is not None and isinstance(model, nnx.Module)


def refuse_flax(model: Any, done: str) -> None:
    if is_flax(model):
        raise ModelError(f"only PyTorch models can be {done}, and {type(model).__name__} is written with flax")


def refuse_step(loaded: LoadedModel, done: str) -> None:
    if loaded.step is not None:
        raise ModelError(
            f"only a model can be {done}, and {loaded.name} does a whole training step: name the function that "
            "builds the model"
        )


def _is_module(model: Any) -> bool:
    torch = sys.modules.get("torch")
    return is_flax(model) or (torch is not None and isinstance(model, torch.nn.Module))


def _model_and_inputs(built: Any, source: str, example: Any) -> tuple[Any, Inputs]:
    model, returned = built if isinstance(built, tuple) and len(built) == 2 else (built, None)
    flax = is_flax(model)
    if not flax:
        _need_module(model, source)
    if isinstance(example, str):
        example = from_text(example, flax)
    example = returned if example is None else example
    example = getattr(model, "example_input_array", None) if example is None else example  # of a LightningModule
    if example is None:
        shape = "10x28x28x1" if flax else "10x1x28x28"
        raise ModelError(f"{source} does not tell its input: give --input {shape}, or return (module, example inputs)")
    inputs = checked(example, source, flax)
    if not flax:
        _fill_lazy(model, inputs, source)
    return model, inputs


def _fill_lazy(model: Any, inputs: Inputs, source: str) -> None:
    from ampere.runtimes.plain_script import called_with, fill_lazy
    from ampere.runtimes.torch_model import called

    with guarded(f"the first call of {source}, which sizes its lazy layers,"):
        fill_lazy(called(model, inputs), *called_with(inputs))


def _need_module(model: Any, source: str) -> None:
    need_torch()
    from torch import nn

    if not isinstance(model, nn.Module):
        raise ModelError(
            f"{source} returned {type(model).__name__}, not a model, and trained nothing: return a torch.nn.Module or "
            "a flax.nnx.Module, alone or as (module, example inputs), or do a whole training step"
        )


def own_optimizer(model: Any) -> str | None:
    """The optimizer that a LightningModule's configure_optimizers makes; None where it is none of ours."""
    configure = getattr(model, "configure_optimizers", None)
    if not callable(configure):
        return None
    try:
        made = configure()
    except Exception:  # many ask the trainer for the length of the training
        return None
    while isinstance(made, (list, tuple, dict)) and made:
        made = made.get("optimizer") if isinstance(made, dict) else made[0]
    return name_of(made)


def name_of(made: Any) -> str | None:
    """An optimizer's name among ours; None where it is none of them."""
    name = type(made).__name__.lower()
    has_momentum = name == "sgd" and getattr(made, "defaults", {}).get("momentum")
    return "momentum" if has_momentum else name if name in OPTIMIZERS else None
