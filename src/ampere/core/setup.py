"""How a network is trained: everything about a step that is not the network itself."""

import re
from dataclasses import asdict, dataclass
from typing import Any, Dict

from .optimizers import OPTIMIZERS, find_optimizer

DTYPES = {  # bytes of a value that a layer computes
    "float32": 4,
    "bfloat16": 2,
    "autocast_bfloat16": 2,
    "autocast_float16": 2,  # with a GradScaler
    "tf32": 4,
    "float32_ieee": 4,
}
PLAIN_DTYPES = ("float32", "bfloat16")  # that a whole network is in
OF_NVIDIA = ("tf32", "float32_ieee")  # what float32 means on such a card; float32 itself is PyTorch's own setting
SHORT_DTYPES = {
    "fp32": "float32",
    "float": "float32",
    "bf16": "bfloat16",
    "autocast": "autocast_bfloat16",
    "amp": "autocast_bfloat16",
    "mixed": "autocast_bfloat16",
}
CPU, AUTO = "cpu", "auto"
_ON = re.compile(r"[a-z][a-z0-9_]{0,30}(:[0-9]{1,3})?")
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


def find_on(name: str) -> str:
    """Where steps run: `cpu`, `auto`, or an accelerator as PyTorch names it, with or without a number."""
    found = name.strip().lower()
    if not _ON.fullmatch(found) or found.startswith((CPU + ":", AUTO + ":", "meta")):
        raise ValueError(f"on {name!r} names no processor: use cpu, cuda, cuda:1, mps, xpu or auto")
    return found


@dataclass(frozen=True)
class TrainingSetup:
    """One profile speaks of one setup; the batch size belongs to the layers."""

    runtime: str = "torch"
    optimizer: str = "sgd"
    dtype: str = "float32"
    threads: int = 1
    on: str = CPU  # or an accelerator, as `cuda:0`

    def __post_init__(self) -> None:
        object.__setattr__(self, "optimizer", find_optimizer(self.optimizer).name)
        object.__setattr__(self, "dtype", find_dtype(self.dtype))
        object.__setattr__(self, "on", find_on(self.on))
        if self.on == AUTO:
            raise ValueError("on is auto, which only a device can resolve: name a processor, such as cpu")
        if self.dtype in OF_NVIDIA and not self.on.startswith("cuda"):
            raise ValueError(f"dtype {self.dtype} is of NVIDIA cards: train on cuda, or use float32")
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
        place = "" if self.on == CPU else "-on-" + self.on.replace(":", "_")
        return f"{self.runtime}-{self.optimizer}-{self.dtype}{place}"

    def to_json(self) -> Dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: Dict[str, Any]) -> "TrainingSetup":
        return cls(
            runtime=str(record["runtime"]),
            optimizer=str(record["optimizer"]),
            dtype=str(record["dtype"]),
            threads=int(record["threads"]),
            on=str(record.get("on", CPU)),  # files from before accelerators are of the CPU
        )


__all__ = [
    "ALLOCATORS",
    "AUTO",
    "CPU",
    "DTYPES",
    "OF_NVIDIA",
    "OPTIMIZERS",
    "PLAIN_DTYPES",
    "SHORT_DTYPES",
    "TIMINGS",
    "TrainingSetup",
    "find_dtype",
    "find_on",
    "find_optimizer",
]
