"""Operations on shapes, without importing PyTorch's compiler: that takes longer than importing PyTorch itself.

Reference code of many operations, optimizers and tensors without values import it only to read a setting, or to ask it
to leave them alone. Here they find a module that has no more than that, for as long as a step is followed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Any, TypeVar

import torch

COMPILER = "torch._dynamo"
Found = TypeVar("Found")
_one_at_a_time = RLock()


def without_compiler(follow: Callable[[], Found]) -> Found:
    """What `follow` returns. Where it needs the compiler after all, that is imported and it runs again."""
    if hasattr(sys.modules.get(COMPILER), "optimize"):  # the real one is there already
        return follow()
    with _one_at_a_time:
        if COMPILER in sys.modules:  # called within itself
            return follow()
        try:
            with _settings_alone():
                return follow()
        except Exception as problem:
            if not _is_missed(problem):
                raise
    __import__(COMPILER)
    return follow()


def _is_missed(problem: BaseException | None) -> bool:
    return problem is not None and (
        COMPILER in str(problem) or _is_missed(problem.__cause__) or _is_missed(problem.__context__)
    )


@contextmanager
def _settings_alone() -> Iterator[None]:
    asked: list[Any] = []

    def disable(function: Any = None, *args: Any, **kwargs: Any) -> Any:
        asked.append(function)
        return function

    empty, path = ModuleType(COMPILER), Path(torch.__file__).parent / "_dynamo" / "config.py"
    spec = spec_from_file_location(f"{COMPILER}.config", path)
    assert spec is not None
    assert spec.loader is not None
    settings, names = module_from_spec(spec), ModuleType(f"{COMPILER}.source")
    vars(names).update(ConstantSource=str, RandomValueSource=bytes)  # where a constant comes from: never from there
    parts = {COMPILER: empty, settings.__name__: settings, names.__name__: names}
    vars(empty).update(__path__=[], disable=disable, graph_break=lambda *args, **kwargs: None, config=settings)
    try:
        sys.modules.update(parts)
        spec.loader.exec_module(settings)
        vars(torch)["_dynamo"] = empty
        yield
    finally:
        for name in parts:
            sys.modules.pop(name, None)
        vars(torch).pop("_dynamo", None)
        for function in asked:
            vars(function).pop("__dynamo_disable", None)
