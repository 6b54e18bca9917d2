"""A torch model becomes a Network: one step is run on shapes alone, and nothing is trained."""

from __future__ import annotations

import logging
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from textwrap import shorten
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ampere.core import Network, units, work
from ampere.core.errors import ModelError
from ampere.core.network import InputSpec
from ampere.runtimes.plain_script import DATA_ENDED, differentiable, own_loss, targets, training_loss
from ampere.runtimes.torch_model import called, tensors_of
from ampere.runtimes.user_code import ONE_AT_A_TIME

from .copying import filled, meta_copy, on_meta, real_copy
from .layers import Layers, settle
from .operations import UNKNOWN, reached_nodes
from .recorder import Call, CallTracker, Recorder, tensors_in
from .scopes import Scopes
from .uncompiled import without_compiler

_SHAPES = ("shape", "size", "channels", "expected", "dimension", "must match", "cannot be multiplied", "argument")

DRAWS = 8  # steps of a model that skips layers at random

Loss = Callable[[Any], Tensor]

_typical_seed = WeakKeyDictionary[nn.Module, int]()


def notes_of(recorder: Recorder) -> tuple[str, ...]:
    """What people should know of a trace: unknown operations, and other precisions."""
    unknown: dict[tuple[str, bool], list[str]] = {}
    for o in recorder.operations:
        if o.op_class == UNKNOWN:
            unknown.setdefault((o.name, o.draft is not None), []).append(o.call.path or "the model itself")
    found = dict.fromkeys(_unknown(*which, [*dict.fromkeys(paths)]) for which, paths in unknown.items())
    lost = sum(cost.flops for cost in recorder.cost_of_node.values())
    if lost:
        found[f"{lost} FLOPs of backward belong to no operation that was seen, and are left out"] = None
    others = {str(p.dtype).replace("torch.", "") for p in recorder.owned.names if p.is_floating_point()} - {"float32"}
    if others:
        precision = f"its weights are {' and '.join(sorted(others))}, but its layers are estimated as --dtype says"
        found[f"{precision}, float32 unless that is given; a touch trains them as they are"] = None
    return tuple(found)


def idle_of(recorder: Recorder, counted: set[nn.Parameter]) -> tuple[str, ...]:
    """The names of parameters that are to be trained, and that no gradient reached."""
    return tuple(name for p, name in recorder.owned.names.items() if p.requires_grad and p not in counted)


def untrained(idle: Sequence[str]) -> tuple[str, ...]:
    if not idle:
        return ()
    several = f" and {len(idle) - 1} more" if len(idle) > 1 else ""
    return (f"no gradient reaches {idle[0]}{several}: not counted as trained",)


def _unknown(name: str, alone: bool, paths: list[str]) -> str:
    where = paths[0] + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
    how = "measured as it is, and uncertain until then" if alone else "it cannot be replayed alone, and is uncertain"
    return f"{name} in {where} is of no known kind: {how}"


class Failure(Exception):
    """A step that did not run through, and the module call in which it stopped."""

    def __init__(self, cause: Exception, call: Call) -> None:
        self.cause = cause
        self.call = call
        said = DATA_ENDED if isinstance(cause, StopIteration) else str(cause).strip()
        first = (said.splitlines() or [type(cause).__name__])[0]
        self.line = shorten(first, 240, placeholder=" ...").rstrip(".")
        super().__init__(self.line)


def refuse_untrainable(model: nn.Module) -> None:
    name = type(model).__name__
    if isinstance(model, torch.jit.ScriptModule):
        raise ModelError(f"{name} is compiled, and its layers cannot be seen: give the model that torch.jit was given")
    if not any(True for _ in model.parameters()):
        raise ModelError(f"cannot train {name}: it has no parameters; give a model that has some")
    if not any(p.requires_grad for p in model.parameters()):
        raise ModelError(f"cannot train {name}: no parameter requires a gradient; set requires_grad on some")


