"""A function of the user's that does a whole training step, watched to learn what it trains.

    call 1             call 2                  call n
    forward, backward  forward, backward  ...  forward, backward, update        n calls are one step

Where the code has several optimizers, a step ends when each has updated its weights: a generator may do so at every
fifth call. A step is found in two ways: the function that is named trains when it is called, or it returns one that
does, alone or with what it is called with.
"""

import sys
import time
from contextlib import nullcontext
from types import CodeType, FunctionType
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Set, Tuple

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from .plain_script import numbers
from .runtime import Training
from .user_code import failed, find_factory

MOST_CALLS, MOST_SECONDS = 64, 60.0  # without an update of the weights
MOST_UPDATES = 100  # in one call: more is a whole training
MOST_SECONDS_FOR_ALL = 10.0  # until each of several optimizers has updated its weights
SOME_VALUES = 8  # of a parameter, which show that it was changed
FUNCTIONS_DEEP = 3  # from a step to functions that it calls, in which optimizers are looked for

Arguments = Dict[str, Any]


class NotAStep(Exception):
    """Why a function is no training step; the message says what to do."""


def _content(parameter: nn.Parameter) -> Tuple[int, List[float]]:
    """What differs after each change of its values: a version, which `.data` passes by, and some of the values."""
    some = [] if parameter.is_meta else parameter.detach().reshape(-1)[:SOME_VALUES].tolist()
    try:
        return int(parameter._version), some
    except RuntimeError:  # what was made in inference mode has no version
        return 0, some


def of_all_samples(tensor: Tensor) -> Tensor:
    """The tensor behind the one of a single sample that `torch.func.vmap` shows the user's code."""
    functorch: Any = getattr(torch._C, "_functorch", None)
    while functorch is not None and functorch.is_functorch_wrapped_tensor(tensor):
        tensor = functorch.get_unwrapped(tensor)
    return tensor


