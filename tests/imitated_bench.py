"""The log of an imitated bench meter, written after a run: what a device draws that works when the run says it did."""

import numpy as np

from ampere.devices.external_meters.alignment import PATTERN
from ampere.devices.external_meters.log import span

IDLE, BUSY = 2.0, 20.0  # watts of the device at rest, and of a busy core more
EVERY = 0.004
AROUND = 1.0  # seconds of recording before the run and after it


class ImitatedBench:
    """Its clock is another one than the device's, `rate` times as fast."""

    def __init__(self, profile, offset=5e5, rate=1.0003):
        self.offset, self.rate = offset, rate
        measured = [o.measurement for o in profile.observations]
        busy = [(*span(w), w.busy_seconds) for m in measured for w in (*m.target, *m.yardstick)]
        for m in measured:
            parts = zip(PATTERN, m.pattern, m.pattern[1:], strict=False)
            busy += [(began, ended, ended - began) for works, began, ended in parts if works]
        self._edges, self._worked = [], [0.0]
        for began, ended, seconds in sorted(busy):
            self._edges += [began, ended]
            self._worked += [self._worked[-1] + seconds] * 2
        self._worked.pop()

    def export(self, path, last=1.0, deaf=False, holes=()):
        """Even rows of milliwatts, of this part of the recording; none in the holes, by the device's clock."""
        began, ended = self._edges[0] - AROUND, self._edges[-1] + AROUND
        grid = np.arange(began, began + last * (ended - began), EVERY)
        watts = IDLE + BUSY * np.diff(np.interp(grid, self._edges, self._worked)) / EVERY
        watts = np.full_like(watts, IDLE) + np.random.default_rng(0).normal(0, 0.1, len(watts)) if deaf else watts
        rows = [
            f"{self.offset + self.rate * t:.6f},{1e3 * w:.3f}"
            for t, w in zip(grid[1:], watts, strict=True)
            if not any(began < t < ended for began, ended in holes)
        ]
        path.write_text("\n".join(["Time (s),Main power (mW)", *rows, ""]))
        return path
