"""One block: build the workload, warm up, measure it paired with the yardstick, summarise, discard."""

import contextlib
import math
import time
from statistics import median
from typing import Any, Dict, List, Optional, Tuple

from ampere.core.errors import WorkerError, bad_request
from ampere.core.measurement import Window, ratios, robust_spread, seconds_per_iteration
from ampere.core.windows import Plan, Reading, plan_for_counter, plan_steps, plan_windows, reading_by
from ampere.meters import METER_FAILED, CpuTimeMeter, Meter, at_rest, choose_meter, meter_failed, watts_of
from ampere.meters.system_state import SLEPT_SECONDS, conditions, power_source, slept_seconds
from ampere.runtimes import Runtime, Training, description_of, find_runtime

from .guards import CAN_FORK, Tell, compiling_at_most, compiling_flags, in_child, limit_memory, nobody
from .measuring import Target, measure, measure_plain, measure_steady, settle, unread, window
from .requests import STEP, BlockRequest, seconds_of, threads_of

LOADED_WALL_PER_CPU = 1.25
NOISY_SPREAD = 0.25
THROTTLED, YARDSTICKS_TO_COMPARE = 1.15, 4
YARDSTICK_WARMUP = 3
YARDSTICKS_AT_LEAST = 20
METER_ATTEMPTS = 3


def block(record: Dict[str, Any], tell: Tell = nobody) -> Dict[str, Any]:
    """Once more where the meter failed: a counter that was set back is not set back every time.

    `tell` is for what must be said before the process ends.
    """
    for left in reversed(range(METER_ATTEMPTS)):
        try:
            return _block(record, tell)
        except WorkerError as problem:
            if problem.type != METER_FAILED or not left:
                raise
    raise AssertionError


def _block(record: Dict[str, Any], tell: Tell) -> Dict[str, Any]:
    request, slept, fed = BlockRequest.from_json(record), slept_seconds(), power_source()
    answer = _isolated(request, tell)
    if slept_seconds() - slept > SLEPT_SECONDS:
        raise meter_failed("the machine slept while it was measured: keep it awake")
    if power_source() != fed:
        answer["flags"].append("source_switched")
    return answer


def _isolated(request: BlockRequest, tell: Tell) -> Dict[str, Any]:
    runtime = find_runtime(request.setup.runtime)
    if request.isolation == "inline":
        return _run(request, runtime, (), tell)
    if not CAN_FORK or not runtime.ready_to_fork(request.workload, request.setup.threads):
        return _run(request, runtime, ("not_isolated",), tell)
    return in_child(lambda: _run(request, runtime, ()))


def _run(request: BlockRequest, runtime: Runtime, flags: Tuple[str, ...], tell: Tell = nobody) -> Dict[str, Any]:
    began = time.monotonic()
    limit_memory()
    runtime.prepare(request.setup.threads)
    yardstick = runtime.yardstick()
    compiles = description_of(request.setup.runtime).compiles
    with compiling_at_most(request.compile_limit, tell) if compiles else contextlib.nullcontext():
        target = runtime.build(request.workload, request.setup)
    built = time.monotonic()
    meter = choose_meter(request.watts_per_core) if request.counting else CpuTimeMeter()
    counter_seconds = _counter_seconds(meter, request)
    beside = 0.0
    if request.pairing != "plain":
        window(yardstick.step, YARDSTICK_WARMUP, meter)
        beside = window(yardstick.step, 1, meter).wall_seconds if counter_seconds else 0.0
    window(target.step, 1, meter)
    first_loss = target.last_loss()
    warm = [window(target.step, 1, meter).wall_seconds for _ in range(request.warmup - 1)]
    step_seconds, counted = min(warm, default=0.0), counter_seconds > 0
    if counted and not warm:
        step_seconds = window(target.step, 1, meter).wall_seconds
    plan = _plan(request, step_seconds, beside, counter_seconds, target.settling)
    if request.power:
        targets, yardsticks = measure_steady(target.step, yardstick.step, step_seconds, _reading(meter), meter)
    elif request.pairing == "plain":
        targets, yardsticks = measure_plain(sum(plan.targets), target.step, meter)
    else:
        deadline = built + max(request.seconds_limit, 3 * counter_seconds)
        targets, yardsticks = measure(plan, _timed(target, request.stage), yardstick.step, meter, deadline)
    if counted:
        _refuse_nothing(meter, targets, yardsticks)
    if not request.counting:
        targets, yardsticks = unread(targets), unread(yardsticks)
    losses = first_loss, target.last_loss()
    flags += (*compiling_flags(target.compile_seconds), *_flags(request, targets, yardsticks, losses))
    compiling = {"compile_seconds": target.compile_seconds} if target.compile_seconds else {}
    return {
        "target": _rows(targets),
        "yardstick": _rows(yardsticks),
        "parameters": target.parameters,
        "loss": [_finite(loss) for loss in losses],
        "conditions": conditions(),
        "flags": list(flags),
        **compiling,
        "elapsed_seconds": time.monotonic() - began,
    }


