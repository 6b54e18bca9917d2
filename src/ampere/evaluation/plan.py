"""How large an evaluation is: which devices, which families, how many networks, how long profiles take."""

from __future__ import annotations

from dataclasses import dataclass

FAMILIES = ("lenet5", "cnn5", "har", "lstm", "transformer", "resnet")
LARGE = ("transformer", "resnet")
SIMULATED: tuple[str, ...] = ()
SIMULATED_WHEN_QUICK: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """The same plan always asks for the same measurements, so a stopped run can be told from a finished one."""

    quick: bool = False
    seed: int = 0
    asked_devices: tuple[str, ...] = ()

    @property
    def devices(self) -> tuple[str, ...]:
        """Where experiments on one device run."""
        return self.asked_devices or ("local",)

    @property
    def all_devices(self) -> tuple[str, ...]:
        """Where experiments that compare devices run: unless the user chose, simulated ones too."""
        return self.asked_devices or ("local", *(SIMULATED_WHEN_QUICK if self.quick else SIMULATED))

    @property
    def families(self) -> tuple[str, ...]:
        return FAMILIES

    def profile_seconds(self, family: str) -> float:
        if self.quick:
            return 8.0 if family in LARGE else 6.0
        return 25.0 if family in LARGE else 15.0

    def networks(self, family: str) -> int:
        if self.quick:
            return 8
        return 100 if family == "cnn5" else 60

    @property
    def rounds(self) -> int:
        return 2 if self.quick else 4

    def either(self, quick: int, full: int) -> int:
        return quick if self.quick else full


def is_simulated(device: str) -> bool:
    return device.startswith("simulated:")


def title_of(device: str) -> str:
    """For people: a device that is not real always says so."""
    kind, _, name = device.partition(":")
    return f"{name} ({kind})" if name else "this device" if kind == "local" else kind
