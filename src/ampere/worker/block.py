"""One block: build the workload, warm up, measure it paired with the yardstick, summarise, discard."""

import contextlib
import math
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ampere.core.errors import WorkerError, bad_request
from ampere.core.windows import (
    Plan,
    Reading,
    median,
    plan_for_counter,
    plan_steps,
    plan_windows,
    quantile,
    reading_by,
    relative_spread,
)
from ampere.meters import METER_FAILED, CpuTimeMeter, Meter, at_rest, choose_meter, meter_failed, watts_of
from ampere.meters.system_state import SLEPT_SECONDS, conditions, power_source, slept_seconds
from ampere.runtimes import Runtime, Training, description_of, find_runtime

from .guards import CAN_FORK, Tell, compiling_at_most, compiling_flags, in_child, limit_memory, nobody
from .measuring import Target, Window, measure, measure_plain, measure_steady, ratios, settle, window
from .requests import STEP, BlockRequest, seconds_of, threads_of

# What a block showed, per iteration, with every doubt as a flag.

LOADED_WALL_PER_CPU = 1.25
NOISY_SPREAD = 0.25
THROTTLED, YARDSTICKS_TO_TELL = 1.15, 4


class Trial(NamedTuple):
    targets: List[Window]
    yardsticks: List[Window]
    losses: Tuple[float, float]  # after the first step, and after the last
    parameters: int
    flags: Tuple[str, ...]
    counted: bool = False  # a counter read the joules


def summary(request: BlockRequest, trial: Trial) -> Dict[str, Any]:
    targets, yardsticks = trial.targets, trial.yardsticks
    found = ratios(targets, yardsticks)
    iterations = sum(w.iterations for w in targets)
    cpu_seconds = median([w.cpu_per_iteration for w in targets])
    return {
        "ratio": median(found) if found else None,
        "spread": relative_spread(found),
        "seconds": median([w.seconds / w.iterations for w in targets]),
        "cpu_seconds": cpu_seconds,
        "yardstick_seconds": median([w.cpu_per_iteration for w in yardsticks]) if yardsticks else None,
        "joules": _joules(targets) if request.counting else None,
        "yardstick_joules": _joules(yardsticks) if trial.counted and yardsticks else None,
        "windows": _for_the_host(targets, yardsticks if trial.counted else []),
        "iterations": iterations,
        "page_faults": sum(w.page_faults for w in targets) / iterations,
        "parameters": trial.parameters,
        "loss": [_finite(loss) for loss in trial.losses],
        "conditions": conditions(),
        "flags": [*trial.flags, *_flags(request, trial, relative_spread(found))],
    }


def _for_the_host(targets: List[Window], yardsticks: List[Window]) -> Optional[Dict[str, Any]]:
    return {"target": spans(targets), "yardstick": spans(yardsticks)} if _joules(targets) is None else None


def spans(windows: List[Window]) -> List[Tuple[float, float, float]]:
    """When they began and ended, and their CPU seconds, for a host that reads the meter."""
    return [(w.began, w.began + w.seconds, w.cpu_seconds) for w in windows]


def _joules(windows: List[Window]) -> Optional[float]:
    """The power of all windows at the cost of the median one, or a single slow window would count in joules only."""
    if any(math.isnan(w.joules) for w in windows):
        return None
    watts = sum(w.joules for w in windows) / max(sum(w.cpu_seconds for w in windows), 1e-9)
    return watts * median([w.cpu_per_iteration for w in windows])


def _flags(request: BlockRequest, trial: Trial, spread: Optional[float]) -> List[str]:
    everything = trial.targets + trial.yardsticks
    wall, cpu = sum(w.seconds for w in everything), sum(w.cpu_seconds for w in everything)
    doubts = {
        "nonfinite_loss": any(_finite(loss) is None for loss in trial.losses),
        "loaded": request.setup.threads == 1 and wall > LOADED_WALL_PER_CPU * cpu,
        "noisy": spread is not None and spread > NOISY_SPREAD,
        "throttled": slowed_down(trial.yardsticks),
        "short": sum(w.iterations for w in trial.targets) < request.iterations,
    }
    return [flag for flag, doubted in doubts.items() if doubted]


def slowed_down(yardsticks: List[Window]) -> bool:
    """The same step costs clearly more CPU time in the second half than in the first: the clock fell on the way."""
    if len(yardsticks) < YARDSTICKS_TO_TELL:
        return False
    costs, half = [w.cpu_per_iteration for w in yardsticks], len(yardsticks) // 2
    return median(costs[-half:]) > THROTTLED * median(costs[:half])


def _finite(loss: float) -> Optional[float]:
    return loss if math.isfinite(loss) else None


# One block: build the subject anew, warm up, measure it beside the yardstick, discard it.

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
    if not CAN_FORK or not runtime.ready_to_fork(request.subject, request.setup.threads):
        return _run(request, runtime, ("not_isolated",), tell)
    return in_child(lambda: _run(request, runtime, ()))


def _run(request: BlockRequest, runtime: Runtime, flags: Tuple[str, ...], tell: Tell = nobody) -> Dict[str, Any]:
    began = time.monotonic()
    limit_memory()
    runtime.prepare(request.setup.threads)
    yardstick = runtime.yardstick()
    compiles = description_of(request.setup.runtime).compiles
    with compiling_at_most(request.compile_limit, tell) if compiles else contextlib.nullcontext():
        target = runtime.build(request.subject, request.setup)
    built = time.monotonic()
    meter = choose_meter(request.watts_per_core) if request.counting else CpuTimeMeter()
    counter_seconds = _counter_seconds(meter, request)
    beside = 0.0
    if request.pairing != "plain":
        window(yardstick.step, YARDSTICK_WARMUP, meter)
        beside = window(yardstick.step, 1, meter).seconds if counter_seconds else 0.0
    window(target.step, 1, meter)
    first_loss = target.last_loss()
    warm = [window(target.step, 1, meter).seconds for _ in range(request.warmup - 1)]
    step_seconds, counted = min(warm, default=0.0), counter_seconds > 0
    if counted and not warm:
        step_seconds = window(target.step, 1, meter).seconds
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
    counted = counted and not request.power  # then the yardstick was only timed
    flags += compiling_flags(target.compile_seconds)
    trial = Trial(targets, yardsticks, (first_loss, target.last_loss()), target.parameters, flags, counted)
    compiling = {"compile_seconds": target.compile_seconds} if target.compile_seconds else {}
    return {**summary(request, trial), **compiling, "elapsed": time.monotonic() - began}


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
        seconds = sum(w.seconds for w in windows)
        if windows and sum(w.joules for w in windows) <= 0:
            raise meter_failed(
                f"{meter.describe()['name']} told 0 J of {seconds:.2g} s of training: ampere devices --check"
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
    total, cpu, wall = meter.stop(), [w.cpu_seconds for w in windows], [w.seconds for w in windows]
    if counter_seconds and total <= 0:
        raise meter_failed(f"{meter.describe()['name']} told 0 J of training: ampere devices --check")
    joules = total / max(sum(cpu), 1e-9) * median(cpu)  # at the cost of the median step, as its seconds are
    return {
        "cpu_seconds": median(cpu),
        "seconds": median(wall),
        "cpu_seconds_p10": quantile(cpu, 0.1),
        "seconds_p10": quantile(wall, 0.1),
        "steps": len(windows),
        "joules": None if not counter_seconds or math.isnan(joules) else joules,
        "watts_idle": None if math.isnan(rest) else rest,
        "windows": {"yardstick": spans(windows), "rest": rested} if math.isnan(joules) else None,
    }
