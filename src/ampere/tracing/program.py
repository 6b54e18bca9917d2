"""The operations of a model's forward pass and loss, one by one, so that a worker does the same without its code.

Tensors have no values but say that they are on the CPU, so PyTorch chooses the operations that it would really run.
Backward is not written down: autograd makes it of the same operations. Format: `ampere.runtimes.torch_program`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.functional import cross_entropy
from torch.utils._python_dispatch import TorchDispatchMode

from ampere.runtimes.plain_script import differentiable, targets, training_loss
from ampere.runtimes.torch_model import called
from ampere.runtimes.torch_program import MOST_CALLS, replayable

from .copying import copied, on_cpu, real_copy
from .describing import CONSTANTS, below
from .operations import reached_nodes
from .recorder import tensors_in
from .trace import each_tensor, typical_seed, undisturbed
from .uncompiled import without_compiler

Record = dict[str, Any]
# By its id: a tensor without values, held so that no other gets its id, and the tensor that it stands for.
Originals = dict[int, tuple[Tensor, Tensor]]

FEW = 16  # values that are written down as they are
COLUMNS = 1024  # of whole numbers, each with a bound of its own
SAMPLE = 4096  # values that a tensor's mean and deviation are taken from
MOST_BYTES = 4 << 30  # that a real pass may hold
CLASS_LOSSES = ("nll_loss_forward", "nll_loss2d_forward", "nll_loss_nd")


class NoProgram(Exception):
    """Why the operations of a model cannot be written down."""


def program_of(model: nn.Module, inputs: Any) -> Record | None:
    """The program of one training step; None where it cannot be written down, or only by its own code."""
    model = getattr(model, "_orig_mod", model)  # what torch.compile wraps
    for record in (_on_shapes, _on_values):
        try:
            with undisturbed(typical_seed(model)):
                return record(model, inputs).program()
        except NoProgram:
            return None
        except Exception:  # code that looks at values has a second chance, with values
            continue
    return None


def _on_shapes(model: nn.Module, inputs: Any) -> Recording:
    originals: Originals = {}

    def convert(tensor: Tensor) -> Tensor:
        if tensor.layout != torch.strided:
            raise NoProgram
        made = on_cpu(tensor)
        originals[id(made)] = made, tensor
        return made

    with without_compiler(), FakeTensorMode(allow_non_fake_inputs=True):
        made = copied(model, convert)
        originals.update((id(pair[0]), pair) for pair in zip(made.parameters(), model.parameters(), strict=True))
        return _recorded(made, each_tensor(inputs, convert, "cpu"), originals)


def _on_values(model: nn.Module, inputs: Any) -> Recording:
    return _recorded(real_copy(model), each_tensor(inputs, lambda tensor: tensor.detach().cpu().clone(), "cpu"), {})


def _recorded(model: nn.Module, inputs: Any, originals: Originals) -> Recording:
    positional, named = ((), inputs) if isinstance(inputs, dict) else (inputs, {})
    recording = Recording(model, originals)
    with recording:
        output = called(model, inputs)(*positional, **named)
        with recording.pause():
            labels = targets(output)
        loss = training_loss(output) if labels is None else cross_entropy(differentiable(output)[0], labels)
    if loss.numel() != 1 or loss.grad_fn is None or any(reached_nodes(loss).values()):
        raise NoProgram  # a torch.autograd.Function has a backward pass of its own
    recording.ends_in(loss)
    return recording


class Recording(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Writes down every operation; a tensor that no operation made is a value that the step begins with."""

    def __init__(self, model: nn.Module, originals: Originals) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._parameters = {id(p) for p in model.parameters()}
        self._originals = originals
        self._values: list[tuple[Record, Tensor, Record]] = []
        self._calls: list[list[Any]] = []
        self._numbers: dict[int, int] = {}
        self._alive: list[Tensor] = [*model.parameters()]  # so that no other tensor gets the id of one that is gone
        self._held = 0
        self._paused = self._refused = False
        self._loss = -1

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {})) if self._paused else self._run(func, args, kwargs or {})

    def _run(self, func: Any, args: Sequence[Any], kwargs: Record) -> Any:
        try:
            if torch.is_inference_mode_enabled() or _recomputes() or self._held > MOST_BYTES:
                raise NoProgram
            note = self._before(func, args, kwargs)
        except NoProgram:  # said at the end: autograd cannot stand errors where it saves what it needs
            self._paused = self._refused = True
            return func(*args, **kwargs)
        out = func(*args, **kwargs)
        if note is not None:
            self._calls.append([*note, [self._number(t) for t in tensors_in(out)], torch.is_grad_enabled()])
        return out

    @contextmanager
    def pause(self) -> Iterator[None]:
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    def ends_in(self, loss: Tensor) -> None:
        if self._refused or self._held > MOST_BYTES:
            raise NoProgram
        self._loss = self._numbers[id(loss)]

    def program(self) -> Record:
        values = [
            {**record, **(_like(seen) if _has_values(seen) else fitting)} for record, seen, fitting in self._values
        ]
        read = {number for _, arguments, named, *_ in self._calls for number in _values_in([arguments, named])}
        # Autograd detaches what it saves, which only a dispatch mode sees as an operation.
        calls = [c for c in self._calls if c[0] != "detach.default" or read & set(c[3])]
        return {"values": values, "calls": calls, "loss": self._loss}

    def _before(self, func: Any, args: Sequence[Any], kwargs: Record) -> list[Any] | None:
        """Operation and arguments, as they are before it changes any of them; None for one that computes nothing."""
        returns = [str(value.type) for value in func._schema.returns]
        if func.namespace in ("prim", "profiler") or (returns and not any("Tensor" in each for each in returns)):
            return None
        name = f"{func._schema.name.partition('::')[2]}.{func._schema.overload_name or 'default'}"
        if func.namespace != "aten" or not replayable(name) or len(self._calls) >= MOST_CALLS:
            raise NoProgram

        def plain(value: Any) -> Any:
            if isinstance(value, Tensor):
                return {"value": self._read(value, func, args)}
            if isinstance(value, (list, tuple)):
                return [plain(part) for part in value]
            if isinstance(value, CONSTANTS):
                return {"torch": str(value).replace("torch.", "")}
            if isinstance(value, float) and not math.isfinite(value):
                return {"number": str(value)}
            if value is None or isinstance(value, (bool, int, float, str)):
                return value
            raise NoProgram

        left_out = ("device", "pin_memory", "generator")
        named = {key: plain(v) for key, v in kwargs.items() if key not in left_out and v is not None}
        return [name, [None if isinstance(v, torch.device) else plain(v) for v in args], named]

    def _read(self, tensor: Tensor, func: Any, args: Sequence[Any]) -> int:
        if id(tensor) not in self._numbers:
            number = self._number(tensor)
            _, seen = self._originals.get(id(tensor), (tensor, tensor))
            self._values.append(({"value": number, **self._sizes(tensor)}, seen, _fitting(tensor, func, args)))
        return self._numbers[id(tensor)]

    def _number(self, tensor: Tensor) -> int:
        if id(tensor) not in self._numbers:
            self._numbers[id(tensor)] = len(self._numbers)
            self._alive.append(tensor)
            self._held += 0 if _is_fake(tensor) else tensor.numel() * tensor.element_size()
        return self._numbers[id(tensor)]

    def _sizes(self, tensor: Tensor) -> Record:
        if tensor.layout != torch.strided:
            raise NoProgram
        record: Record = {"shape": list(tensor.shape), "dtype": str(tensor.dtype).replace("torch.", "")}
        if not tensor.is_contiguous() and all(
            step or n == 1 for n, step in zip(tensor.shape, tensor.stride(), strict=True)
        ):
            record["strides"] = list(tensor.stride())
        if id(tensor) in self._parameters:
            record["parameter"] = True
        if tensor.requires_grad:
            record["grad"] = True
        return record


