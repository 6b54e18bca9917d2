"""Which module call an operation runs in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from torch import nn


@dataclass(eq=False)
class Call:
    """One call of one module; `parent` is None for the model itself."""

    path: str
    module: nn.Module
    parent: Call | None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    output: Any = None

    def chain(self) -> Iterator[Call]:
        """This call and the ones around it, the model's own left out."""
        call: Call = self
        while call.parent is not None:
            yield call
            call = call.parent


class CallTracker:
    """Follows the calls through hooks on every module of a copy of the model."""

    def __init__(self, model: nn.Module) -> None:
        self.root = Call("", model, None)
        self.current = self.root
        self.entered: Callable[[Call], None] = lambda call: None
        self.left: Callable[[Call], None] = lambda call: None
        for path, module in model.named_modules():
            self._hook(path, module)

    def _hook(self, path: str, module: nn.Module) -> None:
        def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            call = Call(path, module, self.current) if path else self.root
            call.args, call.kwargs = args, kwargs
            self.current = call
            self.entered(call)

        def leave(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            call = self._find(module)
            call.output = output
            self.left(call)
            self.current = call.parent or self.root

        module.register_forward_pre_hook(enter, with_kwargs=True)
        module.register_forward_hook(leave)

    def _find(self, module: nn.Module) -> Call:
        """A user's `try` may have skipped the leaving of inner calls."""
        for call in self.current.chain():
            if call.module is module:
                return call
        return self.root
