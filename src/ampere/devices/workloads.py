"""The network that a workload describes, found without training it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ampere.core import KINDS, Network
from ampere.core.wiring import as_built

from .device import VariantFailed


def network_of(workload: Mapping[str, Any]) -> Network:
    """The network as a worker would build it: described layers get a loss, a factory is called and traced."""
    if "layers" in workload:
        return as_built(described(workload["layers"]))
    if "factory" not in workload:
        raise VariantFailed("the workload needs either layers or a factory")
    try:
        return _made(json.dumps(dict(workload), sort_keys=True))
    except ImportError as problem:
        raise VariantFailed(f"{workload['factory']} cannot be imported ({problem}): check its name") from None


def described(record: Mapping[str, Any]) -> Network:
    """The network of described layers, after checking them."""
    try:
        network = Network.from_json(dict(record))
    except (KeyError, TypeError, ValueError) as problem:
        raise VariantFailed(f"the layers of the workload are malformed ({problem})") from None
    unknown = sorted({layer.kind for layer in network.layers} - set(KINDS))
    if unknown or not network.layers:
        raise VariantFailed(f"there is no layer kind {', '.join(unknown)}" if unknown else "the network has no layers")
    return network


@lru_cache(maxsize=4096)
def _made(workload_as_json: str) -> Network:
    workload = json.loads(workload_as_json)
    if "inputs" not in workload and workload["factory"].startswith("ampere."):
        return traced(workload["factory"], workload.get("arguments") or {})
    return _traced_from_users_code(workload)


def traced(factory: str, arguments: Mapping[str, Any]) -> Network:
    """The network that one of Ampere's own factories builds, without its weights."""
    return _traced(factory, json.dumps(dict(arguments), sort_keys=True))


@lru_cache(maxsize=4096)
def _traced(factory: str, arguments: str) -> Network:
    from ampere.tracing.trace import trace_own, without_weights

    module, _, function = factory.rpartition(":")
    with without_weights():
        model, inputs = getattr(importlib.import_module(module), function)(**json.loads(arguments))
    return trace_own(model, inputs)


def _traced_step(workload: Mapping[str, Any]) -> Network:
    from ampere.runtimes.torch_step import NotAStep, run_once
    from ampere.runtimes.user_code import find_factory
    from ampere.tracing.steps import trace_step

    try:
        _, step = run_once(find_factory(workload["factory"]), dict(workload.get("arguments") or {}))
    except NotAStep as problem:
        raise VariantFailed(f"{workload['factory']} is no whole training step: it {problem}") from None
    if step is None:
        raise VariantFailed(f"{workload['factory']} makes no training step")
    return trace_step(step)


def _traced_from_users_code(workload: Mapping[str, Any]) -> Network:
    """The network of a user's model, or of its part at `path`, on inputs of the workload or the factory."""
    from ampere.core.network import InputSpec
    from ampere.runtimes.torch_model import tensors_of
    from ampere.runtimes.user_code import find_factory
    from ampere.tracing.trace import trace

    if workload.get("step"):
        return _traced_step(workload)
    made = find_factory(workload["factory"])(**(workload.get("arguments") or {}))
    model, inputs = made if isinstance(made, tuple) else (made, None)
    if workload.get("path"):
        model = model.get_submodule(workload["path"])
    specs = workload.get("inputs")
    if isinstance(specs, dict):
        inputs = tensors_of({name: InputSpec.from_json(record) for name, record in specs.items()})
    elif specs is not None:
        inputs = tuple(tensors_of([InputSpec.from_json(record) for record in specs]))
    return trace(model, inputs)
