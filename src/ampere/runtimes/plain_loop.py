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


def main() -> None:
    task = json.loads(sys.argv[1])
    if "factory" in task["workload"]:
        with contextlib.suppress(Exception):  # what is wrong with it is said below
            find_factory(task["workload"]["factory"])
    print(READY, flush=True)
    sys.stdin.readline()  # until it is this process's turn
    try:
        setup = TrainingSetup.from_json(task["setup"])
        answer = train(task["workload"], setup, task["seconds"], task.get("at_most"), task.get("changes"))
    except Exception as problem:
        answer = {"error": f"{type(problem).__name__}: {problem}"}
    print("\n" + json.dumps(answer), flush=True)


def train(
    workload: Dict[str, Any],
    setup: TrainingSetup,
    seconds: float,
    at_most: Optional[float] = None,
    changes: Optional[Dict[str, Any]] = None,
) -> Dict[str, Any]:
    """Windows of plain training steps, as rows of a measurement, and the first and the last loss.

    With `at_most` seconds for all steps, long ones are warmed up less; two are trained in any case.
    """
    runtime = TorchRuntime()
    processor = runtime.place(setup.on)
    runtime.prepare(setup.threads)
    training = build_changed(workload, setup, changes) if changes else runtime.build(workload, setup)
    began = time.perf_counter()
    step_seconds = _seconds(training.step, processor)
    first, first_peak, warmup = training.last_loss(), peak_bytes(), 1
    while warmup <= WARMUP and not (at_most is not None and time.perf_counter() - began > WARMUP_SHARE * at_most):
        step_seconds = _seconds(training.step, processor)
        warmup += 1
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
    return {
        "windows": windows,
        "loss": [first, training.last_loss()],
        "parameters": training.parameters,
        "elapsed_seconds": time.perf_counter() - began,
        "warmup_steps": warmup,
        "first_peak_bytes": first_peak,
        "peak_bytes": peak_bytes(),
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
