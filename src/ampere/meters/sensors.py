"""Reading the kernel's sensor files, and joules from samples of power. A file that cannot be read is never 0."""

import errno
import threading
import time
from pathlib import Path
from typing import List, Optional, Tuple

from ampere.core.errors import WorkerError

from .meter import meter_failed


def number_in(path: Path) -> int:
    """The whole number that a file holds."""
    text = text_in(path)
    try:
        return int(text)
    except ValueError:
        raise meter_failed(
            f"{path} holds {text[:20]!r} instead of a number: update its driver, or use another meter"
        ) from None


def text_in(path: Path) -> str:
    """The text of a file, stripped."""
    try:
        return path.read_text().strip()
    except PermissionError:
        raise meter_failed(
            f"{path} may be read by root only: run `sudo chmod o+r {path}`, which lasts until the next start "
            "(docs/how-to/meters.md shows how to keep it), or use --meter cpu-time"
        ) from None
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise meter_failed(
            f"{path} cannot be read ({reason}): the meter is gone or its driver failed; use another meter"
        ) from None


def text_if_there(path: Path) -> Optional[str]:
    """The text of a file; None where there is no such file."""
    return text_in(path) if path.exists() else None


def has_data(path: Path) -> bool:
    """Whether a channel has data; False if it is switched off. Other faults show when it is read."""
    try:
        path.read_text()
    except OSError as problem:
        return problem.errno != errno.ENODATA
    except UnicodeDecodeError:
        pass
    return True


def folders_in(path: Path) -> List[Path]:
    """Paths in a folder, sorted by name; empty where the folder is missing."""
    try:
        return sorted(path.iterdir())
    except OSError:
        return []


class SampledMeter:
    """Joules from a sensor of watts: samples by a thread, and one at each end, integrated by trapezoids.

    start  s----s----s----s--s  stop

    The thread lives between start and stop only, so that the process can be forked in between.
    """

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
        """The watts that the sensor shows now."""
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
    """Joules under samples of seconds and watts."""
    return sum((t1 - t0) * (w0 + w1) / 2 for (t0, w0), (t1, w1) in zip(samples, samples[1:]))
