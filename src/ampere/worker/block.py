"""One block: build the workload, warm up, measure it paired with the yardstick, summarise, discard."""

import contextlib
import math
import time
from itertools import zip_longest
from statistics import median
from typing import Any, Callable, Dict, List, Optional, Tuple

from ampere.core.errors import WorkerError, as_worker_error, bad_request, first_line
from ampere.core.measurement import (
    BUSY,
    RESTING_BYTES,
    TINY_SECONDS,
    WALL,
    YARDSTICK_ALONE,
    Window,
    clock_of,
    ratios,
    robust_spread,
    seconds_per_iteration,
)
from ampere.core.setup import CPU
from ampere.core.windows import (
    LEAST_IN_WINDOW,
    YARDSTICKS_IN_WINDOW,
    Plan,
    Reading,
    plan_for_counter,
    plan_steps,
    plan_windows,
    reading_by,
)
from ampere.meters import METER_FAILED, CpuTimeMeter, Meter, at_rest, meter_asked_for, meter_failed, watts_of
from ampere.meters.system_state import SLEPT_SECONDS, conditions, power_source, slept_seconds
from ampere.runtimes import Processor, Runtime, Training, description_of, find_runtime

from .accelerators import in_new_process, meter_of, ready, released, warm
from .guards import CAN_FORK, Helper, Report, compiling_at_most, compiling_flags, in_child, no_report
from .measuring import Target, measure, measure_plain, measure_steady, settle, unread, window
from .memory import PROC, field_of, limit_memory
from .requests import STEP, BlockRequest, on_of, seconds_of, threads_of

LOADED_WALL_PER_CPU = 1.25
NOISY_SPREAD = 0.25
THROTTLED, STEPS_TO_COMPARE = 1.15, 4
YARDSTICK_WARMUP = 3
YARDSTICKS_AT_LEAST = 20
METER_ATTEMPTS = 3
# Of a helper. The memory of a process that has built many networks is in pieces: steps take up to a tenth longer in it
# than in the fresh process that a user starts (docs/decisions/0063).
MOST_BLOCKS = 8


def block(record: Dict[str, Any], report: Report = no_report, serving: bool = False) -> Dict[str, Any]:
    """Answer to a block request; `report` sends an error that must reach the host before the process ends.

    A process that is `serving` many of them trains none itself, where it can fork.
    """
    request = BlockRequest.from_json(record)
    if request.setup.on != CPU:
        return _guarded(lambda: _accelerated(record, request, report))
    several = serving or request.setup.threads > 1
    if request.isolation == "inline" and several and _helped(request.setup.runtime, request.setup.threads):
        return _guarded(lambda: _at_rest_before(lambda: _helper(young=True).result(record)))
    return _guarded(lambda: _isolated(request, report))


def _helped(runtime: str, threads: int) -> bool:
    """Whether the helper can train."""
    return CAN_FORK and find_runtime(runtime).ready_to_fork({}, threads)


def _helper(young: bool = False) -> Helper:
    """The helper; a new one where the last has died, or is asked to be `young` and has built many networks."""
    if young and _helpers and _helpers[-1].alive and _helpers[-1].tasks >= MOST_BLOCKS:
        _helpers[-1].end()
    if not _helpers or not _helpers[-1].alive:
        _helpers[:] = [Helper(_help)]
    return _helpers[-1]


_helpers: List[Helper] = []  # one at most


def _help(record: Dict[str, Any]) -> Dict[str, Any]:
    """What the helper does: a block or a yardstick in its own process, with its own threads."""
    runtime = find_runtime(str(record.get("setup", record).get("runtime", "torch")))
    if "workload" not in record:
        return _yardstick_alone(record, runtime)
    return _run(BlockRequest.from_json(record), runtime, ())


def _guarded(measured: Callable[[], Dict[str, Any]], one_source: bool = False) -> Dict[str, Any]:
    """Answer of a measurement, made again where the meter failed or the machine slept: neither happens every time.

    A change of the power source is flagged; with `one_source` it too makes the reading void.
    """
    for left in reversed(range(METER_ATTEMPTS)):
        slept, source = slept_seconds(), power_source()
        try:
            answer = measured()
            if slept_seconds() - slept > SLEPT_SECONDS:
                raise meter_failed("the machine went to sleep during a measurement: keep it awake and measure again")
            switched = power_source() != source
            if switched and one_source:
                raise meter_failed("the power source changed during a measurement: leave the plug as it is, and repeat")
        except WorkerError as problem:
            if problem.type != METER_FAILED or not left:
                raise
        else:
            answer["flags"] += ["source_switched"] if switched else []
            return answer
    raise AssertionError