def _values_in(plain: Any) -> Iterator[int]:
    """The numbers of the values among arguments that are written down."""
    if isinstance(plain, dict) and "value" in plain:
        yield plain["value"]
    elif isinstance(plain, (list, dict)):
        for part in plain.values() if isinstance(plain, dict) else plain:
            yield from _values_in(part)


def _recomputes() -> bool:
    """Whether forward runs again in backward, as a checkpoint does."""
    hooks = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    return hooks is not None and hooks(False) is not None


def _is_fake(tensor: Tensor) -> bool:
    return hasattr(tensor, "fake_mode")


def _has_values(tensor: Tensor) -> bool:
    return not _is_fake(tensor) and not tensor.is_meta and tensor.numel() > 0


def _like(seen: Tensor) -> Record:
    """What values like these are drawn from."""
    some = seen.detach().reshape(-1)[:SAMPLE].cpu()
    if seen.is_complex():
        return {}
    if not seen.is_floating_point():
        if seen.numel() <= FEW:
            return {"values": some.tolist()}
        if seen.dtype == torch.bool:
            return {"share": float(some.double().mean())}
        every = seen.detach().reshape(-1)
        ordered = bool(every[0] == 0) and bool((every[1:] >= every[:-1]).all())
        if ordered or seen.dim() < 2 or seen[0].numel() > COLUMNS:
            return {"below": max(1, int(every.max()) + 1), **({"ordered": True} if ordered else {})}
        return {"below": (seen.detach().amax(0).reshape(-1) + 1).clamp(min=1).tolist()}  # of each column of a table
    finite = some.double()[some.isfinite()]
    if not finite.numel():
        return {"mean": 0.0, "deviation": 0.0}
    spread = {"mean": float(finite.mean()), "deviation": float(finite.std(correction=0))}
    return {**spread, **({"least": float(finite.min())} if finite.min() >= 0 else {})}  # variances, lengths, shares


def _fitting(tensor: Tensor, func: Any, args: Sequence[Any]) -> Record:
    """Values for a tensor of which only the shape is known, that its first reader can use."""
    if tensor.dtype == torch.bool:
        return {"share": 0.5}
    if tensor.is_floating_point() or tensor.is_complex():
        return {"mean": 0.0, "deviation": 1.0 / math.sqrt(max(1, math.prod(tensor.shape[1:])))}
    name = func._schema.name.partition("::")[2]
    return {"below": int(args[0].shape[1]) if name in CLASS_LOSSES else below(func, args, tensor)}
