"""A script that trains a model as a user's own does: PyTorch, the model's file, and nothing of Ampere.

The system's allocator gives memory back more or less often depending on what a process has allocated before, and so a
step of a small model costs up to a fifth more or less. Python's table of names alone can decide it, by a few hundred
of them (docs/decisions/0043). So this imports what every training script does, and defines little. Its task and its
answer are one line of JSON each.
"""

import importlib
import json
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch.nn.functional import cross_entropy
from torch.nn.parameter import is_lazy
from torch.optim.optimizer import register_optimizer_step_post_hook

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

READY = "ready"  # a line that says that it waits for its turn
WARMUP = 4
WARMUP_SHARE = 0.4  # of the seconds at most
WINDOW_SECONDS = 0.15
FEWEST_WINDOWS = 3
PEAK_SECONDS = 15.0  # of steps for the peak of memory, at most, where no other process takes time
LOADED = 3.0  # how many times as long they may take where others do
FEWEST_PEAK_STEPS = 3
STEADY = 1.002  # what two steps add to a peak that is steady
DATA_ENDED = "its data ended, iterate over it again and again, as with itertools.cycle"
NODES_OF_A_LOSS = 64  # of autograd, from a loss back to the outputs that it is computed from: looked for at each step


class Step(NamedTuple):
    """A training step that can be repeated, what shows whether it diverged, and how many values it trains."""

    step: Callable[[], Any]
    loss: Callable[[], float]
    parameters: int
    synchronize: Callable[[], None] = lambda: None
    timer: Callable[[], Callable[[], float]] = lambda: cpu_timer()


def main() -> None:
    task = json.loads(sys.argv.pop(1))  # the user's code finds no arguments
    torch.set_num_threads(task["threads"])
    torch.manual_seed(0)
    factory, build = None, whole_step if task["step"] else plain_step
    with suppress(Exception):  # what is wrong with it, Ampere says
        factory = loaded(task["factory"], task.get("folder"))
    answer_when_asked(task, lambda: build(task, factory))


def answer_when_asked(task: Dict[str, Any], build: Callable[[], Step]) -> None:
    """Build the model, wait for its turn, train, and print what was seen or what went wrong.

    The first optimizer of a process imports PyTorch's compiler, which takes seconds: others can wait for theirs
    meanwhile. A large model is built in its turn, so that there is one of them at a time.
    """
    try:
        built = None if task.get("build_in_turn") else build()
        wait_for_turn()
        training = built or build()
        answer = trained(training, task["seconds"], task.get("at_most"), task.get("peak_steps", 0), wait_for_turn)
    except StopIteration:
        answer = {"error": DATA_ENDED}
    except Exception as problem:
        answer = {"error": f"{type(problem).__name__}: {problem}"}
    print("\n" + json.dumps(answer), flush=True)


def wait_for_turn() -> None:
    print("\n" + READY, flush=True)  # on a line of its own, whatever the user's code has printed
    if not sys.stdin.readline():
        sys.exit()  # nobody waits for an answer any more


def loaded(reference: str, folder: Optional[str] = None) -> Any:
    """The function of that place and name, with its neighbours in reach, as a script in the same folder has them.

    With a `folder` it is one of a package there.
    """
    place, _, name = reference.rpartition(":")
    path = Path(place).resolve()
    sys.path.insert(0, folder or str(path.parent if path.suffix == ".py" else Path.cwd()))
    return getattr(importlib.import_module(path.stem if path.suffix == ".py" else place), name)


def plain_step(task: Dict[str, Any], factory: Any) -> Step:
    """What people write: a model, a loss, an optimizer, and a loop.

    In a loop the output and the loss live until the next step has made others, and so does the graph of the loss: small
    objects between which memory has more holes than where a step is a function (docs/decisions/0051).
    """
    made = factory(**task["arguments"])
    model, inputs = made if isinstance(made, tuple) else (made, None)
    model.train()
    specs = task["inputs"]
    if isinstance(specs, dict):
        inputs = {key: drawn(**spec) for key, spec in specs.items()}
    elif specs is not None:
        inputs = [drawn(**spec) for spec in specs]
    args, kwargs = called_with(tuple(inputs) if isinstance(inputs, list) else inputs)
    fill_lazy(model, args, kwargs)
    parameters = [p for p in model.parameters() if p.requires_grad]
    place, settings = task["optimizer"]
    module, _, name = place.partition(":")
    optimizer = getattr(importlib.import_module(module), name)(parameters, **settings)
    output: Any = None
    loss: Any = None

    def step() -> None:
        nonlocal output, loss
        optimizer.zero_grad()
        output = model(*args, **kwargs)
        loss = training_loss(output)
        loss.backward()
        optimizer.step()

    return Step(step, lambda: float(loss.detach()), sum(p.numel() for p in parameters))


