"""A profile: what is known of training on one device with one setup."""

import json
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, Protocol

from ampere.core import Measurement, Meter, Network, TrainingSetup
from ampere.core.errors import ProfileError
from ampere.core.measurement import YARDSTICK_ALONE, clock_of, seconds_per_iteration

from .checks import (
    MOST_KNOWN,
    MOST_NAMES,
    PROFILING_SECONDS,
    check_count,
    check_header,
    check_measurement,
    check_range,
    check_texts,
    checked,
)
from .files import MOST_VALUES, read_sealed, values_in, write_document
from .layer_table import LayerTable
from .places import id_of_model

PURPOSES = ("layer", "variant", "network", "opaque", "run", "touch", "stage", "kernel")
IN_PART = ("stage", "kernel")  # purposes for which only a part of the step was timed
APART = {"run": "runs", "touch": "touches"}  # purposes that layers are not fitted to, and their fields of a profile
STEP = "step"
STAGES = ("forward", "backward", "update")


@dataclass(frozen=True)
class Observation:
    """A network that was trained, and its measurement."""

    network: Network
    measurement: Measurement
    purpose: str
    stage: str = STEP  # what was timed: the whole step, or one stage of it

    def __post_init__(self) -> None:
        with checked(self._what):
            if self.purpose not in PURPOSES:
                raise ValueError(f"purpose {self.purpose!r} is none of {', '.join(PURPOSES)}")
            if self.stage not in (STAGES if self.purpose in IN_PART else (STEP,)):
                raise ValueError(f"a {self.purpose} cannot have the stage {self.stage[:40]!r}")
            check_measurement(self.measurement)

    @property
    def _what(self) -> str:
        return f"an observation of {self.network.name or 'a network':.60}"

    def to_json(self) -> dict[str, Any]:
        """This observation as JSON with its own layer table, as in a line of a journal."""
        table = LayerTable()
        row = self.to_row(table)
        return {"layers": table.to_json(), **row}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Observation":
        return cls.from_row(record, LayerTable.from_json(record["layers"]))

    def to_row(self, table: LayerTable) -> dict[str, Any]:
        """This observation as JSON with a shared layer table, as in a profile."""
        with checked(self._what):
            network = table.network_to_json(self.network)
        return {
            "network": network,
            "measurement": self.measurement.to_json(),
            "purpose": self.purpose,
            **({} if self.stage == STEP else {"stage": self.stage}),
        }

    @classmethod
    def from_row(cls, record: dict[str, Any], table: LayerTable) -> "Observation":
        network = table.network_from_json(record["network"])
        measurement = Measurement.from_json(record["measurement"])
        return cls(network, measurement, str(record["purpose"]), str(record.get("stage", STEP)))


KIND = "profile"
MOST_THREAD_COUNTS = 64
FORMAT = 2
MOST_SOURCES = 8
NEARBY, FEWEST_NEARBY = 15, 5  # quiet blocks before one with the system's allocator
THINNED = 0.8  # of what a profile holds, where that is more than a file may
ENDS = {"time": "time", "limit": "limit of points", "rule": "own rule"}
OPTIONAL = ("yardstick_joules", "watts_idle", "common_yardstick_seconds", "common_yardstick_joules")

__all__ = ["FORMAT", "Observation", "Profile", "check_device", "other_version", "same_device"]


class YardstickReading(NamedTuple):
    """What a block that timed the yardstick alone, too, says of the yardstick beside a network."""

    ratio: float  # the network's cost in paired yardstick steps
    slowdown: float  # the cost of a paired yardstick step over one alone
    by_step: bool  # whether it was between single steps of the network
    system: bool  # whether the allocator was the system's


def yardstick_readings(observations: Iterable[Observation], clock: str) -> Iterator[YardstickReading]:
    """In the order in which they were made. A forked process has its first steps slowed down by copying pages, so with
    the system's allocator "alone" is what it was in the quiet blocks before."""
    quiet: deque[float] = deque(maxlen=NEARBY)
    for observation in observations:
        m = observation.measurement
        alone, ratio, system = m.conditions.get(YARDSTICK_ALONE, 0.0), m.ratio(clock), m.allocator == "system"
        if not system and alone > 0:
            quiet.append(alone)
        if system:
            alone = median(quiet) if len(quiet) >= FEWEST_NEARBY else 0.0
        if ratio and alone > 0:
            slowdown = seconds_per_iteration(m.yardstick, clock) / alone
            yield YardstickReading(ratio, slowdown, m.step_by_step, system)


