"""What differs where an accelerator trains: its meter, its memory, and processes that are never forked.

    a block by itself     this process --spawn--> a new one, which trains, answers in a line, and ends
    any other block       this process, which lets go of all memory afterwards

A process that has used an accelerator cannot be forked: the child would have a queue that nobody serves.
"""

import json
import os
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List, Tuple

from ampere.core.errors import WorkerError, as_worker_error
from ampere.core.measurement import PEAK_BYTES
from ampere.core.processes import how_it_ended, python_program
from ampere.core.setup import CPU, find_on
from ampere.meters import CpuTimeMeter, DeviceTimeMeter, Meter, choose_meter, nvml, use_card, use_meter, watts_of
from ampere.runtimes import Processor, Runtime, description_of, find_runtime, installed, placed

from .measuring import raise_clocks

IDLE_SECONDS = 0.5  # after which a card may have lowered its clocks
SPAWNED = "ampere.worker.accelerators"
_uuids: Dict[str, str] = {}  # of accelerators, by their names
_busy_until: List[float] = []  # when the accelerator was last used, by the monotonic clock


def described(request: Dict[str, Any]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """What the handshake says of the accelerator that the host asks for, and its meter; `auto` may find none.

    Only a host that asks for one waits for the library that finds it.
    """
    on = find_on(str(request.get("on", CPU)))
    if on == CPU:
        use_card(None)
        return {}, choose_meter(watts_of(request)).describe()
    there = installed()
    usual = [name for name in there if description_of(name).accelerators]
    processor = ready(find_runtime("torch" if "torch" in there or not usual else usual[0]), on)
    meter = meter_of(processor, watts_of(request)).describe()
    if processor.name == CPU:
        return {"accelerator": None}, meter
    return {"accelerator": {**processor.describe(), **nvml.stated(uuid_of(processor))}}, meter


def ready(runtime: Runtime, on: str) -> Processor:
    """The processor that the runtime builds on, with its meter."""
    processor = placed(runtime, on)
    if processor.name == CPU:
        use_card(None)
    else:
        uuid = _uuids.setdefault(processor.name, uuid_of(processor))  # JAX does not say it, and PyTorch was asked first
        use_card(uuid)
    return processor


def uuid_of(processor: Processor) -> str:
    return str(getattr(processor, "uuid", "") or "")


def meter_of(processor: Processor, watts: float) -> Meter:
    """The meter of what trains there. CPU time says nothing of an accelerator: device time takes its place."""
    found = choose_meter(watts)
    if processor.name == CPU or not isinstance(found, CpuTimeMeter):
        return found
    return DeviceTimeMeter(watts, processor.timer)


def warm(step: Callable[[], Any], processor: Processor) -> None:
    """Raise the clocks of an accelerator that was idle."""
    if processor.name != CPU and (not _busy_until or time.monotonic() - _busy_until[-1] > IDLE_SECONDS):
        raise_clocks(step, processor)


def released(runtime: Runtime, processor: Processor, measured: Callable[[], Dict[str, Any]]) -> Dict[str, Any]:
    """A measurement, after which nothing of it is left on the accelerator, also where it fails."""
    error: WorkerError
    peak = getattr(processor, "watch_peak", lambda: lambda: None)()
    try:
        answer = measured()
        most = peak()
        if most and "conditions" in answer:  # a yardstick has none
            answer["conditions"][PEAK_BYTES] = float(most)
        return answer
    except Exception as problem:
        found = _as_error(problem, processor.name)
        error = WorkerError(found.type, str(found))  # without the traceback, which would keep tensors alive
        del found
        if error.type == "out_of_memory" and hasattr(runtime, "forget"):
            runtime.forget()  # compiled networks, which are kept as long as there is room
    finally:
        processor.release()
        _busy_until[:] = [time.monotonic()]
    raise error


def _as_error(problem: Exception, on: str) -> WorkerError:
    if isinstance(problem, NotImplementedError) and "torch" in sys.modules:
        from ampere.runtimes.torch_accelerator import as_accelerator_error

        return as_accelerator_error(problem, on)
    return as_worker_error(problem)


def in_new_process(record: Dict[str, Any], meter: str) -> Dict[str, Any]:
    """Answer to a block request by a process that is started for it."""
    task = {"block": {**record, "isolation": "inline"}, "meter": meter}
    pipe = subprocess.PIPE
    with subprocess.Popen(python_program(SPAWNED), stdin=pipe, stdout=pipe) as process:
        said, _ = process.communicate(json.dumps(task).encode() + b"\n")
    lines = [line for line in said.splitlines() if line.startswith(b"{")]
    if not lines:
        ended = how_it_ended(process.returncode)
        raise WorkerError("variant_died", f"the process that trained the variant: {ended}")
    answer = json.loads(lines[-1].decode())
    if "error" in answer:
        raise WorkerError(answer["error"]["type"], answer["error"]["message"])
    result: Dict[str, Any] = answer["result"]
    return result


def main() -> None:
    """The process that `in_new_process` starts: one block, one line, the end."""
    from .block import block

    answers = os.dup(1)
    os.dup2(2, 1)  # what a model prints is no answer
    task = json.loads(sys.stdin.readline())
    use_meter(task["meter"] or None)
    try:
        answer: Dict[str, Any] = {"result": block(task["block"])}
    except Exception as problem:
        answer = {"error": as_worker_error(problem).to_json()}
    with os.fdopen(answers, "wb") as pipe:
        pipe.write(b"\n" + json.dumps(answer).encode() + b"\n")
    os._exit(0)  # at once: a training runtime may take seconds to shut down