def _isolated(request: BlockRequest, report: Report) -> Dict[str, Any]:
    runtime = find_runtime(request.setup.runtime)
    if request.isolation == "inline":
        return _run(request, runtime, (), report)
    if not CAN_FORK or not runtime.ready_to_fork(request.workload, request.setup.threads):
        return _run(request, runtime, ("not_isolated",), report)
    return _at_rest_before(lambda: in_child(lambda: _run(request, runtime, ())))


def _at_rest_before(trained: Callable[[], Dict[str, Any]]) -> Dict[str, Any]:
    """The answer of another process, with what this one takes: the library and its yardstick, and nothing else."""
    resting = field_of(PROC / "self" / "status", "VmRSS:")
    answer = trained()
    answer["conditions"].update({} if resting is None else {RESTING_BYTES: resting * 1024.0})
    return answer


def _accelerated(record: Dict[str, Any], request: BlockRequest, report: Report) -> Dict[str, Any]:
    """A block on an accelerator: in this process, or in a new one. Nothing is forked."""
    if request.isolation == "fork":
        return in_new_process(record, meter_asked_for())
    runtime = find_runtime(request.setup.runtime)
    processor = ready(runtime, request.setup.on)
    return released(runtime, processor, lambda: _run(request, runtime, (), report))


def _run(request: BlockRequest, runtime: Runtime, flags: Tuple[str, ...], report: Report = no_report) -> Dict[str, Any]:
    began = time.monotonic()
    processor = ready(runtime, request.setup.on)
    if processor.name == CPU:
        limit_memory()  # a driver reserves more addresses than it uses
    runtime.prepare(request.setup.threads)
    yardstick = runtime.yardstick()
    compiles = description_of(request.setup.runtime).compiles
    with compiling_at_most(request.compile_limit, report) if compiles else contextlib.nullcontext():
        target = runtime.build(request.workload, request.setup)
    built = time.monotonic()
    meter = meter_of(processor, request.watts_per_core) if request.counting else CpuTimeMeter()
    counter_seconds = _counter_seconds(meter, request)
    warm(yardstick.step, processor)
    yardstick_seconds = 0.0
    alone: Dict[str, float] = {}
    if request.pairing != "plain":
        window(yardstick.step, 1, meter, processor)
        warmed_up = window(yardstick.step, YARDSTICK_WARMUP - 1, meter, processor)
        yardstick_seconds = warmed_up.per_iteration(WALL)
        if not (target.settling or compiles):  # else two steps are too few for it to be as fast as in a loop
            alone[YARDSTICK_ALONE] = warmed_up.per_iteration(clock_of(request.setup.threads))
    window(target.step, 1, meter, processor)
    first_loss = target.last_loss()
    warmed = [window(target.step, 1, meter, processor).wall_seconds for _ in range(request.warmup - 1)]
    step_seconds, counted = min(warmed, default=0.0), counter_seconds > 0
    if processor.name != CPU:  # behind a queue steps take less than one by one
        step_seconds = window(target.step, LEAST_IN_WINDOW, meter, processor).per_iteration(WALL)
    elif counted and not warmed:
        step_seconds = window(target.step, 1, meter, processor).wall_seconds
    plan = _plan(request, step_seconds, yardstick_seconds, counter_seconds, target.settling)
    if request.power:
        reading = _reading(meter)
        targets, yardsticks = measure_steady(target.step, yardstick.step, step_seconds, reading, meter, processor)
    elif request.pairing == "plain":
        targets, yardsticks = measure_plain(sum(plan.targets), target.step, meter, processor)
    else:
        deadline = built + max(request.seconds_limit, 3 * counter_seconds)
        timed = _timed(target, request.stage)
        targets, yardsticks = measure(plan, timed, yardstick.step, meter, deadline, processor)
    if counted:
        _refuse_zero_joules(meter, targets, yardsticks)
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
        "conditions": {**conditions(), **alone},
        "flags": list(flags),
        **compiling,
        "elapsed_seconds": time.monotonic() - began,
    }


