"""What goes into a model: shapes, types and, for token ids, how large they may be."""

from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple


@dataclass(frozen=True)
class InputSpec:
    shape: Tuple[int, ...]
    dtype: str = "float32"
    high: Optional[int] = None  # whole numbers are below it

    def __str__(self) -> str:
        kind = "" if self.dtype == "float32" else ":" + self.dtype
        limit = "" if self.high is None else f"<{self.high}"
        return "x".join(map(str, self.shape)) + kind + limit

    def to_json(self) -> Dict[str, Any]:
        return {"shape": list(self.shape), "dtype": self.dtype, "high": self.high}

    @classmethod
    def from_json(cls, record: Dict[str, Any]) -> "InputSpec":
        high = record.get("high")
        shape = tuple(int(n) for n in record["shape"])
        return cls(shape, str(record["dtype"]), None if high is None else int(high))
