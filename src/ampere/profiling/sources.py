"""Sources of networks to profile: a space, one model and narrower versions of it, or a recording."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from math import lcm
from random import Random
from typing import Any, Protocol

from ampere.core import KINDS, Layer, Network, work
from ampere.core.errors import ModelError, ProfileError, UsageError
from ampere.core.kinds import FIXED
from ampere.core.kinds import resized as resized_layer
from ampere.core.network import InputSpec, with_loss
from ampere.devices.replayed import ReplayedWorker
from ampere.devices.workloads import traced
from ampere.models.loading import LoadedModel, is_flax, resized
from ampere.models.sorts import EVERY_SORT, LONE_LAYERS, SHARES, sample_lone
from ampere.models.spaces import Space
from ampere.storage.profile import Observation

from .experiment import Experiment, Workload, from_layers

NARROWEST = 1 / 8  # of a width


class Source(Protocol):
    """The networks that a profile is made for."""

    name: str

    def original(self) -> Experiment:
        """The network that the user named."""
        ...

    def sample(self, rng: Random) -> Experiment:
        """A random network like it."""
        ...

    def opaque(self) -> list[Experiment]:
        """Modules without a layer kind, each trained alone."""
        ...


class SpaceSource:
    """Networks that a factory builds from sampled arguments."""

    def __init__(self, space: Space) -> None:
        self.name, self._space = space.name, space
        self._original = self.of(dict(space.default))

    def of(self, arguments: dict[str, Any]) -> Experiment:
        """The network that the factory builds from these arguments."""
        return _built(self._space, arguments, "network")

    def opaque(self) -> list[Experiment]:
        return []

    def original(self) -> Experiment:
        return self._original

    def sample(self, rng: Random) -> Experiment:
        return self.of(self._space.sample(rng))


def _built(space: Space, arguments: dict[str, Any], purpose: str) -> Experiment:
    workload = {"factory": space.factory, "arguments": arguments}
    return Experiment(traced(space.factory, arguments), workload, purpose)


def _named(name: str, experiment: Experiment) -> Experiment:
    """Networks have the name of their sort: intervals are calibrated on sorts that were held out."""
    return replace(experiment, network=experiment.network.renamed(name))


class DeviceSource:
    """Networks of every sort, and large layers alone: what a profile of a whole device is made of."""

    name = "device"
    targets = 2 * len(EVERY_SORT)  # that uncertainty is reduced for: each sort should be among them

    def __init__(self) -> None:
        self._deck: list[str] = []  # sorts in their shares, so that few draws have each of them
        self._lone: list[str] = []  # and layers alone, so that large ones of each kind are there

    def original(self) -> Experiment:
        first = next(iter(EVERY_SORT.values()))
        return _named(first.name, _built(first, dict(first.default), "network"))

    def sample(self, rng: Random) -> Experiment:
        name = _next(self._deck, [name for name, share in SHARES.items() for _ in range(share)], rng)
        if name == "lone":
            arguments = sample_lone(rng, _next(self._lone, [*LONE_LAYERS], rng))
            return _named(name, _built(EVERY_SORT[name], arguments, "layer"))
        return _named(name, _built(EVERY_SORT[name], EVERY_SORT[name].sample(rng), "network"))

    def opaque(self) -> list[Experiment]:
        return []


def _next(deck: list[str], full: list[str], rng: Random) -> str:
    """The next card of a deck, which is filled and shuffled when it is empty."""
    if not deck:
        deck += full
        rng.shuffle(deck)
    return deck.pop()


class ModelSource:
    """A user's model, and random networks of its layers with narrower widths."""

    remedy = "give the function that builds the model, as file.py:function, so that a worker can run its code"

    def __init__(self, name: str, network: Network, workload: Workload, loaded: LoadedModel | None = None) -> None:
        """`loaded` is the model itself, where its operations can be written down."""
        self.name, self._network, self._workload, self._loaded = name, network, workload, loaded

    @cached_property
    def program(self) -> Workload:
        """The operations of the model one by one, as a part of a workload, so that it is trained without its code."""
        if self._loaded is None or any(not KINDS[layer.kind].described for layer in self._network.layers):
            return {}
        from ampere.tracing.program import program_of

        found = program_of(self._loaded.model, self._loaded.inputs)
        return {} if found is None else {"program": found}

    def opaque(self) -> list[Experiment]:
        """Modules that no kind describes, each trained alone as it is, where its code can be run."""
        if "factory" not in self._workload or "step" in self._workload:
            return []
        layers = {layer.config["path"]: layer for layer in self._network.layers if layer.kind == "opaque"}
        return [self._alone(layer) for path, layer in layers.items() if path]

    def _alone(self, layer: Layer) -> Experiment:
        workload = {**self._workload, "path": layer.config["path"], "inputs": _inputs(layer.config["inputs"])}
        return Experiment(Network(with_loss([layer]), self._network.batch), workload, "opaque")

    def original(self) -> Experiment:
        strangers = sorted({layer.name for layer in self._network.layers if not KINDS[layer.kind].described})
        if strangers and "factory" not in self._workload:
            raise ModelError(
                f"{', '.join(strangers)} of {self.name} cannot be trained from a description of layers: {self.remedy}"
            )
        return Experiment(self._network, self._workload, "network")

    def sample(self, rng: Random) -> Experiment:
        return from_layers(narrow(self._network, rng), "network")


