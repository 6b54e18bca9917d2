"""How a network is trained: everything about a step that is not the network itself."""

from dataclasses import asdict, dataclass
from typing import Any, Dict

OPTIMIZERS = ("sgd", "momentum", "adam", "adamw")
DTYPES = {"float32": 4, "bfloat16": 2}
ALLOCATORS = {
    "system": "a plain training loop with the system's allocator",
    "tuned": "a training loop whose allocator keeps its memory",
}
PROTOCOLS = ("yardstick", "wallclock")  # beside a yardstick, or the paper's: a plain loop by the clock


@dataclass(frozen=True)
class TrainingSetup:
    """One profile speaks of one setup; the batch size belongs to the layers."""

    runtime: str = "torch"
    optimizer: str = "sgd"
    dtype: str = "float32"
    threads: int = 1

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"optimizer {self.optimizer!r} is none of {', '.join(OPTIMIZERS)}")
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype {self.dtype!r} is none of {', '.join(DTYPES)}")
        if self.threads < 1:
            raise ValueError(f"threads is {self.threads}, but must be 1 or more")

    @property
    def bytes_per_value(self) -> int:
        return DTYPES[self.dtype]

    @property
    def name(self) -> str:
        return f"{self.runtime}-{self.optimizer}-{self.dtype}-{self.threads}t"

    def to_json(self) -> Dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: Dict[str, Any]) -> "TrainingSetup":
        return cls(
            runtime=str(record["runtime"]),
            optimizer=str(record["optimizer"]),
            dtype=str(record["dtype"]),
            threads=int(record["threads"]),
        )
