"""How large an evaluation is: which devices, which families, how many networks, how long profiles take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ampere.baselines import METHODS
from ampere.baselines.answers import unavailable
from ampere.core import Meter
from ampere.devices import LOCAL, Device
from ampere.profiling.running import usual_seconds

FAMILIES = ("lenet5", "cnn5", "har", "lstm", "transformer", "resnet")
LARGE = ("transformer", "resnet")
SIMULATED = tuple(f"simulated:{name}" for name in ("xavier", "tx2", "phone-android", "phone-ios", "server"))
SIMULATED_WHEN_QUICK = ("simulated:xavier", "simulated:server")
PAPERS_LARGE = ("simulated:xavier", "simulated:server")  # the paper's other devices cannot hold its larger models

Strategy = tuple[str, str]  # method, timing
OURS: Strategy = ("additive", "yardstick")
PAPERS: Strategy = ("sequential", "yardstick")
BASELINES: tuple[Strategy, ...] = (
    PAPERS,
    ("sequential", "wallclock"),  # as the paper measures
    ("stages", "yardstick"),  # NeuralPower's
    ("kernels", "yardstick"),
)


@dataclass(frozen=True)
class Plan:
    """The size of a run. The same plan always needs the same measurements, so a stopped run can be continued."""

    quick: bool = False
    seed: int = 0
    chosen_devices: tuple[str, ...] = ()
    data: str = ""  # the images of the case study; empty for those that it chooses itself
    baseline_samples: int = 0  # measurements of isolated layers for the methods that learn from them; 0: by seconds

    @property
    def devices(self) -> tuple[str, ...]:
        """Where experiments on one device run."""
        return self.chosen_devices or (LOCAL,)

    @property
    def all_devices(self) -> tuple[str, ...]:
        """Where experiments that compare devices run: unless the user chose, simulated ones too."""
        return self.chosen_devices or (LOCAL, *(SIMULATED_WHEN_QUICK if self.quick else SIMULATED))

    @property
    def large_devices(self) -> tuple[str, ...]:
        """Where the paper trains its larger models, and here."""
        return self.chosen_devices or tuple(d for d in self.all_devices if d == LOCAL or d in PAPERS_LARGE)

    def families(self, device: str) -> tuple[str, ...]:
        return ("cnn5", "lstm", "transformer") if self.quick and not self.is_main(device) else FAMILIES

    def baselines(self, device: str, family: str) -> tuple[Strategy, ...]:
        """The strategies of methods that need measurements of their own and can run here."""
        if self.is_main(device) and (not self.quick or family == "cnn5"):
            missing = {METHODS[name].strategy for name in unavailable()}
            return tuple(strategy for strategy in BASELINES if strategy[0] not in missing)
        return (PAPERS,)

    def is_main(self, device: str) -> bool:
        return device in self.devices

    def profile_seconds(self, device: str, family: str) -> float:
        """The device's own seconds: a slow counter needs more of them."""
        large = family in LARGE
        if device != LOCAL:
            return usual_seconds(_meter(device)) * (1.5 if large else 1.0)
        return (10.0 if large else 7.0) if self.quick else (25.0 if large else 15.0)

    def networks(self, family: str) -> int:
        if self.quick:
            return 8
        return 100 if family == "cnn5" else 60

    @property
    def rounds(self) -> int:
        return 2 if self.quick else 4

    def either(self, quick: int, full: int) -> int:
        return quick if self.quick else full


@lru_cache(maxsize=16)
def _meter(spec: str) -> Meter:
    with Device(spec) as device:
        return device.meter


@lru_cache(maxsize=16)
def thread_counts(spec: str) -> tuple[int, ...]:
    """Powers of two up to the cores of a device, and all of them."""
    with Device(spec) as device:
        cores = int(device.identity.get("cores") or 1)
    return tuple(sorted({2**n for n in range(cores.bit_length()) if 2**n <= cores} | {cores}))


def is_simulated(device: str) -> bool:
    return device.startswith("simulated:")


def title_of(device: str) -> str:
    """A device's name for people, which says where it is not real."""
    kind, _, name = device.partition(":")
    return f"{name} ({kind})" if name else "this device" if kind == LOCAL else kind