def _inputs(texts: tuple[str, ...]) -> list[Any] | dict[str, Any]:
    """Input specs from the tracer's texts: `3x5x8`, or `mask=8x8:bool` where inputs are named."""
    from ampere.tracing.inputs import parse_input

    named = [text.rpartition("=") for text in texts]
    specs = [parse_input(spec)[0].to_json() for _, _, spec in named]
    names = [name for name, _, _ in named]
    return dict(zip(names, specs, strict=True)) if any(names) else specs


def narrow(network: Network, rng: Random) -> Network:
    """The same layers with narrower widths. Equal widths stay equal; the network's inputs and outputs keep theirs."""
    layers = [layer for layer in network.layers if layer.kind != "opaque"]
    ends = [layer for layer in layers if KINDS[layer.kind].parametric]
    kept = {ends[0].channels_in, ends[-1].channels_out} if ends else set()
    widths = {w for x in layers if KINDS[x.kind].widths != FIXED for w in _widths(x)} - kept
    chosen = {w: _narrower(w, rng.uniform(NARROWEST, 1.0), _groups(layers, w)) for w in sorted(widths)}
    narrowed, before, after = [], 0, 0
    for layer in layers:
        changed = _narrowed(layer, chosen, before, after)
        narrowed.append(changed)
        before, after = layer.channels_out, changed.channels_out
    return Network(tuple(narrowed), network.batch, network.name)


def _groups(layers: list[Layer], width: int) -> int:
    """The number that a width must stay a multiple of: the groups of every convolution and norm that has it."""
    return lcm(*(layer.config.get("groups", 1) or 1 for layer in layers if width in _widths(layer)))


def _widths(layer: Layer) -> tuple[int, int]:
    return layer.channels_in, layer.channels_out


def _narrower(width: int, factor: float, groups: int) -> int:
    return max(1, round(width * factor / groups)) * groups


def _narrowed(layer: Layer, chosen: dict[int, int], before: int, after: int) -> Layer:
    def new(width: int) -> int:
        if before and width > before and width % before == 0 and layer.kind == "linear":
            return width // before * after  # flattened: several positions of each channel
        return chosen.get(width, width)

    return resized_layer(layer, new(layer.channels_in), new(layer.channels_out))


class FlaxSource(ModelSource):
    """A Flax model. Every runtime, JAX too, trains it from its layers, so that all measure the same network."""

    remedy = (
        "`ampere measure --runtime jax` trains its own code, and `ampere estimate --no-profiling` with a profile that "
        "is there names what it leaves open"
    )

    def __init__(self, loaded: LoadedModel, network: Network) -> None:
        super().__init__(loaded.name, network, {"layers": network.to_json()})
        self._flax = loaded

    @property
    def has_code(self) -> bool:
        """Whether a worker can build it; a live object exists in this process only."""
        return bool(self._flax.factory)

    def by_own_code(self) -> Experiment:
        """The model trained by its own code instead of from its layers."""
        workload = {"factory": self._flax.factory, "arguments": dict(self._flax.arguments)}
        return Experiment(self._network, {**workload, **_shapes(self._flax.inputs)}, "network")


def _shapes(inputs: Any) -> dict[str, Any]:
    """The specs of inputs that are plain arrays; empty for others, which the model's factory provides itself."""
    if not isinstance(inputs, tuple) or not all(hasattr(value, "shape") for value in inputs):
        return {}
    return {"inputs": [InputSpec(tuple(value.shape), str(value.dtype), _below(value)).to_json() for value in inputs]}


def _below(array: Any) -> int | None:
    """The bound below which an input's integers lie; None for floats, and where an example has only zeros."""
    return int(array.max()) + 1 if array.dtype.kind in "iu" and array.size and array.max() > 0 else None


