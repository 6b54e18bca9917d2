"""A user's own training step becomes a Network: it is run once for real, with each of its operations seen.

step    forward  backward  clip  update  average of the weights      several models and losses, in any order
layers  ======== ========= ====          =====================      an update is known by the layers' parameters
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from ampere.core import KINDS, Network
from ampere.core.errors import ModelError
from ampere.runtimes.torch_step import WholeStep, uncompiled

from .layers import Layers, settle
from .operations import reached_nodes
from .recorder import CallTracker, Recorder, tensors_in
from .scopes import Scopes
from .trace import Failure, idle_of, notes_of, undisturbed, untrained

NO_BACKWARD = (
    "no backward pass of autograd reaches its weights, as with torch.func: each of its operations is counted by "
    "itself, those of gradients and updates too"
)

COMPILED = "layers are those of the code as it is written, without torch.compile; a touch trains it compiled"


def trace_step(step: WholeStep, name: str = "") -> Network:
    """The layers of one step, from an update of the weights to the next, of all models in the order they run."""
    network = _traced(step, name, every=False)
    if any(layer.trainable for layer in network.layers):
        return network
    network = _traced(step, name, every=True)
    if not any(KINDS[layer.kind].parametric for layer in network.layers):
        raise ModelError(f"{name or 'the step'} trains no layer that can be seen: its models must be torch.nn.Modules")
    return replace(network, notes=(network.notes[0], NO_BACKWARD, *network.notes[1:]))


def _traced(step: WholeStep, name: str, every: bool) -> Network:
    """With `every`, operations of an update are seen, too; else it is known by the parameters."""
    model = step.model
    calls = CallTracker(model)
    recorder, reached = Recorder(model, calls, whole_step=True), dict[int, bool]()
    try:
        collecting = before_backward(_collecting(recorder, reached))
        with undisturbed(), uncompiled(), ExitStack() as ending, collecting, recorder, Scopes(recorder):
            if not every:
                ending.enter_context(_updates_unseen(recorder))
            step()
    except Exception as problem:
        line = Failure(problem, calls.current).line
        raise ModelError(f"{name or 'the step'} cannot be traced: {line}; run it by itself to see more") from problem
    finally:
        calls.release()
    if not step.optimizers and not every:
        recorder.operations = [operation for operation in recorder.operations if not operation.on_weights]
    settle(recorder.operations, reached, recorder.cost_of_node)
    layers = Layers(step.batch, recorder.owned.names)
    built = tuple(layers.build(recorder.operations))
    fixed = set(recorder.owned.names) - set(() if every else step.updated)  # as a teacher's are
    compiled = (COMPILED,) * any(hasattr(module, "_orig_mod") for module in step.models.values())
    notes = (_taken_for(step, name), *compiled, *_precision(recorder), *notes_of(recorder))
    idle = untrained(idle_of(recorder, layers.counted | fixed))
    return Network(built, step.batch * step.calls, name, (*notes, *idle))


def _taken_for(step: WholeStep, name: str) -> str:
    optimizers = " and ".join(dict.fromkeys(type(optimizer).__name__ for optimizer in step.optimizers))
    how = f"with {optimizers}" if optimizers else "by hand"
    if step.updates > max(1, len(step.optimizers)):
        how = f"{step.updates} times {how}"
    until = "update" if step.updates == 1 else "update of every optimizer"
    calls = f"; {step.calls} calls make one {until}, which is the iteration" if step.calls > 1 else ""
    models = ", ".join(step.models) or "its weights"
    return f"{name or 'it'} was taken for a whole training step of {models}, updated {how}, and run to trace it{calls}"


def _precision(recorder: Recorder) -> tuple[str, ...]:
    """That weights are converted in a step, as autocast does: layers are known by the precision of the weights."""
    converted = any(o.name == "_to_copy" and o.parameters and not o.on_weights for o in recorder.operations)
    said = (
        "it computes in another precision than its weights have: layers alone do not show what that saves, a touch does"
    )
    return (said,) if converted else ()


def _collecting(recorder: Recorder, reached: dict[int, bool]) -> Callable[[list[Tensor]], None]:
    def collect(roots: list[Tensor]) -> None:
        with recorder.pause():
            for root in roots:
                reached.update(reached_nodes(root))

    return collect


@contextmanager
def _updates_unseen(recorder: Recorder) -> Iterator[None]:
    """The optimizer's own operations are not layers: what an update costs is known by the parameters."""

    def begin(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        recorder.paused = not (len(args) > 1 or kwargs)  # a closure runs the model

    def end(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        recorder.resume()

    with ExitStack() as ending:
        ending.callback(register_optimizer_step_pre_hook(begin).remove)
        ending.callback(register_optimizer_step_post_hook(end).remove)
        yield


@contextmanager
def before_backward(see: Callable[[list[Tensor]], None]) -> Iterator[None]:
    """Calls `see` with the tensors that each backward pass starts from.

    With none where the pass is itself differentiated, as for a gradient penalty: then its operations are forward ones.
    """
    autograd: Any = torch.autograd
    usual = {name: getattr(autograd, name) for name in ("backward", "grad")}

    def seeing(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)

        def called(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind(*args, **kwargs).arguments
            starts = tensors_in(given.get("tensors", given.get("outputs")))
            see([start for start in starts if start.grad_fn is not None and not given.get("create_graph")])
            return function(*args, **kwargs)

        return called

    try:
        for name, function in usual.items():
            setattr(autograd, name, seeing(function))
        yield
    finally:
        for name, function in usual.items():
            setattr(autograd, name, function)
