"""An imitated bench meter: it watches the CPU time of a command's workers, and its file is written after the run."""

import threading
import time
from pathlib import Path

import numpy as np

IDLE, BUSY = 2.0, 20.0  # watts of the device at rest, and of a busy core more
EVERY = 0.01


class ImitatedBench(threading.Thread):
    """Its clock is another one, `rate` times as fast. Workers are the children of `parent`, and their children."""

    def __init__(self, parent, offset=5e5, rate=1.0003):
        super().__init__(daemon=True)
        self.parent, self.offset, self.rate, self.done = parent, offset, rate, threading.Event()
        self._rows = [(time.perf_counter(), 0.0)]
        self._seen = {}

    def run(self):
        joules, latest = 0.0, self._rows[0][0]
        while not self.done.wait(EVERY / 2):
            now, worked = time.perf_counter(), self._worked()
            joules += IDLE * (now - latest) + BUSY * worked
            latest = now
            self._rows.append((now, joules))

    def stop(self):
        self.done.set()
        self.join()

    def export(self, path, first=0.0, last=1.0, deaf=False, holes=()):
        """Even rows of milliwatts, of this part of the recording; none in the holes, by the workers' clock."""
        times, joules = np.array(self._rows).T
        length = times[-1] - times[0]
        grid = np.arange(times[0] + first * length, times[0] + last * length, EVERY)
        watts = np.diff(np.interp(grid, times, joules)) / EVERY
        watts = np.full_like(watts, IDLE) + np.random.default_rng(0).normal(0, 0.1, len(watts)) if deaf else watts
        rows = [
            f"{self.offset + self.rate * t:.6f},{1e3 * w:.3f}"
            for t, w in zip(grid[1:], watts, strict=True)
            if not _within(t, holes)
        ]
        path.write_text("\n".join(["Time (s),Main power (mW)", *rows, ""]))
        return path

    def _worked(self):
        """CPU seconds since the last look, of all that there are."""
        before, self._seen = self._seen, {}
        for child in _children(self.parent):
            for pid in (child, *_children(child)):
                self._seen[pid] = _cpu_seconds(pid)
        return sum(max(0.0, cpu - before[pid]) for pid, cpu in self._seen.items() if pid in before)


def _within(seconds, holes):
    return any(began < seconds < ended for began, ended in holes)


def _children(pid):
    try:
        threads = [thread.name for thread in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []
    return [int(child) for thread in threads for child in _read(f"{pid}/task/{thread}/children")]


def _cpu_seconds(pid):
    return int((_read(f"{pid}/schedstat") or ["0"])[0]) * 1e-9


def _read(name):
    try:
        return Path("/proc", name).read_text().split()
    except OSError:
        return []