def _rows(windows: List[Window]) -> List[List[Any]]:
    """When a window was is only of use to a host that reads the meter itself."""
    return [(w if w.joules is None else w._replace(began=None)).to_json() for w in windows]


def _flags(
    request: BlockRequest, targets: List[Window], yardsticks: List[Window], losses: Tuple[float, float]
) -> List[str]:
    everything = targets + yardsticks
    wall, busy = sum(w.wall_seconds for w in everything), sum(w.busy_seconds for w in everything)
    spread = robust_spread(ratios(targets, yardsticks))
    raised = {
        "nonfinite_loss": any(_finite(loss) is None for loss in losses),
        "loaded": request.setup.threads == 1 and wall > LOADED_WALL_PER_CPU * busy,
        "noisy": spread is not None and spread > NOISY_SPREAD,
        "throttled": slowed_down(yardsticks),
        "short": sum(w.iterations for w in targets) < request.iterations,
    }
    return [flag for flag, applies in raised.items() if applies]


def slowed_down(yardsticks: List[Window]) -> bool:
    """Whether the same step costs clearly more CPU time in the second half than in the first: the clock fell."""
    if len(yardsticks) < YARDSTICKS_TO_COMPARE:
        return False
    half = len(yardsticks) // 2
    return seconds_per_iteration(yardsticks[-half:]) > THROTTLED * seconds_per_iteration(yardsticks[:half])


def _finite(loss: float) -> Optional[float]:
    return loss if math.isfinite(loss) else None


def _counter_seconds(meter: Meter, request: BlockRequest) -> float:
    said = meter.describe()
    if said["measured"] and request.stage != STEP:
        raise bad_request(f"{said['name']} is too slow for the {request.stage} stage alone: take --meter cpu-time")
    return float(said.get("window_seconds", 0.0))


def _reading(meter: Meter) -> Reading:
    said = meter.describe()
    if not said.get("update_seconds"):
        raise bad_request(f"{said['name']} counts joules and tells no power: ask for whole windows")
    return reading_by(said["update_seconds"])


def _plan(
    request: BlockRequest, step_seconds: float, yardstick_seconds: float, counter_seconds: float, settling: int
) -> Plan:
    if counter_seconds:
        return plan_for_counter(request.iterations, step_seconds, yardstick_seconds, counter_seconds)
    if request.pairing == "window":
        return plan_windows(request.iterations, step_seconds)
    return plan_steps(request.iterations, settling)


def _refuse_nothing(meter: Meter, *kinds: List[Window]) -> None:
    """0 J of training is no measurement."""
    for windows in kinds:
        seconds = sum(w.wall_seconds for w in windows)
        read = [w.joules for w in windows if w.joules is not None]
        if read and sum(read) <= 0:
            raise meter_failed(
                f"{meter.describe()['name']} reported 0 J of {seconds:.2g} s of training: ampere devices --check"
            )


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
    step, clock = runtime.yardstick().step, CpuTimeMeter()
    meter = choose_meter(watts_of(record)) if record.get("count", True) else CpuTimeMeter()
    counter_seconds = float(meter.describe().get("window_seconds", 0.0))
    window(step, YARDSTICK_WARMUP, clock)
    rest, rested = at_rest(meter) if counter_seconds else (math.nan, None)
    if record.get("power"):
        settle(step, _reading(meter))
    whole = _reading(meter).seconds if record.get("power") else 2 * counter_seconds
    meter.start()  # once around all steps: a counter is too slow for each
    deadline, windows = time.monotonic() + max(seconds, whole), [window(step, 1, clock)]
    while time.monotonic() < deadline or len(windows) < YARDSTICKS_AT_LEAST:
        windows.append(window(step, 1, clock))
    total = meter.stop()
    busy, wall = [w.busy_seconds for w in windows], [w.wall_seconds for w in windows]
    if counter_seconds and total <= 0:
        raise meter_failed(f"{meter.describe()['name']} reported 0 J of training: ampere devices --check")
    joules = total / max(sum(busy), 1e-9) * median(busy)  # at the cost of the median step, as its seconds are
    elsewhere = math.isnan(joules)
    return {
        "busy_seconds": median(busy),
        "wall_seconds": median(wall),
        "steps": len(windows),
        "joules": None if not counter_seconds or elsewhere else joules,
        "watts_idle": None if math.isnan(rest) else rest,
        "windows": [w._replace(joules=None).to_json() for w in windows] if elsewhere else None,
        "rest": rested if elsewhere else None,
    }
