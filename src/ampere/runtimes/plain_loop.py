"""A process that trains a model as a user's script does, and answers with one line of JSON.

The system's allocator returns memory more or less often depending on what else a process has allocated before: a
yardstick or a meter in it changes what a step costs, by up to a fifth for small models. So nothing but the training
library and the model is here; the yardstick is read by another process, before and after.
"""

import contextlib
import json
import sys
import time
from typing import Any, Callable, Dict, List, Optional

from ampere.core import TrainingSetup

from .changed_training import build_changed
from .processor import Processor
from .torch_runtime import TorchRuntime
from .user_code import find_factory

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

READY = "ready"  # a line that says that everything is imported
WARMUP = 4
WARMUP_SHARE = 0.4  # of the seconds at most
WINDOW_SECONDS = 0.1
FEWEST_WINDOWS = 3
PEAK_SECONDS = 5.0  # of steps for the peak of memory, at most


def main() -> None:
    task = json.loads(sys.argv[1])
    if "factory" in task["workload"]:
        with contextlib.suppress(Exception):  # what is wrong with it is said below
            find_factory(task["workload"]["factory"])
    print(READY, flush=True)
    sys.stdin.readline()  # until it is this process's turn
    try:
        setup = TrainingSetup.from_json(task["setup"])
        limits = task["seconds"], task.get("at_most"), task.get("changes"), task.get("peak_steps", 0)
        answer = train(task["workload"], setup, *limits)
    except Exception as problem:
        answer = {"error": f"{type(problem).__name__}: {problem}"}
    print("\n" + json.dumps(answer), flush=True)


def train(
    workload: Dict[str, Any],
    setup: TrainingSetup,
    seconds: float,
    at_most: Optional[float] = None,
    changes: Optional[Dict[str, Any]] = None,
    peak_steps: int = 0,
) -> Dict[str, Any]:
    """Windows of plain training steps, as rows of a measurement, the first and the last loss, and the peak of memory.

    With `at_most` seconds for all steps, long ones are warmed up less; two are trained in any case. Up to `peak_steps`
    follow for the peak alone.
    """
    runtime = TorchRuntime()
    processor = runtime.place(setup.on)
    runtime.prepare(setup.threads)
    training = build_changed(workload, setup, changes) if changes else runtime.build(workload, setup)
    began = time.perf_counter()
    step_seconds = _seconds(training.step, processor)
    first, first_peak, done = training.last_loss(), peak_bytes(), 1
    while done <= WARMUP and not (at_most is not None and time.perf_counter() - began > WARMUP_SHARE * at_most):
        step_seconds = _seconds(training.step, processor)
        done += 1
    steps = max(1, round(WINDOW_SECONDS / max(step_seconds, 1e-6)))
    windows: List[List[Any]] = []
    ends, last = time.perf_counter() + seconds, began + (float("inf") if at_most is None else at_most)
    while not windows or (time.perf_counter() < last and (len(windows) < FEWEST_WINDOWS or time.perf_counter() < ends)):
        processor.synchronize()
        faults, started, timer = page_faults(), time.perf_counter(), processor.timer()
        for _ in range(steps):
            training.step()
        busy, wall = timer(), time.perf_counter() - started
        windows.append([steps, wall, busy, None, page_faults() - faults])
    elapsed, loss = time.perf_counter() - began, training.last_loss()
    done += steps * len(windows)
    if at_most is not None:  # of long steps too few have shown the peak; those that follow are in no window
        ends = time.perf_counter() + PEAK_SECONDS
        while done < peak_steps and time.perf_counter() + step_seconds < ends:
            step_seconds = _seconds(training.step, processor)
            done += 1
    return {
        "windows": windows,
        "loss": [first, loss],
        "parameters": training.parameters,
        "elapsed_seconds": elapsed,
        "first_peak_bytes": first_peak,
        "peak_bytes": peak_bytes(),
        "peak_steps": done,
    }


def _seconds(step: Callable[[], None], processor: Processor) -> float:
    began = time.perf_counter()
    step()
    processor.synchronize()
    return time.perf_counter() - began


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