@dataclass(frozen=True)
class Profile:
    """What is known of a device: its observations, with which setup and meter they were made, and their fit."""

    device: Mapping[str, Any]  # the fingerprint; two devices are the same if its "id" is
    setup: TrainingSetup
    meter: Meter
    yardstick_seconds: float  # nominal cost of a yardstick step, to which all measurements are normalized
    observations: tuple[Observation, ...] = ()
    profiling_seconds: float = 0.0
    spaces: tuple[str, ...] = ()  # what was profiled, as shown to people
    fit: Mapping[str, Any] = field(default_factory=dict)  # the fitted hyperparameters, as plain JSON
    method: str = "additive"  # which profiling strategy collected the observations
    timing: str = "yardstick"  # how each observation was timed
    yardstick_joules: float | None = None  # joules of the same step, where a counter reads them
    joules_fit: Mapping[str, Any] = field(default_factory=dict)  # like `fit`, for joules that a counter read
    runs: tuple[Observation, ...] = ()  # recorded training runs of the user, in their order
    touches: tuple[Observation, ...] = ()  # processes that trained users' models by their own code
    watts_idle: float | None = None  # what the counter read at rest
    common_yardstick_seconds: float | None = None  # of PyTorch's yardstick in the same condition, where it was timed
    common_yardstick_joules: float | None = None
    ended: Mapping[str, int] = field(default_factory=dict)  # kinds that ended by each of ENDS; of the paper's method
    others: tuple["Profile", ...] = ()  # of the same device and setup with other numbers of threads
    sources: "tuple[Profile, ...]" = ()  # of devices like this one, which few measurements of its own start from
    # The checksum of the file that it was read from and is still equal to; a changed copy has none.
    seal: str = field(default="", init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        with checked("a profile"):
            check_header(self)
            if not {*self.ended} <= {*ENDS} or any(not 0 <= n <= MOST_KNOWN for n in self.ended.values()):
                raise ValueError("how many kinds ended by " + ", ".join(ENDS) + " is malformed")
            check_range("profiling seconds", self.profiling_seconds, PROFILING_SECONDS)
            check_texts("spaces of a profile", self.spaces)
            self._check_others()
            check_count(len(self.sources), MOST_SOURCES, "profiles that it starts from")
            if any(source.sources for source in self.sources):
                raise ValueError("a profile that it starts from starts from others")

    @property
    def device_name(self) -> str:
        """The accelerator that trains, and the processor."""
        device = self.device
        processor = str(device.get("cpu") or device.get("name") or device["id"])
        card = device.get("accelerator")
        return f"{card}; {processor}" if card else processor

    def _check_others(self) -> None:
        every = [self.setup.threads, *(other.setup.threads for other in self.others)]
        check_count(len(every), MOST_THREAD_COUNTS, "numbers of threads")
        alike = all(
            other.setup.family == self.setup.family and same_device(other.device, self.device) and not other.others
            for other in self.others
        )
        if not alike or len({*every}) < len(every):
            raise ValueError("its other numbers of threads are of another device or setup, or there twice")

    @property
    def threads(self) -> tuple[int, ...]:
        """All numbers of threads that were profiled."""
        return tuple(sorted([self.setup.threads, *(other.setup.threads for other in self.others)]))

    def on_threads(self, threads: int) -> "Profile | None":
        """The same profile with its part on so many threads in front; None where that was not profiled."""
        front = next((part for part in self.parts if part.setup.threads == threads), None)
        if front is None:
            return None
        found = replace(front, others=tuple(part for part in self.parts if part.setup.threads != threads))
        return found._sealed(self.seal and f"{self.seal}-{threads}")

    def _sealed(self, seal: str) -> "Profile":
        object.__setattr__(self, "seal", seal)
        return self

    @property
    def parts(self) -> "tuple[Profile, ...]":
        """A profile for each number of threads, by itself."""
        return (replace(self, others=()) if self.others else self, *self.others)

    @property
    def ended_by(self) -> str:
        """What ended profiling by the paper's method: time, the limit of points or its own rule; "" for others."""
        return next((words for end, words in ENDS.items() if self.ended.get(end)), "")

    @cached_property
    def yardstick_readings(self) -> "tuple[YardstickReading, ...]":
        return tuple(yardstick_readings(self.observations, clock_of(self.setup.threads)))

    @property
    def profiling_joules(self) -> float | None:
        """Joules of everything that was measured, with the yardstick; without warming up. None where none were read."""
        windows = [w for o in self.observations for w in (*o.measurement.target, *o.measurement.yardstick)]
        read = [window.joules for window in windows if window.joules is not None]
        return sum(read) if read else None

    @classmethod
    def load(cls, path: Path) -> "Profile":
        body, seal = read_sealed(path, KIND, FORMAT, oldest_version=FORMAT)
        with checked(str(path)):
            return cls.from_json(body)._sealed(seal)

    def save(self, path: Path) -> None:
        write_document(path, KIND, FORMAT, self.to_json())

    @property
    def everything(self) -> tuple[Observation, ...]:
        """All observations on this number of threads, those of users' own code too."""
        return (*self.observations, *(seen for name in APART.values() for seen in getattr(self, name)))

    def within_limits(self) -> "Profile":
        """The profile, or as much of it as a file may hold: fewer networks, evenly spread over the run."""
        found, share = self, 1.0
        while not found._fits and len(found.everything) > 1:
            share *= THINNED
            found = self._thinned(share)
        return found

    @property
    def _fits(self) -> bool:
        parts = [part for each in (self, *self.sources) for part in each.parts]
        return all(part._few_layers for part in parts) and values_in(json.dumps(self.to_json())) <= MOST_VALUES

    @property
    def _few_layers(self) -> bool:
        named = {(layer, layer.name) for network in {o.network for o in self.everything} for layer in network.layers}
        return len(named) <= MOST_NAMES and len({layer for layer, _ in named}) <= MOST_KNOWN

    def _thinned(self, share: float) -> "Profile":
        networks = [*dict.fromkeys(o.network for o in self.observations)]
        count = math.ceil(share * len(networks))
        chosen = {networks[number * len(networks) // count] for number in range(count)}
        apart = {name: getattr(self, name) for name in APART.values()}
        return replace(
            self,
            observations=tuple(o for o in self.observations if o.network in chosen),
            others=tuple(other._thinned(share) for other in self.others),
            sources=tuple(source._thinned(share) for source in self.sources),
            **{name: seen[len(seen) - math.ceil(share * len(seen)) :] for name, seen in apart.items()},  # the newest
        )

    def to_json(self) -> dict[str, Any]:
        table = LayerTable()
        rows = [observation.to_row(table) for observation in self.observations]
        apart = {name: [seen.to_row(table) for seen in getattr(self, name)] for name in APART.values()}
        return {
            "device": dict(self.device),
            "setup": self.setup.to_json(),
            "meter": self.meter.to_json(),
            "yardstick_seconds": self.yardstick_seconds,
            "profiling_seconds": self.profiling_seconds,
            "spaces": list(self.spaces),
            "fit": dict(self.fit),
            "method": self.method,
            "timing": self.timing,
            "yardstick_joules": self.yardstick_joules,
            "watts_idle": self.watts_idle,
            "common_yardstick_seconds": self.common_yardstick_seconds,
            "common_yardstick_joules": self.common_yardstick_joules,
            "joules_fit": dict(self.joules_fit),
            "layers": table.to_json(),
            "observations": rows,
            **{name: kept for name, kept in apart.items() if kept},
            **({"ended": dict(self.ended)} if self.ended else {}),
            **({"others": [other.to_json() for other in self.others]} if self.others else {}),
            **({"sources": [source.to_json() for source in self.sources]} if self.sources else {}),
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Profile":
        table = LayerTable.from_json(record["layers"])
        apart: dict[str, Any] = {
            name: tuple(Observation.from_row(row, table) for row in record.get(name, ())) for name in APART.values()
        }
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
            timing=record.get("timing", "yardstick"),
            joules_fit=dict(record.get("joules_fit", {})),
            **apart,
            ended={str(end): int(kinds) for end, kinds in record.get("ended", {}).items()},
            others=tuple(_other(each) for each in record.get("others", ())),
            sources=tuple(map(cls.from_json, record.get("sources", ()))),
            **optional_numbers(record),
        )


def _other(record: dict[str, Any]) -> Profile:
    if "others" in record:  # before it is read: a file must not nest without end
        raise ValueError("a part with other threads has parts of its own")
    return Profile.from_json(record)


def optional_numbers(record: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers that not every run could measure, and older files lack."""
    read = {name: record.get(name) for name in OPTIONAL}
    return {name: None if value is None else float(value) for name, value in read.items()}


def other_version(profile: Profile, fingerprint: Mapping[str, Any]) -> str:
    """A warning where the device now has another version of the runtime; "" where it has not."""
    runtime, there, here = profile.setup.runtime, profile.device, fingerprint
    then, now = (device.get("runtimes", {}).get(runtime) for device in (there, here))
    if not same_device(there, here) or not then or not now or then == now:
        return ""
    return f"the profile was made with {runtime} {then}, and {now} is installed now: profile again if estimates are off"


class HasDevice(Protocol):
    @property
    def device(self) -> Mapping[str, Any]: ...


class OtherDeviceError(ProfileError):
    """A profile of another device than the one that it is used for."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}: {remedy}")
        self.what = what


def check_device(profile: HasDevice, fingerprint: Mapping[str, Any], insist: bool = False) -> None:
    """Raise for a profile of another device, unless the user insists."""
    there, here = profile.device, fingerprint
    if insist or same_device(there, here):
        return
    keys = [key for key in sorted({*there, *here}) if there.get(key) != here.get(key)]
    telling = [key for key in keys if key in ("accelerator", "cpu", "cores", "machine", "system", "worker")]
    if not telling and there.get("power_source") != here.get("power_source"):
        sources = (str(device.get("power_source") or "an unknown power source") for device in (there, here))
        what = "of this device on {}, and it runs on {} now".format(*sources)
    elif not telling and there.get("machine_id") != here.get("machine_id"):
        what = "of another device of the same model"
    else:
        shown = "; ".join(f"{key} {there.get(key)!s:.60}, here {here.get(key)!s:.60}" for key in (telling or keys)[:4])
        what = f"of another device ({shown})"
    raise OtherDeviceError(
        f"the profile is {what}", "create one here with `ampere profile`, or use this one with --allow-other-device"
    )


def same_device(there: Mapping[str, Any], here: Mapping[str, Any]) -> bool:
    """Whether two fingerprints are of one device. Where one does not name its machine, the hardware decides."""
    named = there.get("machine_id") and here.get("machine_id")
    return bool(there["id"] == here["id"] or (not named and id_of_model(there) == id_of_model(here)))
