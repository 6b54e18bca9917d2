"""A training step written down operation by operation, and carried out as it was written.

    {"values": [{"value": 0, "shape": [8, 64], "dtype": "float32", "parameter": true, "grad": true, "mean": 0, ...}],
     "calls": [["mm.default", [{"value": 1}, {"value": 0}], {}, [2], true], ...],
     "loss": 9}

`values` are what the step begins with; each says what its numbers are drawn from:

    values            as they are, where they are few
    mean, deviation   real numbers, none below `least`
    below             whole numbers from 0, or a bound for each column; with `ordered` in their order, as offsets are
    share             of true ones

A call is an operation of PyTorch with its overload, its arguments, those that are named, the numbers of the tensors
that it makes or changes, and whether gradients are on. An argument is a plain value, {"value": 3} for a tensor,
{"torch": "float32"} for a constant of the library, or {"number": "-inf"}. Backward is what autograd makes of it.
"""

import re
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import torch
from torch import Tensor, nn

from ampere.core.errors import WorkerError

from .torch_operation import CONSTANTS

MOST_CALLS = 100_000
MOST_VALUES = 1 << 40  # in one tensor: a system refuses less by itself
# What reads or writes beyond its tensors or the process, and what trusts its operands because only PyTorch calls it.
REFUSED = re.compile(
    r"backward|file|storage|data_ptr|resize|quantize|nested|sparse|cuda|cudnn|miopen|vulkan|mps|_out$|^set_$"
    r"|record_stream|pin_memory|from_blob"
)
# Operations with an underscore are PyTorch's own and may trust their operands: these are what models are made of.
INTERNAL = re.compile(
    r"_(adaptive_avg_pool[23]d|aminmax|batch_norm_with_update|cdist_forward|conj|conj_physical|convolution|ctc_loss"
    r"|embedding_bag|euclidean_dist|fft_(c2c|c2r|r2c)|fused_moving_avg_obs_fq_helper|fused_rms_norm|grouped_mm"
    r"|linalg_(det|eigh|slogdet|solve_ex|svd)|log_softmax|logcumsumexp|masked_softmax|native_batch_norm_legit|neg_view"
    r"|pack_padded_sequence|pdist_forward|prelu_kernel|reshape_alias|safe_softmax"
    r"|scaled_dot_product_flash_attention_for_cpu|softmax|stack|standard_gamma|to_copy|trilinear|unique2|unsafe_view"
    r"|upsample_(bicubic|bilinear)2d_aa|weight_norm_interface)"
)

