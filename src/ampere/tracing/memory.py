"""Which memory a training step takes and gives back: real code on tensors that have shapes and no values.

    build   step 1                          step 2 ...
    |params |forward  |backward   |update   |forward ...
    ========|=========|===========|=========|=====      parameters
            |  =======|=====      |         |  ===      activations: made in forward, alive when backward begins
            | = = = = | = = = = = | = = =   | = = =     temporary: the rest
            |         |   ========|=========|=          gradients
            |         |           |   ======|=====      optimizer state

Tensors say that they are on the CPU, so PyTorch chooses the kernels that it would really run. What is followed is the
storage: a view or an operation in place takes nothing. A storage ends when nobody holds it any more, as in training.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from ampere.core.allocations import (
    ACTIVATIONS,
    GRADIENTS,
    INPUTS,
    OPTIMIZER,
    PARAMETERS,
    TEMPORARY,
    WORKSPACE,
    Allocation,
)
from ampere.core.errors import ModelError
from ampere.core.network import Network
from ampere.core.optimizers import OPTIMIZERS
from ampere.runtimes.plain_script import training_loss
from ampere.runtimes.torch_model import called
from ampere.runtimes.torch_network import build_chain
from ampere.runtimes.torch_runtime import AUTOCAST, DTYPES, autocast, trainable
from ampere.runtimes.torch_step import WholeStep, of_all_samples, uncompiled

from .copying import copied, fake_copy, on_cpu, with_values
from .recorder import tensors_in
from .steps import before_backward
from .trace import each_tensor, refuse_untrainable, undisturbed
from .uncompiled import update, without_compiler
from .workspaces import kept_workspace, packed, workspaces

STEPS = 3  # the optimizer's state is there from the end of the first


class Follower(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees each storage when the first tensor on it is made, and when the last one is gone."""

    def __init__(self, layer: Callable[[], str] = lambda: "") -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.allocations: list[Allocation] = []
        self.part = TEMPORARY
        self.step = self._clock = self._packed = 0
        self._layer = layer
        self._of: dict[int, Allocation] = {}
        self._watched: dict[int, Any] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self._pack(packed(func, args))
        made = [t for t in tensors_in(out) if self.is_new(t)]
        if not made:
            return out
        scratch = [self._add(size, WORKSPACE) for size in workspaces(func, args, out)]
        for tensor in made:
            self.hold(tensor, self.part)
        if made[-1].numel() == 0 and (kept := kept_workspace(func, args)):
            self._of[made[-1].untyped_storage()._cdata].bytes = kept
        for block in scratch:
            block.ends = self._tick()
        return out

    def hold(self, tensor: Tensor, part: str) -> None:
        """Follow a tensor's storage, or say what a storage that is followed already is for."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._of:
            self._of[key].part = part
            return
        self._of[key] = self._add(storage.nbytes(), part)
        self._watched[key] = weakref.ref(storage, lambda _: self._ended(key))

    def keep_for_backward(self) -> None:
        """What is there when backward begins is kept for it."""
        for each in list(self._of.values()):
            if each.part == TEMPORARY:
                each.part = ACTIVATIONS

    def is_new(self, tensor: Tensor) -> bool:
        return tensor.layout is torch.strided and tensor.untyped_storage()._cdata not in self._of

    def _pack(self, size: int) -> None:
        if size > self._packed:  # what was packed into stays, and is used again
            self._add(size - self._packed, WORKSPACE)
            self._packed = size

    def _add(self, size: int, part: str) -> Allocation:
        made = Allocation(size, part, self._layer(), self._tick(), step=self.step)
        self.allocations.append(made)
        return made

    def _ended(self, key: int) -> None:
        self._of.pop(key).ends = self._tick()
        del self._watched[key]

    def _tick(self) -> int:
        self._clock += 1
        return self._clock


def allocations_of(
    model: nn.Module, inputs: Any, optimizer: str = "sgd", dtype: str = "float32", batch: int | None = None
) -> list[Allocation]:
    """Each block of memory that training `model` takes, from building it to its last step.

    A model whose code looks at values is really trained for a few steps. `batch` replaces the batch of the inputs, and
    has no values: such a model then raises ModelError.
    """
    model = getattr(model, "_orig_mod", model)  # what torch.compile wraps
    refuse_untrainable(model)
    try:
        with undisturbed(), without_compiler(), FakeTensorMode(allow_non_fake_inputs=True):
            made = fake_copy(model, DTYPES[dtype])
            given = rebatched(each_tensor(inputs, on_cpu, "cpu"), batch, DTYPES[dtype])
            return _follow(made, _loss_of(made, given, dtype), tensors_in(given), optimizer)
    except ModelError:
        raise
    except Exception as problem:
        if batch is None:
            return _allocations_with_values(model, inputs, optimizer, dtype)
        raise _unfollowed(type(model).__name__, problem) from problem


def _allocations_with_values(model: nn.Module, inputs: Any, optimizer: str, dtype: str) -> list[Allocation]:
    try:
        with undisturbed(), without_compiler():
            convert = partial(with_values, dtype=DTYPES[dtype])
            made, given = copied(model, convert), each_tensor(inputs, convert, "cpu")
            return _follow(made, _loss_of(made, given, dtype), tensors_in(given), optimizer)
    except ModelError:
        raise
    except Exception as problem:
        raise _unfollowed(type(model).__name__, problem) from problem


def _loss_of(model: nn.Module, inputs: Any, dtype: str) -> Callable[[], torch.Tensor]:
    positional, named = ((), inputs) if isinstance(inputs, dict) else (inputs, {})
    ready = called(model, inputs)
    return _in_precision(lambda: training_loss(ready(*positional, **named)), dtype)


def _in_precision(loss_of: Callable[[], torch.Tensor], dtype: str) -> Callable[[], torch.Tensor]:
    return autocast(loss_of, "cpu", AUTOCAST[dtype]) if dtype in AUTOCAST else loss_of


def _unfollowed(name: str, problem: Exception) -> ModelError:
    line = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
    return ModelError(f"the memory of {name} cannot be followed on shapes alone: {line[:240]}")


def allocations_of_network(network: Network, optimizer: str = "sgd", dtype: str = "float32") -> list[Allocation]:
    """The same for a network that is only described: it is built from its layers."""
    try:
        with undisturbed(), without_compiler(), FakeTensorMode():
            with _made_as(DTYPES[dtype]):
                chain = build_chain(network, DTYPES[dtype])
            loss_of = _in_precision(chain.loss, dtype)
            return _follow(chain, loss_of, list(chain.fresh.values()), optimizer, chain.trained)
    except Exception as problem:
        raise _unfollowed(network.name or "the network", problem) from problem


def allocations_of_step(step: WholeStep) -> list[Allocation]:
    """The same for a user's own step: it is really run, with the tensors that it has."""
    try:
        with undisturbed(), uncompiled(), ExitStack() as ending:
            return _follow_step(step, ending)
    except Exception as problem:
        raise _unfollowed("the step", problem) from problem