class LiveSource(ModelSource):
    """A model that exists in this process only: it is built from its program, its narrower likes from their layers.

    Layers that are known by their code only cannot be built elsewhere, and are left out.
    """

    def __init__(self, name: str, network: Network, loaded: LoadedModel | None = None) -> None:
        described = tuple(layer for layer in network.layers if layer.kind != "opaque")
        if not any(work(layer).parameters for layer in described):
            raise ModelError(
                f"no layer of {name} can be trained from its description: name the model as file.py:function, so that "
                "its own code is run"
            )
        kept = Network(described, network.batch, network.name)
        super().__init__(
            name, kept, {"layers": kept.to_json()}, loaded if len(described) == len(network.layers) else None
        )

    def original(self) -> Experiment:
        experiment = super().original()
        return replace(experiment, workload={**experiment.workload, **self.program})


def source_of(loaded: LoadedModel, network: Network | None = None) -> Source:
    """The source for a model: its family's space if it is a built-in default, else the model and narrower versions.

    `network` is the model's trace, where it was traced before.
    """
    if loaded.space is not None and dict(loaded.arguments) == dict(loaded.space.default):
        return SpaceSource(loaded.space)
    network = network or trace_loaded(loaded)
    if is_flax(loaded.model):
        return FlaxSource(loaded, network)
    if not loaded.factory:
        return LiveSource(loaded.name, network, None if loaded.step is not None else loaded)
    workload: Workload = {"factory": loaded.factory, "arguments": dict(loaded.arguments)}
    if loaded.step is not None:
        workload = {**workload, "step": True, "calls": loaded.step.calls}
    if not loaded.own_inputs:  # else the model's own code makes them: indices and masks of its own that fit it
        from ampere.runtimes.torch_model import specs_of

        specs = specs_of(loaded.inputs)
        inputs = {k: s.to_json() for k, s in specs.items()} if isinstance(specs, dict) else [s.to_json() for s in specs]
        workload = {**workload, "inputs": inputs}
    return ModelSource(loaded.name, network, workload, None if loaded.step is not None else loaded)


SIZES_FROM = 0.4  # of a model's own arguments
ATTEMPTS = 4  # for each network: not every size can be built


def by_own_code(loaded: LoadedModel, original: Experiment, count: int, rng: Random) -> list[Experiment]:
    """The model itself and smaller ones that its own factory builds, at most `count`, all trained by their own code."""
    found = [original]
    for _ in range(ATTEMPTS * count):
        if len(found) >= count:
            break
        try:
            smaller = resized(loaded, lambda: rng.uniform(SIZES_FROM, 1.0))
            if smaller is None:
                break
            experiment = source_of(smaller).original()
        except ModelError:
            continue
        if experiment.network.layers not in [known.network.layers for known in found]:
            found.append(experiment)
    return found


def trace_loaded(loaded: LoadedModel) -> Network:
    """The layers of one training step of a loaded model."""
    if is_flax(loaded.model):
        from ampere.tracing.jax.trace import trace as trace_flax

        return trace_flax(loaded.model, loaded.inputs, name=loaded.name)
    if loaded.step is not None:
        from ampere.tracing.steps import trace_step

        return trace_step(loaded.step, loaded.name)
    from ampere.tracing.trace import trace

    network = trace(loaded.model, loaded.inputs, name=loaded.name)
    if loaded.rebatched not in (None, network.batch):
        raise UsageError(
            f"the first dimension of the first input of {loaded.name} is not its batch, which --batch would change: "
            "give inputs of another batch, or a function with an argument batch that makes them"
        )
    return network


class RecordedSource:
    """The experiments of a recording, for a replayed device."""

    def __init__(self, name: str, device: ReplayedWorker) -> None:
        self.name, observations = name, device.recorded.observations
        self._whole = [_experiment(o) for o in observations if o.purpose == "network"]
        self._parts = [_experiment(o) for o in observations if o.purpose in ("layer", "variant", "opaque")]
        if not self._whole:
            raise ProfileError(
                f"{device.path} has no whole network, so no profile can be made from it: choose another recording"
            )

    def original(self) -> Experiment:
        return self._whole[0]

    def sample(self, rng: Random) -> Experiment:
        return rng.choice(self._whole)

    def opaque(self) -> list[Experiment]:
        """All recorded experiments that are not whole networks."""
        return self._parts


def _experiment(observation: Observation) -> Experiment:
    network = observation.network
    return Experiment(network, {"layers": network.to_json()}, observation.purpose, observation.measurement.allocator)