class Watch:
    """Sees which models a user's code runs, and whether it updates their weights."""

    def __init__(self, parameters: Iterable[nn.Parameter] = ()) -> None:
        """`parameters` are those that the code is known to have."""
        self.models: Dict[nn.Module, None] = {}  # that no other module called, in the order of their first calls
        self.optimizers: Dict[Optimizer, None] = {}
        self.updates = self.updates_before = 0  # in all, and before the current call
        self.batch = 0
        self._had_gradients = False
        self._running: List[nn.Module] = []
        self._contents = {parameter: _content(parameter) for parameter in parameters}

    def __enter__(self) -> "Watch":
        self._uncompiled = uncompiled()
        self._uncompiled.__enter__()
        self._handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
            register_optimizer_step_pre_hook(self._updating),
            register_optimizer_step_post_hook(self._updated),
        ]
        return self

    def __exit__(self, *problem: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._uncompiled.__exit__(None, None, None)

    @property
    def parameters(self) -> List[nn.Parameter]:
        return list(self._contents)

    @property
    def backward_ran(self) -> bool:
        return self._had_gradients or any(p.grad is not None for p in self._contents)

    def lacks(self, optimizers: List[Optimizer]) -> bool:
        """Whether one of them has weights to train that none has updated yet."""
        updated = {p for optimizer in self.optimizers for p in weights_of(optimizer)}
        return any(p not in updated for optimizer in optimizers for p in weights_of(optimizer) if p.requires_grad)

    def look(self) -> None:
        """Weights may also be changed by hand, which no optimizer says."""
        if not self.updates and any(_content(p) != before for p, before in self._contents.items()):
            self.updates, self._had_gradients = 1, True
        for model in self.models:  # while torch.func runs one, it has other weights than its own
            self._know(model)

    def _know(self, model: nn.Module) -> None:
        for parameter in model.parameters():
            if isinstance(parameter, nn.Parameter) and parameter not in self._contents and not is_lazy(parameter):
                self._contents[parameter] = _content(parameter)

    def _enter(self, module: nn.Module, args: Any) -> None:
        if not self._running:
            self.models.setdefault(module)
            self._know(module)
        if not self.batch:
            inputs = [of_all_samples(x) for x in args if isinstance(x, Tensor)]
            self.batch = next((int(x.shape[0]) for x in inputs if x.dim()), 0)
        self._running.append(module)

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        while self._running and self._running.pop() is not module:
            pass

    def _updating(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        closure = len(args) > 1 or bool(kwargs)  # which runs backward inside
        has_gradients = any(p.grad is not None for p in weights_of(optimizer))
        self._had_gradients = self._had_gradients or closure or has_gradients

    def _updated(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        self.optimizers.setdefault(optimizer)
        self.updates += 1
        if self.updates - self.updates_before > MOST_UPDATES:
            raise NotAStep(f"updated weights {MOST_UPDATES} times in one call: name a function that does a single step")


def uncompiled() -> Any:
    """A context in which what torch.compile made runs as it was written: the compiler takes no hooks of others."""
    compiler = torch.compiler if "torch._dynamo" in sys.modules else None
    stance = getattr(compiler, "set_stance", None)
    return stance("force_eager") if stance else nullcontext()


def weights_of(optimizer: Optimizer) -> List[Any]:
    return [p for group in optimizer.param_groups for p in group["params"]]


class WholeStep:
    """One step of the user's own code, from an update of the weights to the next."""

    def __init__(self, call: Callable[[], Any], scope: Dict[str, Any], optimizers: List[Optimizer]) -> None:
        """`scope` are the names that the code sees, which models are called by; the `optimizers` are in its hands."""
        self._call, self._scope, self._expected = call, scope, optimizers
        _, first = self._watch_until_update()  # a step begins after an update
        if first.lacks(self._expected):  # what did not step may never do
            self._expected = []
            self._watch_until_update()
        self.calls, watch = self._watch_until_update(first.parameters)
        if watch.models and not any(model in first.models for model in watch.models):
            raise NotAStep("makes its models anew at each call: make them once, and return a function of a single step")
        self.batch, self.updates = watch.batch or 1, watch.updates
        self.optimizers = list(watch.optimizers)
        inner = {id(m) for root in watch.models for m in root.modules() if m is not root}
        outer = [m for m in watch.models if id(m) not in inner]
        self.models = self._named([m for m in outer if any(True for _ in m.parameters())])  # a loss is no model
        updated = [p for optimizer in self.optimizers for p in weights_of(optimizer)]
        self.updated = list(dict.fromkeys(p for p in updated or watch.parameters if p.requires_grad))

    def __call__(self) -> Any:
        """What the last of the calls returned."""
        for _ in range(self.calls):
            returned = self._call()
        return returned

    @property
    def model(self) -> nn.Module:
        """Its models as one, with the weights that are in none of them."""
        owned = {id(p) for model in self.models.values() for p in model.parameters()}
        loose = [p for p in self.updated if id(p) not in owned and isinstance(p, nn.Parameter)]
        if len(self.models) == 1 and not loose:
            return next(iter(self.models.values()))
        together = nn.Module()
        for name, model in self.models.items():
            together.add_module(name, model)
        for number, parameter in enumerate(loose):
            together.register_parameter(f"weights{number}", parameter)
        return together

    def _watch_until_update(self, parameters: Iterable[nn.Parameter] = ()) -> Tuple[int, Watch]:
        """How many calls the next update takes, and what they did."""
        began, calls = time.monotonic(), 0
        with Watch(parameters) as watch:
            while not watch.updates or watch.lacks(self._expected):
                limit = MOST_SECONDS_FOR_ALL if watch.updates else MOST_SECONDS
                if calls >= MOST_CALLS or (calls > 1 and time.monotonic() - began > limit):
                    if watch.updates:
                        break
                    raise _not_updating(watch, calls)
                watch.updates_before = watch.updates
                self._call()
                calls += 1
                watch.look()
        if not watch.backward_ran:
            raise NotAStep("calls optimizer.step() without a gradient: call loss.backward() before it")
        return calls, watch

    def _named(self, models: List[nn.Module]) -> Dict[str, nn.Module]:
        known = {id(value): name for name, value in self._scope.items() if isinstance(value, nn.Module)}
        named: Dict[str, nn.Module] = {}
        for model in models:
            name = known.get(id(model), type(model).__name__)
            named[name if name not in named else f"{name}{len(named)}"] = model
        return named


def _not_updating(watch: Watch, calls: int) -> NotAStep:
    if not watch.backward_ran:
        return NotAStep(
            "trains nothing: it calls neither backward nor optimizer.step(), and changes no model's weights"
        )
    return NotAStep(f"calls backward, but updated no weights in {calls} calls: call optimizer.step() in it")


def is_torch_module(made: Any) -> bool:
    return isinstance(made, nn.Module)


def run_once(
    function: Callable[..., Any], arguments: Arguments, is_model: Callable[[Any], bool] = is_torch_module
) -> Tuple[Any, Optional[WholeStep]]:
    """What a function returns, and the training step that it is or makes; None where it makes a model."""
    with Watch() as watch:
        returned = function(**arguments)
        watch.look()
    made, given = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, ())
    if is_model(made):
        return returned, None
    if callable(made) and not isinstance(made, type):
        named = given if isinstance(given, dict) else {}
        positional = () if isinstance(given, dict) else given if isinstance(given, tuple) else (given,)
        scope = {**_scope(made), **named, **{k: v for x in positional for k, v in _names_in(x).items()}}
        optimizers = [*_optimizers_in((*positional, *named.values())), *_optimizers_of(made)]
        return returned, WholeStep(lambda: made(*positional, **named), scope, optimizers)
    if watch.updates or watch.backward_ran:
        return returned, WholeStep(lambda: function(**arguments), _scope(function), _optimizers_of(function))
    return returned, None


def _scope(function: Callable[..., Any]) -> Dict[str, Any]:
    """The names that a function, a method or an object that can be called sees."""
    plain = getattr(function, "__func__", function)
    code, found = getattr(plain, "__code__", None), dict(getattr(plain, "__globals__", {}))
    found.update(_names_in(getattr(function, "__self__", function)))
    for name, cell in zip(code.co_freevars if code else (), plain.__closure__ or () if code else ()):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # of a name that is not set yet
            continue
    return found


def _optimizers_of(function: Callable[..., Any], deep: int = FUNCTIONS_DEEP) -> List[Optimizer]:
    """The optimizers under the names that a function uses, or a function that it calls."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    used = _names_used(code) if code else None  # an object that can be called has only what it holds
    seen = [v for name, v in _scope(function).items() if used is None or name in used]
    called = [v for v in seen if isinstance(v, FunctionType) and v is not function] if deep else []
    return [*_optimizers_in(seen), *(o for inner in called for o in _optimizers_of(inner, deep - 1))]


def _names_used(code: CodeType) -> Set[str]:
    inner = (name for part in code.co_consts if isinstance(part, CodeType) for name in _names_used(part))
    return {*code.co_names, *code.co_freevars, *inner}


def _optimizers_in(values: Any, deep: int = 2) -> Iterator[Optimizer]:
    """Those among the values, and in the lists and dictionaries among them."""
    for value in values:
        if isinstance(value, Optimizer):
            yield value
        elif deep and isinstance(value, (list, tuple, dict)):
            yield from _optimizers_in(value.values() if isinstance(value, dict) else value, deep - 1)


def _names_in(value: Any) -> Dict[str, Any]:
    return dict(value) if isinstance(value, dict) else dict(getattr(value, "__dict__", {}))


def build_step(workload: Dict[str, Any]) -> Training:
    """The step that a workload names, ready to be repeated. Precision and optimizer are those of its own code."""
    try:
        _, step = run_once(find_factory(str(workload["factory"])), workload.get("arguments") or {})
    except NotAStep as problem:
        raise failed("{} is no whole training step: it {}".format(workload["factory"], problem)) from None
    if step is None:
        raise failed("{} makes no training step".format(workload["factory"]))
    whole = step
    last: List[Any] = [None]

    def one() -> None:
        last[0] = whole()

    def last_loss() -> float:
        """The loss that the step returns; where it returns none, what shows whether its weights are finite."""
        losses = numbers(last[0])
        return sum(losses) if losses else float(whole.updated[0].detach().float().abs().mean())

    count = sum(p.numel() for p in step.updated)
    return Training(one, last_loss, count, weights=lambda: tuple(p.detach() for p in whole.updated))
