"""Why a model could not be traced: what, where, and what to do, in one line."""

from __future__ import annotations

from textwrap import shorten
from typing import Any

from torch import Tensor, nn

from ampere.errors import ModelError
from ampere.worker.runtimes.torch_loss import differentiable, own_loss

from .calls import Call

_SHAPES = ("shape", "size", "channels", "expected", "dimension", "must match", "cannot be multiplied", "argument")


class Failure(Exception):
    """A step that did not run through, and the module call in which it stopped."""

    def __init__(self, cause: Exception, call: Call) -> None:
        self.cause = cause
        self.call = call
        first = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
        self.line = shorten(first, 240, placeholder=" ...").rstrip(".")
        super().__init__(self.line)


def refuse_untrainable(model: nn.Module) -> None:
    if not any(p.requires_grad for p in model.parameters()):
        raise ModelError(
            f"cannot train {type(model).__name__}: no parameter requires a gradient; set requires_grad on some"
        )


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
    call = failure.call
    where = f"{call.path} ({type(call.module).__name__})" if call.path else type(call.module).__name__
    given = _given(call.args, call.kwargs) or _given((), inputs if isinstance(inputs, dict) else {"": inputs})
    return ModelError(f"{where} cannot be run: {failure.line}; it was given {given}; {_remedy(failure)}")


def _remedy(failure: Failure) -> str:
    text = failure.line.lower()
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