def _rows(windows: List[Window]) -> List[List[Any]]:
    """Windows as JSON rows. Only a host that reads the meter itself needs to know when a window began."""
    return [(w if w.joules is None else w._replace(began=None)).to_json() for w in windows]


def _flags(
    request: BlockRequest, targets: List[Window], yardsticks: List[Window], losses: Tuple[float, float]
) -> List[str]:
    clock = clock_of(request.setup.threads)
    spread = robust_spread(ratios(targets, yardsticks, clock))
    raised = {
        "nonfinite_loss": any(_finite(loss) is None for loss in losses),
        "loaded": request.setup.on == CPU and _loaded(targets + yardsticks, request.setup.threads),
        "noisy": spread is not None and spread > NOISY_SPREAD,
        "throttled": slowed_down(targets, yardsticks, clock),
        "short": sum(w.iterations for w in targets) < request.iterations,
    }
    return [flag for flag, applies in raised.items() if applies]


def _loaded(windows: List[Window], threads: int) -> bool:
    """Whether the process waited for a core; several threads wait for each other, too."""
    wall, busy = sum(w.wall_seconds for w in windows), sum(w.busy_seconds for w in windows)
    return threads == 1 and wall > LOADED_WALL_PER_CPU * busy


def slowed_down(targets: List[Window], yardsticks: List[Window], clock: str = BUSY) -> bool:
    """Whether steps take clearly longer in the second half of a block than in the first: the processor slowed down.

    Windows of both are compared in the order of time, each relative to its own kind: a plain loop has few of either.
    """
    costs = [
        each for pair in zip_longest(_relative(yardsticks, clock), _relative(targets, clock)) for each in pair if each
    ]
    half = len(costs) // 2
    first, last = costs[:half], costs[len(costs) - half :]
    if sum(steps for steps, _ in first) < STEPS_TO_COMPARE:
        return False
    return median(cost for _, cost in last) > THROTTLED * median(cost for _, cost in first)


def _relative(windows: List[Window], clock: str) -> List[Tuple[int, float]]:
    """Steps of each window, and their cost over that of the usual window."""
    usual = max(seconds_per_iteration(windows, clock), TINY_SECONDS) if windows else 1.0
    return [(window.iterations, window.per_iteration(clock) / usual) for window in windows]


def _finite(loss: float) -> Optional[float]:
    return loss if math.isfinite(loss) else None


def _counter_seconds(meter: Meter, request: BlockRequest) -> float:
    described = meter.describe()
    if described["measured"] and request.stage != STEP:
        raise bad_request(
            f"{described['name']} is too slow to measure the {request.stage} stage alone: use --meter cpu-time"
        )
    return float(described.get("window_seconds", 0.0))


def _reading(meter: Meter) -> Reading:
    described = meter.describe()
    if not described.get("update_seconds"):
        raise bad_request(f"{described['name']} counts joules and does not report power: request whole windows")
    return reading_by(described["update_seconds"])


def _plan(
    request: BlockRequest, step_seconds: float, yardstick_seconds: float, counter_seconds: float, settling: int
) -> Plan:
    if counter_seconds:
        return plan_for_counter(request.iterations, step_seconds, yardstick_seconds, counter_seconds)
    queued = request.setup.on != CPU and request.stage == STEP  # a wait after each step would keep the queue empty
    if request.pairing == "window" or queued:
        return plan_windows(request.iterations, step_seconds)
    return plan_steps(request.iterations, settling)


def _refuse_zero_joules(meter: Meter, *kinds: List[Window]) -> None:
    """Raise where a meter read 0 J during training: that is not a measurement."""
    for windows in kinds:
        seconds = sum(w.wall_seconds for w in windows)
        read = [w.joules for w in windows if w.joules is not None]
        if read and sum(read) <= 0:
            raise meter_failed(
                f"{meter.describe()['name']} reported 0 J for {seconds:.2g} s of training: "
                "check the meter with `ampere devices --check`"
            )


