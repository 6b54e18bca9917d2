"""A model, however it is named: resolved once for a call, and traced once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ampere.core import Network
from ampere.core.allocations import Allocation
from ampere.core.errors import UsageError
from ampere.models.loading import LoadedModel, find_space, is_flax, load_model, need_torch, refuse_step
from ampere.models.spaces import Space
from ampere.profiling.sources import DeviceSource, LiveSource, Source, SpaceSource, source_of, trace_loaded
from ampere.tracing.inputs import parse_shapes

# A family's name, `file.py:function`, a network file, a LoadedModel, a Network, a live module (with `inputs`, or as
# `(module, inputs)`), or a function that builds one.
Model = Any


def trace(model: Any, inputs: Any, *, loss: Callable[[Any], Any] | None = None, name: str = "") -> Network:
    """The layers of one training step of a model, without training it and without touching it."""
    if is_flax(model):
        from ampere.tracing.jax.trace import trace as trace_flax

        if loss is not None:
            raise UsageError("a flax model is traced with its usual loss: leave out loss")
        return trace_flax(model, inputs, name=name)
    from ampere.tracing.trace import trace as trace_model

    return trace_model(model, inputs, loss=loss, name=name)


class ResolvedModel:
    """A model with a name; its layers are traced when they are first needed, and once."""

    def __init__(
        self,
        name: str,
        *,
        network: Network | None = None,
        loaded: LoadedModel | None = None,
        space: Space | None = None,
    ) -> None:
        self.name, self._network, self._loaded, self._space = name, network, loaded, space
        self.followed: dict[tuple[str, str], list[Allocation]] = {}  # memory of its step, by optimizer and precision

    @cached_property
    def network(self) -> Network:
        if self._network is not None:
            return self._network
        if self._space is not None:
            return replace(self._source.original().network, name=self.name)
        return trace_loaded(self.loaded)

    @property
    def trainable(self) -> bool:
        """Whether it is more than a description of layers."""
        return self._network is None

    @property
    def own_code(self) -> bool:
        """Whether a worker process can build it by its own code; a live object exists in this process only."""
        return self._space is not None or bool(self._loaded and self._loaded.factory)

    @property
    def is_family(self) -> bool:
        """Whether it is one of Ampere's own families, of whichever widths."""
        return self._space is not None or bool(self._loaded and self._loaded.space)

    @property
    def optimizer(self) -> str | None:
        """The optimizer that the model itself configures, such as a LightningModule; None where it configures none."""
        return getattr(self._loaded, "optimizer", None)

    @property
    def is_step(self) -> bool:
        """Whether it is a user's function that does a whole training step."""
        return self._loaded is not None and self._loaded.step is not None

    @property
    def is_flax(self) -> bool:
        return self._loaded is not None and is_flax(self._loaded.model)

    @cached_property
    def loaded(self) -> LoadedModel:
        if self._network is not None:
            raise UsageError(f"{self.name} is a network, which cannot be trained: name the model itself")
        return self._loaded or load_model(self.name)

    def source(self) -> Source:
        """Where networks like it come from."""
        return self._source

    @cached_property
    def _source(self) -> Source:
        if self._space is not None:
            return SpaceSource(self._space)
        if self._network is not None:
            return LiveSource(self.name, self._network)
        if self.loaded.space is not None and dict(self.loaded.arguments) == dict(self.loaded.space.default):
            return source_of(self.loaded)
        return source_of(self.loaded, self.network)


class VariedModel(ResolvedModel):
    """A model whose batches have several shapes. By itself it stands for the commonest; `parts` are all of them."""

    def __init__(self, parts: Sequence[tuple[float, ResolvedModel]]) -> None:
        """Each part with its share of the iterations; the shares add up to 1."""
        self.parts = tuple(parts)
        for _, part in self.parts:
            part.network  # noqa: B018  a shape that does not fit is refused before anything is measured
        commonest = max(self.parts, key=lambda part: part[0])[1]
        super().__init__(commonest.name, loaded=commonest.loaded)


class WholeDevice(ResolvedModel):
    """No model: what is profiled for all of them."""

    def __init__(self) -> None:
        super().__init__(DeviceSource.name)

    def source(self) -> Source:
        return DeviceSource()


def resolve(model: Model, inputs: Any = None) -> ResolvedModel:
    """A family's name is checked at once and built later, while workers start; a user's code is run at once."""
    if isinstance(model, ResolvedModel):
        return model
    if isinstance(model, tuple) and len(model) == 2 and inputs is None:
        return resolve(*model)
    if len(shapes := _shapes(inputs)) > 1:
        return VariedModel([(share, resolve(model, shape)) for share, shape in shapes])
    if isinstance(model, (Network, Path)) or (isinstance(model, str) and model.endswith(".json")):
        network = model if isinstance(model, Network) else _stored(Path(model), inputs)
        return ResolvedModel(network.name or "network", network=network)
    if isinstance(model, str) and ":" not in model and inputs is None:
        space = find_space(model)
        need_torch()
        return ResolvedModel(model, space=space)
    loaded = _loaded(model, inputs)
    return ResolvedModel(loaded.name, loaded=loaded)


def _shapes(inputs: Any) -> list[tuple[float, str]]:
    """Several shapes of batches, as text or as pairs of text and weight; empty for inputs of one shape."""
    if isinstance(inputs, (list, tuple)) and inputs:
        pairs = [each for each in inputs if isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str)]
        inputs = " | ".join(f"{weight}*{shape}" for shape, weight in pairs) if len(pairs) == len(inputs) else None
    return parse_shapes(inputs) if isinstance(inputs, str) and "|" in inputs else []


def _stored(path: Path, inputs: Any) -> Network:
    from ampere.storage.networks import load_network

    if inputs is not None:
        raise UsageError(f"{path} has its input already: trace the model again with another one")
    return load_network(path)


def _loaded(model: Model, inputs: Any) -> LoadedModel:
    if not isinstance(model, LoadedModel):
        return load_model(model, inputs)
    if inputs is None or inputs is model.inputs:
        return model
    refuse_step(model, "given inputs")
    return replace(load_model(model.model, inputs), name=model.name, factory=model.factory, arguments=model.arguments)
