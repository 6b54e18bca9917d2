"""What one block of training showed: raw windows of the target and of the yardstick (the reference step).

    yardstick   y0      y1      y2      y3        a window of reference steps before and after every target window
    target          t0      t1      t2            windows of the network that is measured

A measurement is never edited. Whatever is computed from it (a ratio, a normalized cost) has a function and a type of
its own: the functions that need one measurement only are here, those that compare several are in `estimation`.
"""

import math
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

LOG = "log"  # the name of every meter that is read from its log file
WALL, BUSY = "wall_seconds", "busy_seconds"  # the two clocks of a window
TINY_SECONDS = 1e-9
RESTING_BYTES = "resting_bytes"  # a condition: resident memory of a worker that has loaded its library
PEAK_BYTES = "peak_bytes"  # a condition: the most resident memory of a process that trained one model only
FIRST_PEAK_BYTES = "first_peak_bytes"  # a condition: the same after its first step
PEAK_STEPS = "peak_steps"  # a condition: the steps of that process until its peak was read
YARDSTICK_EARLY = "yardstick_early_seconds"  # a condition: its first steps after another process had a turn
YARDSTICK_ALONE = "yardstick_alone_seconds"  # a condition: a yardstick step with nothing in between, by `clock_of`


def clock_of(threads: int) -> str:
    """The clock that steps are compared by: waiting threads spin, which counts as CPU time and varies by a tenth."""
    return WALL if threads > 1 else BUSY


@dataclass(frozen=True)
class Meter:
    """Where joules come from; `measured` is False where they are computed from something else."""

    name: str
    measured: bool
    scope: str = ""
    simulated: bool = False  # of a simulated device
    replayed: bool = False  # read from a recording, not from the device
    window_seconds: float = 0.0  # how long a counter must be read before its joules are precise enough
    update_seconds: float = 0.0  # how often a gauge updates its power; 0 for a counter of joules
    origin: str = ""  # of modelled joules: where the watts of a busy core come from; "" where the user gave them
    factor: float = 1.0  # of modelled joules: the truth lies within this factor either way, for all of them alike

    def counts_as(self, other: "Meter") -> bool:
        """Whether joules of both meters may be compared, however long each must be read."""
        return self._identity() == other._identity()

    def _identity(self) -> Tuple[Any, ...]:
        return self.name, self.measured, self._covered, self.simulated, self.replayed

    @property
    def _covered(self) -> str:
        """What the joules cover: a log's scope without its file and row interval, which differ from run to run."""
        return self.scope.partition(",")[0] if self.name == LOG else self.scope

    def to_json(self) -> Dict[str, Any]:
        record = asdict(self)
        return record if self.origin else {k: v for k, v in record.items() if k not in ("origin", "factor")}

    @classmethod
    def reported(cls, record: Mapping[str, Any]) -> "Meter":
        """A meter as a worker describes it; fields that are not known here, or to the host only, are ignored."""
        known = set(cls.__dataclass_fields__) - {"origin", "factor"}
        return cls(**{name: value for name, value in record.items() if name in known})


class Window(NamedTuple):
    """One measured span of training steps."""

    iterations: int
    wall_seconds: float
    busy_seconds: float  # CPU time of the process, or device time of an accelerator
    joules: Optional[float]  # None where no meter was read
    page_faults: int = 0
    began: Optional[float] = None  # by the device's own clock, where a log that is read elsewhere needs it

    def per_iteration(self, clock: str = BUSY) -> float:
        return float(getattr(self, clock)) / self.iterations

    def to_json(self) -> List[Any]:
        return [*self] if self.began is not None else [*self[:-1]]

    @classmethod
    def from_json(cls, row: Sequence[Any]) -> "Window":
        iterations, wall, busy, joules, faults, *began = row
        return cls(
            int(iterations),
            float(wall),
            float(busy),
            None if joules is None else float(joules),
            int(faults),
            float(began[0]) if began else None,
        )