def _follow_step(step: WholeStep, ending: ExitStack) -> list[Allocation]:
    together = step.model
    running = _running_modules(together, ending)
    follower = Follower(lambda: running[-1])
    _hold_parameters(follower, together, running)
    for parameter in step.updated:
        if parameter.grad is not None:
            _hold_gradient(follower, parameter)
        hooked: Any = parameter
        ending.callback(hooked.register_post_accumulate_grad_hook(partial(_hold_gradient, follower)).remove)
    _hold_states(follower, step)

    def see_inputs(model: nn.Module, args: Any, kwargs: Any) -> None:
        for tensor in map(of_all_samples, tensors_in((args, kwargs))):
            if follower.is_new(tensor):
                follower.hold(tensor, INPUTS)

    for model in step.models.values():
        ending.callback(model.register_forward_pre_hook(see_inputs, with_kwargs=True).remove)
    ending.enter_context(before_backward(lambda starts: follower.keep_for_backward()))
    with follower:
        for follower.step in range(1, STEPS + 1):
            step()
            _hold_states(follower, step)
    return follower.allocations


def _hold_parameters(follower: Follower, model: nn.Module, running: list[str]) -> None:
    for path, module in model.named_modules():
        running[-1] = path
        for tensor in [*module.parameters(recurse=False), *module.buffers(recurse=False)]:
            follower.hold(tensor, PARAMETERS)
    running[-1] = ""


def _hold_gradient(follower: Follower, parameter: Any) -> None:
    if parameter.grad.layout is torch.strided:
        follower.hold(parameter.grad, GRADIENTS)


def _hold_states(follower: Follower, step: WholeStep) -> None:
    for optimizer in step.optimizers:
        for state in optimizer.state.values():
            for tensor in tensors_in(list(state.values())):
                follower.hold(tensor, OPTIMIZER)


@contextmanager
def _made_as(dtype: torch.dtype) -> Iterator[None]:
    usual = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(usual)


def rebatched(inputs: Any, batch: int | None, dtype: torch.dtype) -> Any:
    """Inputs of another batch and type: every tensor whose first dimension is the batch has another one."""
    before = next((int(t.shape[0]) for t in tensors_in(inputs) if t.dim()), 1)

    def one(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        first = batch if batch and value.dim() and value.shape[0] == before else None
        shape = value.shape if first is None else (first, *value.shape[1:])
        return torch.empty(shape, dtype=dtype if value.is_floating_point() else value.dtype)

    if isinstance(inputs, dict):
        return {name: one(value) for name, value in inputs.items()}
    return [one(value) for value in inputs]


def _running_modules(model: nn.Module, ending: ExitStack) -> list[str]:
    """The paths of the modules that are running, the innermost last, until the `ending`. Their tensors are not held."""
    running = [""]
    for path, module in model.named_modules():

        def enter(module: nn.Module, args: Any, path: str = path) -> None:
            running.append(path)

        def leave(module: nn.Module, args: Any, output: Any, path: str = path) -> None:
            while len(running) > 1 and running.pop() != path:
                pass

        ending.callback(module.register_forward_pre_hook(enter).remove)
        ending.callback(module.register_forward_hook(leave, always_call=True).remove)
    return running


def _follow(
    model: nn.Module,
    loss_of: Callable[[], Tensor],
    inputs: list[Tensor],
    optimizer: str,
    trained: list[nn.Parameter] | None = None,
) -> list[Allocation]:
    running = _running_modules(model, ExitStack())  # of a copy: nobody else sees its hooks
    follower = Follower(lambda: running[-1])
    _hold_parameters(follower, model, running)
    for tensor in inputs:
        follower.hold(tensor, INPUTS)
    trained = trainable(model) if trained is None else trained
    for parameter in trained:
        if parameter.requires_grad:
            hooked: Any = parameter
            hooked.register_post_accumulate_grad_hook(partial(_hold_gradient, follower))
    updating = OPTIMIZERS[optimizer].make("torch", trained)
    with follower:
        for follower.step in range(1, STEPS + 1):
            updating.zero_grad(set_to_none=True)
            loss = loss_of()
            follower.keep_for_backward()
            loss.backward()  # type: ignore[no-untyped-call]
            update(updating)
            for state in updating.state.values():
                for tensor in tensors_in(list(state.values())):
                    follower.hold(tensor, OPTIMIZER)
    return follower.allocations