def fill_lazy(model: Any, args: Any, kwargs: Any) -> None:
    """Let a first call decide the sizes of layers that are made without, such as `nn.LazyLinear`, as people do."""
    if any(map(is_lazy, (*model.parameters(), *model.buffers()))):
        with torch.no_grad():
            model(*args, **kwargs)


def called_with(inputs: Any) -> Tuple[Any, Any]:
    if isinstance(inputs, dict):
        return (), inputs
    return inputs if isinstance(inputs, tuple) else (inputs,), {}


def whole_step(task: Dict[str, Any], function: Any) -> Step:
    """A step that the user wrote, or a function returns; with its calls from an update of the weights to the next."""
    made, inputs = function(**task["arguments"]), ()
    if isinstance(made, tuple) and len(made) == 2:
        made, inputs = made
    call: Callable[[], Any] = lambda: function(**task["arguments"])  # noqa: E731
    if callable(made):
        args, kwargs = called_with(inputs)
        call = lambda: made(*args, **kwargs)  # noqa: E731
    updated: List[Any] = []
    handle = register_optimizer_step_post_hook(lambda optimizer, args, kwargs: updated.append(optimizer))
    calls = task["calls"]
    for _ in range(calls):
        call()
    handle.remove()
    groups = [group for optimizer in dict.fromkeys(updated) for group in optimizer.param_groups]
    parameters = list(dict.fromkeys(p for group in groups for p in group["params"] if p.requires_grad))
    last: List[Any] = [None]

    def step() -> None:
        for _ in range(calls):
            last[0] = call()

    def loss() -> float:
        shown = [p.detach().float().abs().mean() for p in parameters[:1]]  # no optimizer has those updated by hand
        return float(sum(numbers(last[0]) or shown))

    return Step(step, loss, sum(p.numel() for p in parameters))


def trained(
    training: Step,
    seconds: float,
    at_most: Optional[float] = None,
    peak_steps: int = 0,
    turn: Callable[[], None] = lambda: None,
) -> Dict[str, Any]:
    """Windows of plain training steps, as rows of a measurement, the first and the last loss, and the peak of memory.

    Others have a `turn` before each window and after the last. With `at_most` seconds for all steps, long ones are
    warmed up less; two are trained in any case. Up to `peak_steps` follow until the peak is steady: windows of their
    own where a step is as long as a window.
    """
    windows: List[List[Any]] = []
    others = [0.0]  # seconds of their turns

    def window(steps: int) -> List[Any]:
        training.synchronize()
        faults, started, timer = page_faults(), time.perf_counter(), training.timer()
        for _ in range(steps):
            training.step()
        busy, wall = timer(), time.perf_counter() - started
        return [steps, wall, busy, None, page_faults() - faults]

    def pause() -> None:
        started = time.perf_counter()
        turn()
        others[0] += time.perf_counter() - started

    began, limit = time.perf_counter(), float("inf") if at_most is None else at_most
    step_seconds = window(1)[1]
    first, first_peak, done = training.loss(), peak_bytes(), 1
    while done <= WARMUP and time.perf_counter() - began <= WARMUP_SHARE * limit:
        step_seconds = window(1)[1]
        done += 1
    steps = max(1, round(WINDOW_SECONDS / max(step_seconds, 1e-6)))
    pause()
    while not windows or (
        time.perf_counter() - began - others[0] < limit
        and (len(windows) < FEWEST_WINDOWS or sum(row[1] for row in windows) < seconds)
    ):
        windows.append(window(steps))
        pause()
    elapsed, loss = time.perf_counter() - began, training.loss()
    done += steps * len(windows)
    peaks, wall, cpu = [first_peak or 0, peak_bytes() or 0], time.perf_counter(), time.process_time()
    for number in range(peak_steps if peaks[-1] else 0):
        steady = number >= FEWEST_PEAK_STEPS and peaks[-1] <= STEADY * peaks[-3]
        spent = max((time.perf_counter() - wall) / LOADED, (time.process_time() - cpu) / torch.get_num_threads())
        if steady or spent + step_seconds / LOADED > PEAK_SECONDS:
            break
        further = window(1)
        step_seconds, done = further[1], done + 1
        peaks.append(peak_bytes() or 0)
        if steps == 1:
            windows.append(further)
            pause()
    return {
        "windows": windows,
        "loss": [first, loss],
        "parameters": training.parameters,
        "elapsed_seconds": elapsed,
        "first_peak_bytes": first_peak,
        "peak_bytes": peaks[-1] or None,
        "peak_steps": done,
    }