@dataclass(frozen=True)
class Measurement:
    """The windows of one block, as the device reported them."""

    target: Tuple[Window, ...]
    yardstick: Tuple[Window, ...]  # one more than of the target; none for a plain loop
    meter: Meter
    allocator: str = "tuned"
    parameters: int = 0  # that were updated
    loss: Tuple[Optional[float], Optional[float]] = (None, None)  # of the first and the last step; None if not finite
    elapsed_seconds: float = 0.0  # of the whole block, with building and warming up
    compile_seconds: float = 0.0  # before the first step: in no window
    conditions: Mapping[str, float] = field(default_factory=dict)
    flags: Tuple[str, ...] = ()
    pattern: Tuple[float, ...] = ()  # the load pattern run just before: when it began, and the end of each part

    @property
    def iterations(self) -> int:
        return sum(window.iterations for window in self.target)

    @property
    def wall_seconds(self) -> float:
        """Wall-clock seconds of one iteration: the median over windows."""
        return seconds_per_iteration(self.target, WALL)

    @property
    def busy_seconds(self) -> float:
        """Busy seconds of one iteration: the median over windows."""
        return seconds_per_iteration(self.target, BUSY)

    @property
    def joules(self) -> Optional[float]:
        """Joules of one iteration; None where no meter was read."""
        return joules_per_iteration(self.target)

    @property
    def page_faults(self) -> float:
        """Page faults of one iteration."""
        return sum(window.page_faults for window in self.target) / self.iterations

    @property
    def step_by_step(self) -> bool:
        """Whether the yardstick's steps were paired one by one."""
        return all(window.iterations == 1 for window in self.yardstick)

    def ratio(self, clock: str = BUSY) -> Optional[float]:
        """The cost of an iteration in yardstick steps, the median over windows; None for a plain loop."""
        found = ratios(self.target, self.yardstick, clock)
        return median(found) if found else None

    def to_json(self) -> Dict[str, Any]:
        record: Dict[str, Any] = {
            **vars(self),
            "target": [window.to_json() for window in self.target],
            "yardstick": [window.to_json() for window in self.yardstick],
            "meter": self.meter.to_json(),
            "conditions": dict(self.conditions),
        }
        for name in ("pattern", "compile_seconds"):
            if not record[name]:
                del record[name]
        return record

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Measurement":
        first, last = record.get("loss", (None, None))
        return cls(
            target=windows_from_json(record["target"]),
            yardstick=windows_from_json(record["yardstick"]),
            meter=record["meter"] if isinstance(record["meter"], Meter) else Meter(**record["meter"]),
            allocator=str(record.get("allocator", "tuned")),
            parameters=int(record.get("parameters", 0)),
            loss=(first, last),
            elapsed_seconds=float(record.get("elapsed_seconds", 0.0)),
            compile_seconds=float(record.get("compile_seconds", 0.0)),
            conditions=dict(record.get("conditions", {})),
            flags=tuple(map(str, record.get("flags", ()))),
            pattern=tuple(float(t) for t in record.get("pattern", ())),
        )


def windows_from_json(rows: Any) -> Tuple[Window, ...]:
    return tuple(Window.from_json(row) for row in rows)


def seconds_per_iteration(windows: Sequence[Window], clock: str = BUSY) -> float:
    return median(_per_iteration(windows, clock))


def _per_iteration(windows: Sequence[Window], clock: str) -> List[float]:
    busy = clock == BUSY  # asked once: a profile has many windows
    return [(window.busy_seconds if busy else window.wall_seconds) / window.iterations for window in windows]


def ratios(target: Sequence[Window], yardstick: Sequence[Window], clock: str = BUSY) -> List[float]:
    """Each target window's cost over the mean of the yardstick windows on both sides of it."""
    costs = [max(seconds, TINY_SECONDS) for seconds in _per_iteration(yardstick, clock)]
    return [2 * t / (a + b) for t, a, b in zip(_per_iteration(target, clock), costs, costs[1:])]


def joules_per_iteration(windows: Sequence[Window], clock: str = BUSY) -> Optional[float]:
    """Joules of the median iteration at the power of all windows, so that a slow window counts no more in joules."""
    read = [window.joules for window in windows if window.joules is not None]
    if len(read) < len(windows) or not windows:
        return None
    watts = sum(read) / max(sum(getattr(window, clock) for window in windows), TINY_SECONDS)
    return watts * seconds_per_iteration(windows, clock)


def robust_spread(values: Sequence[float]) -> Optional[float]:
    """Robust standard deviation over the median; None for a single value, not 0."""
    if len(values) < 2:
        return None
    middle = median(values)
    return 1.4826 * median(abs(value - middle) for value in values) / middle if middle else None


def relative_spread(values: Sequence[float]) -> Optional[float]:
    """Standard deviation over the mean; None for a single value, not 0."""
    n = len(values)
    if n < 2:
        return None
    mean = sum(values) / n
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1)) / mean