def _timed(training: Training, stage: str) -> Target:
    """What is timed: the whole step, or one stage with the rest of the step around it, untimed."""
    if stage == STEP:
        return Target(training.step)
    if training.parts is None:
        raise bad_request(f"this runtime cannot time the {stage} stage on its own")
    names = [name for name, _ in training.parts]
    actions = [action for _, action in training.parts]
    place = names.index(stage)
    return Target(actions[place], tuple(actions[:place]), tuple(actions[place + 1 :]))


def yardstick_alone(record: Dict[str, Any]) -> Dict[str, Any]:
    """Nominal cost of the yardstick: its step in a plain loop. It scales every joule, so it is guarded, too."""
    name, on = str(record.get("runtime", "torch")), on_of(record)
    if on != CPU:
        runtime = find_runtime(name)
        return _guarded(
            lambda: released(runtime, ready(runtime, on), lambda: _yardstick_alone(record, runtime)), one_source=True
        )
    in_child_only = threads_of(record) > 1 or getattr(find_runtime(name), "trains_in_children", False)
    if in_child_only and _helped(name, threads_of(record)):
        return _guarded(lambda: _helper().result(record), one_source=True)
    return _guarded(lambda: _yardstick_alone(record, find_runtime(name)), one_source=True)


def _yardstick_alone(record: Dict[str, Any], runtime: Runtime) -> Dict[str, Any]:
    seconds, threads = seconds_of(record, "seconds", 1.0), threads_of(record)
    processor = ready(runtime, on_of(record))
    runtime.prepare(threads)
    made = runtime.yardstick() if processor.name == CPU else _fitting_yardstick(runtime, processor)
    step, clock = made.step, CpuTimeMeter()
    meter = meter_of(processor, watts_of(record)) if record.get("count", True) else CpuTimeMeter()
    counter_seconds = float(meter.describe().get("window_seconds", 0.0))
    warm(step, processor)
    window(step, 1, clock, processor)
    early = window(step, YARDSTICK_WARMUP - 1, clock, processor)  # as in a block, before its network first runs
    rest, rested = at_rest(meter) if counter_seconds else (math.nan, None)
    if record.get("power"):
        settle(step, _reading(meter), processor)
    whole = _reading(meter).seconds if record.get("power") else 2 * counter_seconds
    length = 1 if processor.name == CPU else YARDSTICKS_IN_WINDOW  # as in a block, with the queue kept full
    meter.start()  # once around all steps: a counter is too slow for each
    deadline, windows = time.monotonic() + max(seconds, whole), [window(step, length, clock, processor)]
    while time.monotonic() < deadline or len(windows) * length < YARDSTICKS_AT_LEAST:
        windows.append(window(step, length, clock, processor))
    total = meter.stop()
    busy, wall = [w.per_iteration(BUSY) for w in windows], [w.per_iteration(WALL) for w in windows]
    if counter_seconds and total <= 0:
        raise meter_failed(
            f"{meter.describe()['name']} reported 0 J during training: check the meter with `ampere devices --check`"
        )
    guiding = [w.per_iteration(clock_of(threads)) for w in windows]
    watts = total / max(length * sum(guiding), 1e-9)
    joules = watts * median(guiding)  # at the cost of the median step, as its seconds are
    read_by_host = math.isnan(joules)
    loaded = processor.name == CPU and _loaded(windows, threads)
    raised = {"loaded": loaded, "throttled": slowed_down([], windows, clock_of(threads))}
    return {
        "busy_seconds": median(busy),
        "wall_seconds": median(wall),
        "steps": len(windows) * length,
        "early_seconds": early.per_iteration(clock_of(threads)),
        "joules": None if not counter_seconds or read_by_host else joules,
        "watts_idle": None if math.isnan(rest) else rest,
        "windows": [w._replace(joules=None).to_json() for w in windows] if read_by_host else None,
        "rest": rested if read_by_host else None,
        "flags": [flag for flag, applies in raised.items() if applies],
    }


def _fitting_yardstick(runtime: Runtime, processor: Processor) -> Training:
    """The yardstick, once it has trained a step: a card too full for it can measure nothing."""
    try:
        made = runtime.yardstick()
        made.step()
        processor.synchronize()
    except Exception as problem:
        too_full = getattr(processor, "too_full", None)
        if too_full is None or as_worker_error(problem).type != "out_of_memory":
            raise
        raise too_full(first_line(problem)) from None
    return made
