"""A model, however it is named: traced to a network, or made ready to be trained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ampere.errors import UsageError
from ampere.models.flax_models import is_flax
from ampere.models.loading import LoadedModel, find_space, load_model, need_torch
from ampere.network import Network
from ampere.profiling.sources import Source, SpaceSource, source_of


def trace(model: Any, inputs: Any, *, loss: Callable[[Any], Any] | None = None, name: str = "") -> Network:
    """The layers of one training step of a model, without training it and without touching it."""
    if is_flax(model):
        from ampere.jax_tracing import trace as trace_flax

        if loss is not None:
            raise UsageError("a flax model is traced with its usual loss: leave out loss")
        return trace_flax(model, inputs, name=name)
    from ampere.tracing import trace as trace_model

    return trace_model(model, inputs, loss=loss, name=name)


def network_of(model: str | LoadedModel | Network, input: str | None = None) -> Network:
    """The traced network of a family, a `file.py:function`, a stored network file or a loaded model."""
    if isinstance(model, Network):
        return model
    if isinstance(model, str) and model.endswith(".json"):
        from ampere.profiles.networks import load_network

        return load_network(Path(model))
    loaded = load_model(model, input) if isinstance(model, str) else model
    return trace(loaded.model, loaded.inputs, name=loaded.name)


def source_for(model: str | LoadedModel, input: str | None) -> Callable[[], Source]:
    """Names are checked at once; what needs torch waits until the workers are starting."""
    if isinstance(model, str) and ":" not in model and input is None:
        space = find_space(model)
        need_torch()
        return lambda: SpaceSource(space)
    return lambda: source_of(load_model(model, input) if isinstance(model, str) else model)
