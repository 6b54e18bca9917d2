"""Joules from a sensor that tells watts: samples of a thread, and one at each end, under a trapezoid.

start  s----s----s----s--s  stop
"""

import threading
import time
from typing import List, Optional, Tuple

from ..errors import WorkerError


class SampledMeter:
    """The thread lives between start and stop only, so that a process can be forked in between."""

    update_seconds: float
    reading_unit = "W"

    def __init__(self, every_seconds: float) -> None:
        self._every = every_seconds
        self._samples: List[Tuple[float, float]] = []
        self._problem: Optional[WorkerError] = None
        self._done = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def start(self) -> None:
        self._end_thread()
        self._samples, self._problem, self._done = [], None, threading.Event()
        self._take()
        self._thread = threading.Thread(target=self._watch, args=(self._done,), daemon=True)
        self._thread.start()

    def stop(self) -> float:
        self._end_thread()
        if self._problem:
            raise self._problem
        self._take()
        return joules_under(self._samples)

    def reading(self) -> float:
        """Watts just now."""
        raise NotImplementedError

    def _watch(self, done: threading.Event) -> None:
        try:
            while not done.wait(self._every):
                self._take()
        except WorkerError as problem:
            self._problem = problem

    def _take(self) -> None:
        watts = self.reading()
        self._samples.append((time.monotonic(), watts))

    def _end_thread(self) -> None:
        self._done.set()
        if self._thread:
            self._thread.join()
        self._thread = None


def joules_under(samples: List[Tuple[float, float]]) -> float:
    """Of seconds and watts."""
    return sum((t1 - t0) * (w0 + w1) / 2 for (t0, w0), (t1, w1) in zip(samples, samples[1:]))