def refuse_constant(output: Any, model: nn.Module) -> None:
    if own_loss(output) is None and not differentiable(output):
        what = f"cannot train {type(model).__name__}: no tensor in its output depends on a trainable parameter"
        raise ModelError(f"{what}; return such a tensor from forward, or a loss")


def refuse_no_loss(value: Any) -> None:
    if not isinstance(value, Tensor) or value.grad_fn is None:
        raise ModelError("the loss depends on no trainable parameter: return a tensor computed from the model's output")
    if value.numel() != 1:
        raise ModelError(f"the loss is {value.numel()} numbers: return one, as with .mean()")


def explained(failure: Failure, inputs: Any) -> ModelError:
    """Why a model could not be traced: what, where, and what to do, in one line."""
    call = failure.call
    where = f"{call.path} ({type(call.module).__name__})" if call.path else type(call.module).__name__
    given = _given(call.args, call.kwargs) or _given((), inputs if isinstance(inputs, dict) else {"": inputs})
    return ModelError(f"{where} cannot be run: {failure.line}; it was given {given}; {_remedy(failure)}")


def _remedy(failure: Failure) -> str:
    text = failure.line.lower()
    if "more than 1 value per channel" in text:  # of batch normalization
        return "train with batches of 2 or more, as in --batch 2"
    if "not attached to a `trainer`" in text:  # of Lightning
        return "it needs a Trainer: write a function that does a whole training step, and name that"
    if isinstance(failure.cause, (TypeError, IndexError)) or any(word in text for word in _SHAPES):
        return "check the model's inputs with --input, as in --input 10x1x28x28"
    return "run one training step of it yourself to see more"


def _given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    parts = [_shown(a) for a in args] + [f"{k}={_shown(v)}" if k else _shown(v) for k, v in kwargs.items()]
    return ", ".join(parts)


def _shown(value: Any) -> str:
    if isinstance(value, Tensor):
        return "x".join(map(str, value.shape)) or "a scalar"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_shown, value))
    return type(value).__name__


@dataclass(frozen=True)
class Drawn:
    """The layers of one step, with the random numbers of one seed."""

    network: Network
    idle: tuple[str, ...]  # parameters that no gradient reached
    random: bool  # whether it drew random numbers

    @property
    def flops(self) -> float:
        return sum(work(layer).flops for layer in self.network.layers)

    def noted(self, idle: Sequence[str], *notes: str) -> Network:
        return replace(self.network, notes=(*self.network.notes, *untrained(idle), *notes))


def trace(model: nn.Module, inputs: Any, *, loss: Loss | None = None, name: str = "") -> Network:
    """The layers of one training step of `model` on `inputs`, in the order in which they run."""
    model = getattr(model, "_orig_mod", model)  # what torch.compile wraps
    refuse_untrainable(model)
    draws = [_drawn(model, inputs, loss, name, seed=0)]
    for most in (3, DRAWS) if draws[0].idle and draws[0].random else ():
        draws += [_drawn(model, inputs, loss, name, seed) for seed in range(len(draws), most)]
        if len({draw.idle for draw in draws}) == 1:
            break
    else:
        if len(draws) > 1:
            return _typical(model, draws)
    return draws[0].noted(draws[0].idle)


def _typical(model: nn.Module, draws: Sequence[Drawn]) -> Network:
    """Of a model that skips layers at random, the step whose work is nearest to the average."""
    flops = [draw.flops for draw in draws]
    nearest = min(range(len(draws)), key=lambda seed: abs(flops[seed] - sum(flops) / len(flops)))
    _typical_seed[model] = nearest
    never = [name for name in draws[nearest].idle if all(name in draw.idle for draw in draws)]
    return draws[nearest].noted(
        never,
        f"it skips layers at random: of {len(draws)} steps with {units.flops(min(flops))} to "
        f"{units.flops(max(flops))}, these layers are those of the step nearest to the average",
    )


