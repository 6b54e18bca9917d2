"""A profile: what is known of training on one device with one setup."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ..errors import ProfileError
from ..network import Meter, TrainingSetup
from .checks import believing, check_how, check_meter, check_positive
from .files import read_document, write_document
from .layer_table import LayerTable
from .observation import Observation

KIND = "profile"
FORMAT = 1
OPTIONAL = ("yardstick_joules", "watts_idle", "common_yardstick_seconds", "common_yardstick_joules")

__all__ = ["FORMAT", "Observation", "Profile", "check_device", "other_version"]


@dataclass(frozen=True)
class Profile:
    """What is known of a device: what was observed there, with which setup and meter, and how that was fitted."""

    device: Mapping[str, Any]  # the fingerprint; devices are the same if its "id" is
    setup: TrainingSetup
    meter: Meter
    yardstick_seconds: float  # nominal cost of a yardstick step: the condition all measurements refer to
    observations: tuple[Observation, ...] = ()
    profiling_seconds: float = 0.0
    spaces: tuple[str, ...] = ()  # what was profiled, for people
    fit: Mapping[str, Any] = field(default_factory=dict)  # the surrogate's hyperparameters, as plain JSON
    method: str = "additive"  # which campaign gathered the observations
    protocol: str = "yardstick"  # how each of them was timed
    yardstick_joules: float | None = None  # the same as its seconds, where a counter reads joules
    joules_fit: Mapping[str, Any] = field(default_factory=dict)  # the same as `fit`, of joules that a counter read
    runs: tuple[Observation, ...] = ()  # what users' own trainings cost, in the order in which they were recorded
    watts_idle: float | None = None  # what the counter read at rest
    common_yardstick_seconds: float | None = None  # of PyTorch's yardstick in the same condition, where it was timed
    common_yardstick_joules: float | None = None

    def __post_init__(self) -> None:
        with believing("a profile"):
            check_device_record(self.device)
            check_meter(self.meter)
            check_positive("the yardstick's seconds", self.yardstick_seconds)
            check_positive("1 + profiling seconds", 1 + self.profiling_seconds)
            check_how(self.method, self.protocol)
            for read in (self.yardstick_joules, self.common_yardstick_seconds, self.common_yardstick_joules):
                check_positive("the yardstick's joules, and what is beside it,", 1.0 if read is None else read)
            check_positive("1 + idle watts", 1.0 + (self.watts_idle or 0.0))

    @classmethod
    def load(cls, path: Path) -> "Profile":
        body = read_document(path, KIND, FORMAT)
        with believing(str(path)):
            return cls.from_json(body)

    def save(self, path: Path) -> None:
        write_document(path, KIND, FORMAT, self.to_json())

    def to_json(self) -> dict[str, Any]:
        table = LayerTable()
        rows = [observation.to_row(table) for observation in self.observations]
        runs = [run.to_row(table) for run in self.runs]
        return {
            "device": dict(self.device),
            "setup": self.setup.to_json(),
            "meter": self.meter.to_json(),
            "yardstick_seconds": self.yardstick_seconds,
            "profiling_seconds": self.profiling_seconds,
            "spaces": list(self.spaces),
            "fit": dict(self.fit),
            "method": self.method,
            "protocol": self.protocol,
            "yardstick_joules": self.yardstick_joules,
            "watts_idle": self.watts_idle,
            "common_yardstick_seconds": self.common_yardstick_seconds,
            "common_yardstick_joules": self.common_yardstick_joules,
            "joules_fit": dict(self.joules_fit),
            "layers": table.to_json(),
            "observations": rows,
            **({"runs": runs} if runs else {}),
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Profile":
        table = LayerTable.from_json(record["layers"])
        return cls(
            device=dict(record["device"]),
            setup=TrainingSetup.from_json(record["setup"]),
            meter=Meter(**record["meter"]),
            yardstick_seconds=float(record["yardstick_seconds"]),
            observations=tuple(Observation.from_row(row, table) for row in record["observations"]),
            profiling_seconds=float(record["profiling_seconds"]),
            spaces=tuple(map(str, record["spaces"])),
            fit=dict(record["fit"]),
            method=record.get("method", "additive"),
            protocol=record.get("protocol", "yardstick"),
            joules_fit=dict(record.get("joules_fit", {})),
            runs=tuple(Observation.from_row(row, table) for row in record.get("runs", ())),
            **optional_numbers(record),
        )


def optional_numbers(record: Mapping[str, Any]) -> dict[str, Any]:
    """What not every run could tell, and files of before lack."""
    read = {name: record.get(name) for name in OPTIONAL}
    return {name: None if value is None else float(value) for name, value in read.items()}


def check_device_record(device: Mapping[str, Any]) -> None:
    if not isinstance(device.get("id"), str) or not device["id"]:
        raise ValueError("its device has no id")


def other_version(profile: Profile, fingerprint: Mapping[str, Any]) -> str:
    """What to say where the same device has another version of the runtime by now; "" where it has not."""
    runtime, there, here = profile.setup.runtime, profile.device, fingerprint
    then, now = (device.get("runtimes", {}).get(runtime) for device in (there, here))
    if there["id"] != here["id"] or not then or not now or then == now:
        return ""
    return f"the profile was made with {runtime} {then}, and here is {now}: profile again if estimates are off"


class OfADevice(Protocol):
    @property
    def device(self) -> Mapping[str, Any]: ...


def check_device(profile: OfADevice, fingerprint: Mapping[str, Any], insist: bool = False) -> None:
    """Refuses what was measured elsewhere, unless the user insists."""
    there, here = profile.device, fingerprint
    if insist or there["id"] == here["id"]:
        return
    keys = sorted(key for key in {*there, *here} if there.get(key) != here.get(key))
    shown = "; ".join(f"{key} {there.get(key)!s:.60}, here {here.get(key)!s:.60}" for key in keys[:4])
    raise ProfileError(
        f"the profile is of another device ({shown}): make one here with `ampere profile`, or insist with --foreign"
    )