def cpu_timer() -> Callable[[], float]:
    began = time.process_time_ns()
    return lambda: (time.process_time_ns() - began) * 1e-9


def page_faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt if resource else 0


def peak_bytes() -> Optional[int]:
    """The most resident memory that this process had; None where the system does not say.

    Not what `getrusage` says: there the process that started this one counts, too.
    """
    try:
        with open("/proc/self/status", "rb", buffering=0) as status:
            found = (line.split() for line in status.read(1 << 16).splitlines() if line.startswith(b"VmHWM:"))
            return int(next(found)[1]) * 1024
    except (OSError, StopIteration, IndexError, ValueError):
        return None


def drawn(shape: Any, dtype: str, high: Optional[int] = None) -> Any:
    """An input like those that the model is trained with, without touching the user's random numbers."""
    kind, generator = getattr(torch, dtype), torch.Generator().manual_seed(0)
    if kind.is_floating_point or kind.is_complex:
        return torch.randn(shape, generator=generator, dtype=kind)
    return torch.randint(2 if high is None else high, shape, generator=generator).to(kind)


def training_loss(output: Any) -> Any:
    """The model's own loss if it has one; cross entropy for class scores; else the mean of squares."""
    own = own_loss(output)
    if own is not None:
        return own
    tensors = differentiable(output)
    if not tensors:
        raise ValueError("no output of the model depends on a parameter that can be trained")
    if _are_scores(tensors):
        return cross_entropy(tensors[0], targets(output))
    return sum((t.square().mean() for t in tensors[1:]), tensors[0].square().mean())


def own_loss(output: Any) -> Any:
    """The loss that a model returns: under that name, alone, or as the number that its other outputs lead to."""
    loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if isinstance(loss, torch.Tensor) and loss.requires_grad:
        return loss
    tensors = differentiable(output)
    single = [tensor for tensor in tensors if tensor.dim() == 0]
    others = {tensor.grad_fn for tensor in tensors if tensor.dim()}
    return single[0] if len(single) == 1 and others <= _nodes_before(single[0].grad_fn, others) else None


def _nodes_before(last: Any, wanted: Any) -> Any:
    """Those of the wanted autograd nodes that are close before the last: a penalty is computed from other things."""
    found: Any = set()
    waiting, seen = [last] if wanted and last is not None else [], 0
    while waiting and seen < NODES_OF_A_LOSS and len(found) < len(wanted):
        node = waiting.pop(0)
        seen += 1
        if node in wanted:
            found.add(node)
        waiting += [before for before, _ in node.next_functions if before is not None]
    return found


def differentiable(output: Any) -> List[Any]:
    """All floating tensors in an output that a gradient can start from."""
    if isinstance(output, torch.Tensor):
        return [output] if output.requires_grad and output.is_floating_point() else []
    if isinstance(output, Mapping):
        parts = list(output.values())
    elif is_dataclass(output) and not isinstance(output, type):
        parts = list(vars(output).values())
    else:
        parts = list(output) if isinstance(output, (list, tuple)) else []
    return [tensor for part in parts for tensor in differentiable(part)]


def targets(output: Any) -> Any:
    """The labels that `training_loss` compares class scores with: the same ones at every step."""
    tensors = differentiable(output)
    if own_loss(output) is not None or not _are_scores(tensors):
        return None
    scores = tensors[0]
    # Labels without values, of scores without values, must not be kept for others.
    labels = kept_labels if type(scores) is torch.Tensor else kept_labels.__wrapped__
    return labels(int(scores.shape[0]), int(scores.shape[1]), str(scores.device))


def _are_scores(tensors: List[Any]) -> bool:
    return len(tensors) == 1 and tensors[0].dim() == 2 and tensors[0].shape[1] > 1


@lru_cache(maxsize=64)
def kept_labels(rows: int, classes: int, device: str) -> Any:
    if device == "meta":
        return torch.zeros(rows, dtype=torch.long, device=device)
    # A generator of its own leaves the user's random numbers as they are.
    return torch.randint(classes, (rows,), generator=torch.Generator().manual_seed(0)).to(device)


def numbers(returned: Any) -> List[float]:
    """The losses that a user's step returns."""
    if isinstance(returned, torch.Tensor):
        return [float(returned.detach())] if returned.numel() == 1 else []
    if isinstance(returned, (int, float)) and not isinstance(returned, bool):
        return [float(returned)]
    parts = list(returned.values()) if isinstance(returned, dict) else returned
    return [number for part in parts for number in numbers(part)] if isinstance(parts, (list, tuple)) else []


if __name__ == "__main__":
    main()
