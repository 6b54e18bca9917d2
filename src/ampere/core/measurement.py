"""What one measurement of a training step showed, and the meter that its joules come from."""

from dataclasses import asdict, dataclass, field
from typing import Any, Dict, Mapping, Tuple

# When something was measured, kept for a log of a meter that is read afterwards.

Span = Tuple[float, float, float]  # began, ended, and the CPU seconds in it


@dataclass(frozen=True)
class Windows:
    """Of one block, by the worker's clock."""

    target: Tuple[Span, ...]
    yardstick: Tuple[Span, ...]
    cpu_seconds: float  # of an iteration of the target
    yardstick_seconds: float  # CPU seconds of a step of the yardstick
    pattern: Tuple[float, ...] = ()  # of load, given just before: its beginning, and the end of each part

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Windows":
        return cls(
            target=_spans(record["target"]),
            yardstick=_spans(record["yardstick"]),
            cpu_seconds=float(record["cpu_seconds"]),
            yardstick_seconds=float(record["yardstick_seconds"]),
            pattern=tuple(float(t) for t in record.get("pattern", ())),
        )


def _spans(records: Any) -> Tuple[Span, ...]:
    return tuple((float(began), float(ended), float(cpu)) for began, ended, cpu in records)


# What one experiment showed: raw, immutable, with every doubt attached.

LOG = "log"  # the name of meters that are read by what they write


@dataclass(frozen=True)
class Meter:
    """Where joules come from. `measured` is False where they are computed from something else."""

    name: str
    measured: bool
    scope: str = ""
    simulated: bool = False  # a device that does not exist has a counter that does not either
    replayed: bool = False  # read from a recording, not from the device
    window_seconds: float = 0.0  # how long a counter must be watched before its joules say something
    update_seconds: float = 0.0  # how often a gauge tells its power; 0 of a counter of joules

    def counts_as(self, other: "Meter") -> bool:
        """Whether joules of both may be held against each other: how long each must be watched does not matter."""
        return self._what() == other._what()

    def _what(self) -> Tuple[Any, ...]:
        return self.name, self.measured, self._covered, self.simulated, self.replayed

    @property
    def _covered(self) -> str:
        """A log's scope goes on with its file and how far its rows are apart, which differ from run to run."""
        return self.scope.partition(",")[0] if self.name == LOG else self.scope

    def to_json(self) -> Dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Measurement:
    """Per training iteration, at the yardstick's nominal speed.

    `ratio` is the iteration's cost in yardstick steps (the median over rounds); joules and
    seconds are that ratio times the yardstick's nominal cost. `spread` is the relative standard
    deviation of the rounds' ratios; of a single round it is None, not 0.
    """

    joules: float
    seconds: float
    cpu_seconds: float
    ratio: float
    iterations: int
    rounds: Tuple[float, ...]
    meter: Meter
    yardsticks: Tuple[float, ...] = ()  # seconds of the yardstick's step beside each round
    allocator: str = "tuned"
    conditions: Mapping[str, float] = field(default_factory=dict)
    flags: Tuple[str, ...] = ()
    joules_rounds: Tuple[float, ...] = ()  # joules of each round, where a counter read them beside the time
    windows: Tuple[Windows, ...] = ()  # of each round, where a log is read later

    @property
    def spread(self) -> "float | None":
        return _relative_spread(self.rounds)

    @property
    def joules_spread(self) -> "float | None":
        return _relative_spread(self.joules_rounds)

    def to_json(self) -> Dict[str, Any]:
        record = asdict(self)
        record["spread"] = self.spread
        if not self.windows:
            del record["windows"]
        return record

    @classmethod
    def from_json(cls, record: Dict[str, Any]) -> "Measurement":
        return cls(
            joules=float(record["joules"]),
            seconds=float(record["seconds"]),
            cpu_seconds=float(record["cpu_seconds"]),
            ratio=float(record["ratio"]),
            iterations=int(record["iterations"]),
            rounds=tuple(float(r) for r in record["rounds"]),
            meter=Meter(**record["meter"]),
            yardsticks=tuple(float(y) for y in record.get("yardsticks", ())),
            allocator=str(record["allocator"]),
            conditions=dict(record.get("conditions", {})),
            flags=tuple(map(str, record.get("flags", ()))),
            joules_rounds=tuple(float(j) for j in record.get("joules_rounds", ())),
            windows=tuple(Windows.from_json(w) for w in record.get("windows", ())),
        )


def _relative_spread(rounds: Tuple[float, ...]) -> "float | None":
    n = len(rounds)
    if n < 2:
        return None
    mean = sum(rounds) / n
    return float((sum((r - mean) ** 2 for r in rounds) / (n - 1)) ** 0.5 / mean)
