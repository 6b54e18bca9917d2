"""A function of the user's that does a whole training step, watched to learn what it trains.

    call 1             call 2                  call n
    forward, backward  forward, backward  ...  forward, backward, update        n calls are one step

It is found in two ways: the function that is named trains when it is called, or it returns one that does, alone or with
what it is called with.
"""

import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from .plain_script import numbers
from .runtime import Training
from .user_code import failed, find_factory

MOST_CALLS, MOST_SECONDS = 64, 60.0  # without an update of the weights
MOST_UPDATES = 100  # in one call: more is a whole training

Arguments = Dict[str, Any]


class NotAStep(Exception):
    """Why a function is no training step; the message says what to do."""


def _version(parameter: nn.Parameter) -> int:
    """A number that grows with each change of its values."""
    try:
        return int(parameter._version)
    except RuntimeError:  # what was made in inference mode has none
        return 0


class Watch:
    """Sees which models a user's code runs, and whether it updates their weights."""

    def __init__(self) -> None:
        self.models: Dict[nn.Module, None] = {}  # that no other module called, in the order of their first calls
        self.optimizers: Dict[Optimizer, None] = {}
        self.updates = 0
        self.batch = 0
        self._had_gradients = False
        self._running: List[nn.Module] = []
        self._versions: Dict[nn.Parameter, int] = {}

    def __enter__(self) -> "Watch":
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

    @property
    def parameters(self) -> List[nn.Parameter]:
        return list(self._versions)

    @property
    def backward_ran(self) -> bool:
        return self._had_gradients or any(p.grad is not None for p in self._versions)

    def look(self) -> None:
        """Weights may also be changed by hand, which no optimizer says."""
        if not self.updates and any(_version(p) != version for p, version in self._versions.items()):
            self.updates, self._had_gradients = 1, True

    def _enter(self, module: nn.Module, args: Any) -> None:
        if not self._running:
            self.models.setdefault(module)
            for parameter in module.parameters():
                self._versions.setdefault(parameter, _version(parameter))
        if not self.batch:
            self.batch = next((int(x.shape[0]) for x in args if isinstance(x, Tensor) and x.dim()), 0)
        self._running.append(module)

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        while self._running and self._running.pop() is not module:
            pass

    def _updating(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        weights = [p for group in optimizer.param_groups for p in group["params"]]
        closure = len(args) > 1 or bool(kwargs)  # which runs backward inside
        self._had_gradients = self._had_gradients or closure or any(p.grad is not None for p in weights)

    def _updated(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        self.optimizers.setdefault(optimizer)
        self.updates += 1
        if self.updates > MOST_UPDATES:
            raise NotAStep(f"updated weights {MOST_UPDATES} times in one call: name a function that does a single step")


class WholeStep:
    """One step of the user's own code, from an update of the weights to the next."""

    def __init__(self, call: Callable[[], Any], scope: Dict[str, Any]) -> None:
        """`scope` are the names that the code sees, which models are called by."""
        self._call, self._scope = call, scope
        self._watch_until_update()  # a step begins after an update
        self.calls, watch = self._watch_until_update()
        self.batch, self.updates = watch.batch or 1, watch.updates
        self.optimizers = list(watch.optimizers)
        inner = {id(m) for root in watch.models for m in root.modules() if m is not root}
        outer = [m for m in watch.models if id(m) not in inner]
        self.models = self._named([m for m in outer if any(True for _ in m.parameters())])  # a loss is no model
        updated = [p for o in self.optimizers for group in o.param_groups for p in group["params"]]
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

    def _watch_until_update(self) -> Tuple[int, Watch]:
        """How many calls the next update takes, and what they did."""
        began, calls = time.monotonic(), 0
        with Watch() as watch:
            while not watch.updates:
                if calls >= MOST_CALLS or (calls > 1 and time.monotonic() - began > MOST_SECONDS):
                    raise _not_updating(watch, calls)
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
        return NotAStep("trains nothing: it calls neither backward nor optimizer.step()")
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
        return returned, WholeStep(lambda: made(*positional, **named), scope)
    if watch.updates or watch.backward_ran:
        return returned, WholeStep(lambda: function(**arguments), _scope(function))
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
