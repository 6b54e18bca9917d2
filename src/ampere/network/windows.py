"""When something was measured, kept for a log of a meter that is read afterwards."""

from dataclasses import dataclass
from typing import Any, Mapping, Tuple

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
