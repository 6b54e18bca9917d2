"""Which module an equation runs in: each module's call is traced inside a scope that is named after its path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
from flax import nnx

MARK, CALL = "module:", "__call__"


Calls = dict[str, tuple[Any, tuple[Any, ...]]]  # the module at each path, and the shapes that it was first called with


_FOUND = re.compile(MARK + r"([\w.]+)")


def path_in(stack: str) -> str:
    """The innermost module named in a stack of scopes; "" for the model itself."""
    found = _FOUND.findall(stack)
    return str(found[-1]) if found else ""


def backward_in(stack: str) -> bool:
    return "transpose(" in stack


@contextmanager
def named_calls(model: nnx.Module) -> Iterator[Calls]:
    """While it lasts, each call of a module is in its scope; yields what was called, as it is called."""
    paths = {id(node): ".".join(map(str, path)) for path, node in nnx.iter_graph(model) if isinstance(node, nnx.Module)}
    kinds = {type(node) for _, node in nnx.iter_graph(model) if isinstance(node, nnx.Module)}
    callable_kinds = {kind: getattr(kind, CALL) for kind in kinds if CALL in dir(kind)}
    calls: Calls = {}

    def scoped(original: Any) -> Any:
        def call(self: Any, *args: Any, **named: Any) -> Any:
            path = paths.get(id(self), "")
            calls.setdefault(path, (self, tuple(getattr(a, "shape", None) for a in (*args, *named.values()))))
            if not path:
                return original(self, *args, **named)
            with jax.named_scope(MARK + path):
                return original(self, *args, **named)

        return call

    own = {kind: CALL in vars(kind) for kind in callable_kinds}
    for kind, original in callable_kinds.items():
        setattr(kind, CALL, scoped(original))
    try:
        yield calls
    finally:
        for kind, original in callable_kinds.items():
            if own[kind]:
                setattr(kind, CALL, original)
            else:
                delattr(kind, CALL)
