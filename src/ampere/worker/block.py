"""One block: build the subject anew, warm up, measure it beside the yardstick, discard it."""

import time
from typing import Any, Dict, Tuple

from .errors import bad_request
from .isolation import CAN_FORK, in_child
from .measuring import Target, measure, measure_plain, plan_steps, plan_windows, window
from .medians import median, quantile
from .memory import limit_memory
from .meters import DEFAULT_WATTS_PER_CORE, choose_meter
from .request import STEP, BlockRequest, seconds_of, threads_of
from .runtimes import Runtime, Training, find_runtime
from .summary import Trial, summary

YARDSTICK_WARMUP = 3
YARDSTICKS_AT_LEAST = 20


def block(record: Dict[str, Any]) -> Dict[str, Any]:
    request = BlockRequest.from_json(record)
    runtime = find_runtime(request.setup.runtime)
    if request.isolation == "inline":
        return _run(request, runtime, ())
    if not CAN_FORK or not runtime.ready_to_fork(request.subject, request.setup.threads):
        return _run(request, runtime, ("not_isolated",))
    return in_child(lambda: _run(request, runtime, ()))


def _run(request: BlockRequest, runtime: Runtime, flags: Tuple[str, ...]) -> Dict[str, Any]:
    began = time.monotonic()
    limit_memory()
    runtime.prepare(request.setup.threads)
    yardstick, target = runtime.yardstick(), runtime.build(request.subject, request.setup)
    meter = choose_meter(request.watts_per_core)
    if request.pairing != "plain":
        window(yardstick.step, YARDSTICK_WARMUP, meter)
    window(target.step, 1, meter)
    first_loss = target.last_loss()
    warm = [window(target.step, 1, meter).seconds for _ in range(request.warmup - 1)]
    if request.pairing == "plain":
        targets, yardsticks = measure_plain(request.iterations, target.step, meter)
    else:
        step_seconds, steps = min(warm, default=0.0), request.iterations
        plan = plan_steps(steps) if request.pairing == "step" else plan_windows(steps, step_seconds)
        timed = _timed(target, request.stage)
        targets, yardsticks = measure(plan, timed, yardstick.step, meter, began + request.seconds_limit)
    trial = Trial(targets, yardsticks, (first_loss, target.last_loss()), target.parameters, flags)
    compiling = {"compile_seconds": target.compile_seconds} if target.compile_seconds else {}
    return {**summary(request, trial), **compiling, "elapsed": time.monotonic() - began}


def _timed(training: Training, stage: str) -> Target:
    """The whole step, or one stage of it with the rest of the step around it."""
    if stage == STEP:
        return Target(training.step)
    if training.parts is None:
        raise bad_request(f"this runtime cannot time the {stage} stage by itself")
    names = [name for name, _ in training.parts]
    actions = [action for _, action in training.parts]
    place = names.index(stage)
    return Target(actions[place], tuple(actions[:place]), tuple(actions[place + 1 :]))


def yardstick_alone(record: Dict[str, Any]) -> Dict[str, Any]:
    """The yardstick in a plain loop: its nominal cost."""
    seconds, threads = seconds_of(record, "seconds", 1.0), threads_of(record)
    runtime = find_runtime(str(record.get("runtime", "torch")))
    runtime.prepare(threads)
    step, meter = runtime.yardstick().step, choose_meter(DEFAULT_WATTS_PER_CORE)
    window(step, YARDSTICK_WARMUP, meter)
    deadline, windows = time.monotonic() + seconds, [window(step, 1, meter)]
    while time.monotonic() < deadline or len(windows) < YARDSTICKS_AT_LEAST:
        windows.append(window(step, 1, meter))
    cpu, wall = [w.cpu_seconds for w in windows], [w.seconds for w in windows]
    return {
        "cpu_seconds": median(cpu),
        "seconds": median(wall),
        "cpu_seconds_p10": quantile(cpu, 0.1),
        "seconds_p10": quantile(wall, 0.1),
        "steps": len(windows),
    }
