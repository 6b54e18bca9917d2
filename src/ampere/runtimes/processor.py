"""Where steps run: the CPU, or an accelerator that works behind a queue.

A step on an accelerator returns when it is queued, not when it is done. So whoever measures waits at both ends:

    host     | wait | read the meter | queue the steps ......... | wait | read the meter |
    device          idle             | step  step  step  step    |      idle
                                     ^ event                     ^ event: busy seconds lie between the two
"""

import time
from typing import Any, Callable, Dict, Protocol

Timer = Callable[[], float]  # waits for what was queued since it was made, and returns the busy seconds of it


class Processor(Protocol):
    name: str  # as a training setup has it: `cpu`, `cuda:0`

    def synchronize(self) -> None:
        """Wait until all that was queued is done."""

    def timer(self) -> Timer:
        """Begin to time: the CPU time of this process, or the device time of an accelerator."""

    def release(self) -> None:
        """Give back the memory of what is no longer referred to."""

    def describe(self) -> Dict[str, Any]:
        """What it is, as far as it decides costs: name, memory, driver, power limit, clocks."""


class Cpu:
    """Steps that are done when they return."""

    name = "cpu"

    def synchronize(self) -> None:
        pass

    def timer(self) -> Timer:
        began = time.process_time_ns()
        return lambda: (time.process_time_ns() - began) * 1e-9

    def release(self) -> None:
        pass

    def describe(self) -> Dict[str, Any]:
        return {}


CPU = Cpu()