# Of operations with several overloads, those that PyTorch's function chooses for the same arguments.
THE_SAME_IN_PYTHON = {
    *("add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "mm.default", "bmm.default", "addmm.default"),
    *("view.default", "select.int", "transpose.int", "cat.default", "sum.dim_IntList", "mean.dim", "squeeze.dim"),
}


class Value(NamedTuple):
    """An argument that is a tensor of the step."""

    number: int


class Parts(NamedTuple):
    """An argument that is a list with tensors in it."""

    parts: Tuple[Any, ...]


class Call(NamedTuple):
    run: Callable[..., Any]  # the operation, or what Python code calls it by
    operation: Callable[..., Any]
    arguments: Tuple[Any, ...]
    named: Dict[str, Any]
    reads: Tuple[Tuple[int, int], ...]  # which argument is which value
    fills: Tuple[int, ...]  # arguments that are lists with values in them
    named_fills: Tuple[str, ...]
    writes: Tuple[int, ...]
    grad: bool
    frees: Tuple[int, ...] = ()  # values that nothing reads later

    def carry_out(self, values: Dict[int, Tensor]) -> Any:
        given = list(self.arguments)
        for place, number in self.reads:
            given[place] = values[number]
        for place in self.fills:
            given[place] = _filled(given[place], values)
        if not self.named:
            return self.run(*given)
        named = self.named
        if self.named_fills:
            named = {**named, **{name: _filled(named[name], values) for name in self.named_fills}}
        return self.run(*given, **named)


def replayable(name: str) -> bool:
    """Whether an operation, named with its overload, may be part of a program."""
    operation = name.partition(".")[0]
    known = not operation.startswith("_") or INTERNAL.fullmatch(operation) is not None
    return known and bool(re.fullmatch(r"\w+\.\w+", name, re.ASCII)) and not REFUSED.search(operation)


class Program:
    """A step that is carried out as it was written down: float32, on the CPU."""

    def __init__(self, record: Dict[str, Any]) -> None:
        try:
            self.begins = {int(value["value"]): _drawn(value) for value in record["values"]}
            self._loss = int(record["loss"])
            self._calls = _calls(record["calls"], {*self.begins, self._loss})
        except (KeyError, TypeError, ValueError, IndexError, RuntimeError) as problem:
            raise WorkerError(
                "variant_failed", f"the program of the workload is malformed ({problem!s:.200})"
            ) from None
        self.trained: List[nn.Parameter] = [
            t for t in self.begins.values() if isinstance(t, nn.Parameter) and t.requires_grad
        ]
        self._gradients_to_clear = [t for t in self.begins.values() if not isinstance(t, nn.Parameter)]

    def loss(self) -> Tensor:
        for tensor in self._gradients_to_clear:
            tensor.grad = None
        values, grad = dict(self.begins), torch.is_grad_enabled()
        with torch.set_grad_enabled(grad):
            for place, call in enumerate(self._calls):
                if call.grad is not grad:
                    grad = call.grad
                    torch.set_grad_enabled(grad)
                try:
                    made = call.carry_out(values)
                except TypeError:  # it takes its arguments in another order
                    call = self._calls[place] = call._replace(run=call.operation)
                    made = call.carry_out(values)
                if isinstance(made, Tensor):
                    values[call.writes[0]] = made
                elif made is not None:
                    values.update(zip(call.writes, _tensors(made)))
                for number in call.frees:
                    del values[number]
        return values[self._loss]


def _filled(argument: Any, values: Dict[int, Tensor]) -> Any:
    if type(argument) is Value:
        return values[argument.number]
    return [_filled(part, values) for part in argument.parts] if type(argument) is Parts else argument


def _tensors(made: Any) -> List[Tensor]:
    if isinstance(made, Tensor):
        return [made]
    return [t for part in made for t in _tensors(part)] if isinstance(made, (list, tuple)) else []


def _calls(records: List[Any], kept: "set[int]") -> List[Call]:
    """All calls, each with the values that it is the last to read or to make."""
    if len(records) > MOST_CALLS:
        raise ValueError(f"it has more than {MOST_CALLS:,} operations")
    read = [_call(record) for record in records]
    known, later = set(kept), set(kept)
    found = []
    for call in reversed(read):
        touched = {*_numbers((*call.arguments, *call.named.values())), *call.writes}
        found.append(call._replace(frees=tuple(sorted(touched - later))))
        later |= touched
    for call in read:
        unknown = _numbers((*call.arguments, *call.named.values())) - known
        if unknown:
            raise ValueError(f"value {min(unknown)} is read before it is made")
        known |= set(call.writes)
    return found[::-1]


def _call(record: Any) -> Call:
    name, arguments, named, writes, grad = record
    if not replayable(str(name)):
        raise ValueError(f"{name!s:.60} is no operation that can be replayed")
    packet, _, overload = str(name).partition(".")
    run = getattr(getattr(torch.ops.aten, packet, None), overload, None)
    if run is None:
        raise WorkerError("variant_failed", f"PyTorch {torch.__version__} has no operation {name:.60}: update it there")
    given = tuple(_argument(value) for value in arguments)
    also = {str(key): _argument(value) for key, value in named.items()}
    reads = tuple((place, each.number) for place, each in enumerate(given) if type(each) is Value)
    fills = tuple(place for place, each in enumerate(given) if type(each) is Parts)
    named_fills = tuple(key for key, each in also.items() if isinstance(each, (Value, Parts)))
    called, given = _as_python_calls_it(getattr(torch.ops.aten, packet), run, given)
    return Call(called, run, given, also, reads, fills, named_fills, tuple(map(int, writes)), bool(grad))


def _as_python_calls_it(packet: Any, operation: Any, given: Tuple[Any, ...]) -> Tuple[Any, Tuple[Any, ...]]:
    """PyTorch's own function or method that a user's code calls, and all its arguments; an overload takes longer.

    Only where both are the same: functions choose among overloads by themselves, and have defaults of their own.
    """
    name = operation._schema.name.partition("::")[2]
    others = [overload for overload in packet.overloads() if overload != "default" and "out" not in overload]
    direct = getattr(torch._C._VariableFunctions, name, None) or getattr(torch._C.TensorBase, name, None)
    if direct is None or (others and f"{name}.{operation._overloadname}" not in THE_SAME_IN_PYTHON):
        return operation, given
    by_place = [argument for argument in operation._schema.arguments if not argument.kwarg_only]
    return direct, (*given, *(argument.default_value for argument in by_place[len(given) :]))


def _argument(value: Any) -> Any:
    if isinstance(value, list):
        parts = tuple(_argument(part) for part in value)
        return Parts(parts) if any(isinstance(part, (Value, Parts)) for part in parts) else list(parts)
    if not isinstance(value, dict):
        return value
    if "value" in value:
        return Value(int(value["value"]))
    if "number" in value:
        return float(value["number"])
    return _constant(value["torch"])


def _constant(name: Any) -> Any:
    found = getattr(torch, str(name), None)
    if not isinstance(found, CONSTANTS):
        raise ValueError(f"{name!s:.60} is no constant of PyTorch")
    return found


def _numbers(arguments: Any) -> "set[int]":
    found = set()
    for each in arguments:
        if isinstance(each, Value):
            found.add(each.number)
        elif isinstance(each, Parts):
            found |= _numbers(each.parts)
    return found


def _drawn(value: Dict[str, Any]) -> Tensor:
    """A tensor that the step begins with."""
    shape, dtype = [int(n) for n in value["shape"]], _constant(value["dtype"])
    count = 1
    for n in shape:
        count *= n
    if not isinstance(dtype, torch.dtype) or min([1, *shape]) < 0 or count > MOST_VALUES:
        raise ValueError("a tensor has an absurd size or type")
    made = _numbers_for(value, shape, count, dtype)
    if "strides" in value:
        made = torch.empty_strided(shape, [int(n) for n in value["strides"]], dtype=dtype).copy_(made)
    if value.get("parameter"):
        return nn.Parameter(made, requires_grad=bool(value.get("grad")))
    return made.requires_grad_(bool(value.get("grad")))


def _numbers_for(value: Dict[str, Any], shape: List[int], count: int, dtype: torch.dtype) -> Tensor:
    if "values" in value:
        return torch.tensor(value["values"]).to(dtype).reshape(shape)
    if "share" in value:
        return (torch.rand(shape) < float(value["share"])).to(dtype)
    if "below" in value:
        if isinstance(value["below"], list):
            bounds = torch.tensor(value["below"], dtype=torch.float64).clamp(min=1).reshape(shape[1:])
            return (torch.rand(shape, dtype=torch.float64) * bounds).to(dtype)
        below = max(1, int(value["below"]))
        if value.get("ordered"):
            return (torch.arange(count) * below // max(1, count)).to(dtype).reshape(shape)
        return torch.randint(0, below, shape).to(dtype)
    mean, deviation = float(value.get("mean", 0.0)), float(value.get("deviation", 1.0))
    drawn = torch.randn(shape, dtype=dtype).mul_(deviation).add_(mean)
    return drawn.clamp_(min=float(value["least"])) if "least" in value else drawn
