"""How a network is trained: everything about a step that is not the network itself."""

from dataclasses import asdict, dataclass
from typing import Any, Dict

from .optimizers import OPTIMIZERS, find_optimizer

DTYPES = {"float32": 4, "bfloat16": 2, "autocast": 4}  # bytes of a weight; autocast multiplies in bfloat16
PLAIN_DTYPES = ("float32", "bfloat16")  # that a whole network is in
SHORT_DTYPES = {"fp32": "float32", "float": "float32", "bf16": "bfloat16", "amp": "autocast", "mixed": "autocast"}
ALLOCATORS = {
    "system": "a plain training loop with the system's allocator",
    "tuned": "a training loop whose allocator keeps its memory",
}
TIMINGS = ("yardstick", "wallclock")  # paired with a yardstick, or a plain loop by the clock as in the paper


def find_dtype(name: str) -> str:
    """The name of a type, which may be given in upper case or shortened, as bf16."""
    found = SHORT_DTYPES.get(name.lower(), name.lower())
    if found not in DTYPES:
        raise ValueError(f"dtype {name!r} is none of {', '.join(DTYPES)}")
    return found


@dataclass(frozen=True)
class TrainingSetup:
    """One profile speaks of one setup; the batch size belongs to the layers."""

    runtime: str = "torch"
    optimizer: str = "sgd"
    dtype: str = "float32"
    threads: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "optimizer", find_optimizer(self.optimizer).name)
        object.__setattr__(self, "dtype", find_dtype(self.dtype))
        if self.threads < 1:
            raise ValueError(f"threads is {self.threads}, but must be 1 or more")

    @property
    def bytes_per_value(self) -> int:
        return DTYPES[self.dtype]

    @property
    def name(self) -> str:
        return f"{self.family}-{self.threads}t"

    @property
    def family(self) -> str:
        """The name without the threads: one profile holds several numbers of them."""
        return f"{self.runtime}-{self.optimizer}-{self.dtype}"

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


__all__ = [
    "ALLOCATORS",
    "DTYPES",
    "OPTIMIZERS",
    "PLAIN_DTYPES",
    "SHORT_DTYPES",
    "TIMINGS",
    "TrainingSetup",
    "find_dtype",
    "find_optimizer",
]