def _drawn(model: nn.Module, inputs: Any, loss: Loss | None, name: str, seed: int) -> Drawn:
    with undisturbed(seed), without_compiler():
        before = _random_state()
        try:
            network, idle = _trace(meta_copy(model), _on_meta(inputs), loss, name)
        except Failure as on_shapes:
            before = _random_state()
            network, idle = _trace_real(model, inputs, loss, name, on_shapes)
        return Drawn(network, idle, _random_state() != before)


class _Unfilled(TorchFunctionMode):
    """Leaves weights without first values: on meta tensors they have none, and drawing them takes longest."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "").endswith(("uniform_", "normal_")):
            return args[0] if args else (kwargs or {})["tensor"]
        return func(*args, **(kwargs or {}))


@contextmanager
def without_weights() -> Iterator[None]:
    """Modules that are built here have shapes only."""
    with torch.device("meta"), _Unfilled():
        yield


def trace_own(model: nn.Module, inputs: Any) -> Network:
    """The network of a model on meta tensors that nobody else holds: it need not be copied first."""
    with undisturbed():
        network, idle = _trace(model, _on_meta(inputs), None, "")
        return replace(network, notes=(*network.notes, *untrained(idle)))


def _trace_real(
    model: nn.Module, inputs: Any, loss: Loss | None, name: str, on_shapes: Failure
) -> tuple[Network, tuple[str, ...]]:
    """Python that looks at values needs values: one small real step."""
    try:
        network, idle = _trace(real_copy(model), _on_cpu(inputs), loss, name)
    except Failure as failure:
        raise explained(failure, inputs) from failure.cause
    why = on_shapes.line.partition(". ")[0]
    note = f"traced with one real step on the CPU: it cannot run on shapes alone ({why})"
    return replace(network, notes=(*network.notes, note)), idle


def _trace(model: nn.Module, inputs: Any, loss: Loss | None, name: str) -> tuple[Network, tuple[str, ...]]:
    """The network, and the parameters that no gradient reached."""
    calls = CallTracker(model)
    recorder = Recorder(model, calls)
    try:
        with recorder, _second_is_batch(model) as second:
            reached, made = _step(model, inputs, loss, recorder)
    except ModelError:
        raise
    except Exception as problem:
        raise Failure(problem, calls.current) from problem
    settle(recorder.operations, reached, recorder.cost_of_node)
    batch, notes = _batch(inputs, made, second)
    layers = Layers(batch, recorder.owned.names)
    built = tuple(layers.build(recorder.operations))
    return Network(built, batch, name, (*notes_of(recorder), *notes)), idle_of(recorder, layers.counted)


def _step(
    model: nn.Module, inputs: Any, loss: Loss | None, recorder: Recorder
) -> tuple[dict[int, bool], list[torch.Size]]:
    """The nodes that backward reached, and the shapes of the outputs."""
    positional, named = ((), inputs) if isinstance(inputs, dict) else (inputs, {})
    with Scopes(recorder):
        output = called(model, inputs)(*positional, **named)
        with recorder.pause():
            refuse_constant(output, model)
            targets(output)
            made = [tensor.shape for tensor in differentiable(output) if tensor.dim()]
        value = (loss or training_loss)(output)
    refuse_no_loss(value)
    reached = reached_nodes(value)
    with recorder.pause():
        first = value.new_empty(value.shape) if value.is_meta else torch.ones_like(value)
    value.backward(first)
    return reached, made


def _on_meta(inputs: Any) -> Any:
    return each_tensor(inputs, on_meta, "meta")


def _on_cpu(inputs: Any) -> Any:
    return each_tensor(inputs, lambda t: filled(t) if t.is_meta else t.detach().cpu().clone(), "cpu")


def each_tensor(inputs: Any, convert: Callable[[Tensor], Tensor], device: str) -> Any:
    """The inputs with each of their tensors converted, however deep in lists and dictionaries it is."""

    def one(value: Any) -> Any:
        if isinstance(value, InputSpec):
            return tensors_of(value, device)
        if type(value) is dict:
            return {name: one(part) for name, part in value.items()}
        if type(value) in (list, tuple):
            return type(value)(map(one, value))
        if not isinstance(value, Tensor):
            return value
        return convert(value).requires_grad_(value.requires_grad)

    if isinstance(inputs, dict):
        return {name: one(value) for name, value in inputs.items()}
    return [one(value) for value in (inputs if isinstance(inputs, (list, tuple)) else (inputs,))]


@contextmanager
def _second_is_batch(model: nn.Module) -> Iterator[dict[tuple[int, ...], str]]:
    """The lengths and batches that modules without `batch_first` are called with, and which module it was."""
    seen: dict[tuple[int, ...], str] = {}
    with ExitStack() as ending:
        for path, module in model.named_modules():

            def see(module: nn.Module, args: Any, kwargs: Any, path: str = path) -> None:
                given = next((t for t in (*args, *kwargs.values()) if isinstance(t, Tensor)), None)
                if given is not None and given.dim() == 3:
                    seen.setdefault(tuple(given.shape[:2]), path or type(module).__name__)

            if getattr(module, "batch_first", True) is False:
                ending.callback(module.register_forward_pre_hook(see, with_kwargs=True).remove)
        yield seen


def _batch(
    inputs: Any, made: Sequence[torch.Size], second: Mapping[tuple[int, ...], str]
) -> tuple[int, tuple[str, ...]]:
    """The batch, and what to know of it.

    It is the first dimension of the first input; of another input where the output has that one's, as with a list of
    all tokens and the place where each text begins; or the second where a module takes the length first, unless the
    output has a row for each of the first.
    """
    given = [t.shape for t in tensors_in(inputs) if t.dim()]
    if not given:
        return 1, ()
    first, rows = given[0], made[0][0] if made else None
    by = second.get(tuple(first[:2]))
    row_each = bool(made) and len(made[0]) <= 2 and rows == first[0]
    if by is not None and first[0] != first[1] and not row_each:
        note = f"its batch is the second dimension of its input, as {by} takes it"
        return int(first[1]), (f"{note}; --largest-batch changes the first, which is the length",)
    return int(next((shape[0] for shape in given if shape[0] == rows), first[0])), ()


@contextmanager
def undisturbed(seed: int = 0) -> Iterator[None]:
    """The same trace each time, and the user's random numbers as they were; what the model prints is a log.

    What does not run on shapes is tried with values: PyTorch does not log it. What it warns of, it does in training.
    """
    log = logging.getLogger("torch._subclasses.fake_tensor")
    with (
        ONE_AT_A_TIME,
        _random_numbers_from(seed),
        torch.enable_grad(),
        redirect_stdout(sys.stderr),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        logs, log.disabled = log.disabled, True
        try:
            yield
        finally:
            log.disabled = logs


@contextmanager
def _random_numbers_from(seed: int) -> Iterator[None]:
    """Every generator that a model may draw from starts with the seed, and is put back."""
    numpy: Any = sys.modules.get("numpy")
    state, of_numpy = random.getstate(), numpy and numpy.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)  # torch.manual_seed also seeks devices, which takes longer
            random.seed(seed)
            if numpy:
                numpy.random.seed(seed)
            yield
    finally:
        random.setstate(state)
        if numpy:
            numpy.random.set_state(of_numpy)


def _random_state() -> tuple[Any, ...]:
    """Of every generator that a model may draw from, to see whether it did."""
    numpy: Any = sys.modules.get("numpy")
    drawn, *rest = (b"",) if numpy is None else numpy.random.get_state()[1:]
    return random.getstate(), bytes(drawn), tuple(rest), bytes(torch.get_rng_state().tolist())


def typical_seed(model: nn.Module) -> int:
    """The random numbers with which a model's layers were traced."""
    return _typical_seed.get(model, 0)
