"""A torch model becomes a Network: one step is run on shapes alone, and nothing is trained."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ampere.errors import ModelError
from ampere.network import Network
from ampere.network.inputs import InputSpec
from ampere.worker.runtimes.torch_inputs import tensors_of
from ampere.worker.runtimes.torch_loss import targets, training_loss

from .calls import CallTracker
from .copying import filled, meta_copy, on_meta, real_copy
from .failures import Failure, explained, refuse_constant, refuse_no_loss, refuse_untrainable
from .graph import reached_nodes
from .layers import Layers, settle
from .notes import notes_of
from .recorder import Recorder
from .scopes import Scopes
from .tensors import tensors_in

Loss = Callable[[Any], Tensor]


def trace(model: nn.Module, inputs: Any, *, loss: Loss | None = None, name: str = "") -> Network:
    """The layers of one training step of `model` on `inputs`, in the order in which they run."""
    model = getattr(model, "_orig_mod", model)  # what torch.compile wraps
    refuse_untrainable(model)
    with _own_random_numbers():
        try:
            return _trace(meta_copy(model), _on_meta(inputs), loss, name)
        except Failure as on_shapes:
            return _trace_real(model, inputs, loss, name, on_shapes)


def trace_own(model: nn.Module, inputs: Any) -> Network:
    """Of a model on meta tensors that nobody else holds: it need not be copied first."""
    with _own_random_numbers():
        return _trace(model, _on_meta(inputs), None, "")


def _trace_real(model: nn.Module, inputs: Any, loss: Loss | None, name: str, on_shapes: Failure) -> Network:
    """Python that looks at values needs values: one small real step."""
    try:
        network = _trace(real_copy(model), _on_cpu(inputs), loss, name)
    except Failure as failure:
        raise explained(failure, inputs) from failure.cause
    note = f"traced with a real step on the CPU, because shapes alone did not do ({on_shapes.line})"
    return Network(network.layers, network.batch, network.name, (*network.notes, note))


def _trace(model: nn.Module, inputs: Any, loss: Loss | None, name: str) -> Network:
    calls = CallTracker(model)
    recorder = Recorder(model, calls)
    try:
        with recorder:
            reached = _step(model, inputs, loss, recorder)
    except ModelError:
        raise
    except Exception as problem:
        raise Failure(problem, calls.current) from problem
    settle(recorder.operations, reached, recorder.cost_of_node)
    layers = Layers(_batch(inputs), recorder.owned.names)
    built = tuple(layers.build(recorder.operations))
    return Network(built, _batch(inputs), name, notes_of(recorder, layers.counted))


def _step(model: nn.Module, inputs: Any, loss: Loss | None, recorder: Recorder) -> dict[int, bool]:
    positional, named = ((), inputs) if isinstance(inputs, dict) else (inputs, {})
    with Scopes(recorder):
        output = model(*positional, **named)
        with recorder.pause():
            refuse_constant(output, model)
            targets(output)
        value = (loss or training_loss)(output)
    refuse_no_loss(value)
    reached = reached_nodes(value)
    with recorder.pause():
        first = torch.ones_like(value)
    value.backward(first)
    return reached


def _on_meta(inputs: Any) -> Any:
    return _each(inputs, on_meta, "meta")


def _on_cpu(inputs: Any) -> Any:
    return _each(inputs, lambda t: filled(t) if t.is_meta else t.detach().cpu().clone(), "cpu")


def _each(inputs: Any, convert: Callable[[Tensor], Tensor], device: str) -> Any:
    def one(value: Any) -> Any:
        if isinstance(value, InputSpec):
            return tensors_of(value, device)
        if not isinstance(value, Tensor):
            return value
        return convert(value).requires_grad_(value.requires_grad)

    if isinstance(inputs, dict):
        return {name: one(value) for name, value in inputs.items()}
    return [one(value) for value in (inputs if isinstance(inputs, (list, tuple)) else (inputs,))]


def _batch(inputs: Any) -> int:
    return next((int(t.shape[0]) for t in tensors_in(inputs) if t.dim()), 1)


@contextmanager
def _own_random_numbers() -> Iterator[None]:
    """The same trace each time, and the user's random numbers as they were."""
    state = random.getstate()
    try:
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.default_generator.manual_seed(0)  # torch.manual_seed also seeks devices, which takes longer
            random.seed(0)
            yield
    finally:
        random.setstate(state)
