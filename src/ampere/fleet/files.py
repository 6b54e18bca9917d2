"""fleet.toml and jobs.toml: what people write about their devices and their jobs.

An entry that makes no sense is left out with one line that says why, and the others are used: one misspelt key must not
keep thirty phones waiting. A file that is no TOML is refused.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Generic, TypeVar

from ampere.core.errors import AmpereError, StorageError, UsageError
from ampere.core.units import DAY, HOUR, parse_energy, parse_memory, parse_power, parse_seconds

from .chains import in_cycles
from .problem import FOREVER

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LARGEST_FILE = 20_000_000  # bytes
DAYS = 14  # that daily windows and prices are repeated for
T = TypeVar("T")
_NAMES, _MOMENT = '["one", "another"]', '"8h", "07:30" or 2026-12-01T22:00:00'
OF_DEVICES = ("runtime", "optimizer", "dtype", "threads", "on", "meter", "battery", "price", "carbon", "available")
EXAMPLES = {  # of keys whose values are not read as text or a whole number
    "labels": _NAMES,
    "like": _NAMES,
    "data": _NAMES,
    "after": _NAMES,
    "available": '["22:00-07:00"]',
    "seed": "a whole number",
    "condition": "a number such as 1.1",
    "arguments": "[job.arguments], and width = 32 below it",
    "deadline": _MOMENT,
    "not_before": _MOMENT,
}


@dataclass(frozen=True)
class FleetDevice:
    """A device of a fleet, as fleet.toml describes it."""

    name: str
    address: str  # local, ssh://, tcp://, simulated:, replayed:
    labels: tuple[str, ...] = ()
    profile: str | None = None  # a file; None: the device's own
    runtime: str | None = None
    optimizer: str | None = None
    dtype: str | None = None
    threads: int | None = None
    meter: str | None = None
    seed: int = 0  # of a simulated device
    battery_joules: float = FOREVER  # energy left
    memory_bytes: float = FOREVER
    available: tuple[tuple[float, float], ...] = ()  # hours of the day, in seconds; empty: always
    price: tuple[float, ...] = ()  # of a kilowatt-hour: one, or one for each hour of the day
    carbon: tuple[float, ...] = ()  # grams of CO2 for a kilowatt-hour, in the same way
    watts_idle: float = 0.0
    condition: float = 1.0  # a step's cost now, relative to when it was profiled
    like: tuple[str, ...] = ()  # devices of the fleet that its profile starts from
    on: str | None = None  # the processor that trains there, such as cuda:0; None: the CPU

    def windows(self, start: datetime) -> tuple[tuple[float, float], ...]:
        """When it is available, in seconds from the start of a plan."""
        if not self.available:
            return ((0.0, FOREVER),)
        midnight = -_of_day(start)
        spans = [
            (midnight + DAY * day + begin, midnight + DAY * day + (end if end > begin else end + DAY))
            for day in range(-1, DAYS)
            for begin, end in self.available
        ]
        found = list[tuple[float, float]]()
        for begin, end in sorted((max(0.0, begin), end) for begin, end in spans if end > 0):
            if found and begin <= found[-1][1]:  # time that is in two of them is there once
                found[-1] = (found[-1][0], max(end, found[-1][1]))
            else:
                found.append((begin, end))
        return tuple(found)

    def rates(self, by_hour: Sequence[float], start: datetime) -> tuple[tuple[float, float], ...]:
        """From each time on, what a kilowatt-hour costs; equal hours are joined."""
        if len(by_hour) <= 1:
            return ((0.0, by_hour[0] if by_hour else 0.0),)
        now, found = _of_day(start), list[tuple[float, float]]()
        for hour in range(24 * DAYS + 24):
            since, rate = max(0.0, hour * HOUR - now), by_hour[hour % 24]
            if (hour + 1) * HOUR > now and (not found or found[-1][1] != rate):
                found.append((since, rate))
        return tuple(found)


@dataclass(frozen=True)
class Job:
    """Training to be done, as jobs.toml describes it."""

    name: str
    model: str
    input: str | None = None
    batch: int | None = None  # None: as its input is
    arguments: Mapping[str, Any] = field(default_factory=dict)
    iterations: int | None = None
    epochs: int | None = None
    samples: int | None = None
    deadline: float = FOREVER  # seconds from the start of the plan
    release: float = 0.0
    memory_bytes: float | None = None  # None: as estimated
    only_on: tuple[str, ...] = ()  # names or labels of devices that have its data
    after: tuple[str, ...] = ()  # jobs that must have ended


@dataclass(frozen=True)
class Read(Generic[T]):
    """The entries of a file that can be used, and a line about each that cannot."""

    entries: tuple[T, ...]
    problems: tuple[str, ...]


def read_fleet(path: Path) -> Read[FleetDevice]:
    """The devices of a fleet file."""
    found = _entries(path, "device", _device, {"device"})
    kept, problems = list(found.entries), list(found.problems)
    known = {device.name for device in kept}
    problems += [
        f"{path}: device {d.name!r} is like {', '.join(sorted({*d.like} - known))}, which is no device here"
        for d in kept
        if not {*d.like} <= known
    ]
    kept = [d for d in kept if {*d.like} <= known]
    left = {d.name for d in kept}
    if circle := in_cycles({d.name: [name for name in d.like if name in left] for d in kept}):
        problems.append(f"{path}: {', '.join(sorted(circle))}: `like` leads in a circle: remove one of them")
        kept = [d for d in kept if d.name not in circle]
    return Read(_need(tuple(kept), path, "device", problems), tuple(problems))


def read_jobs(path: Path, start: datetime) -> Read[Job]:
    """The jobs of a file, with times in seconds from the start; jobs that wait for each other are left out."""
    found = _entries(path, "job", lambda record: _job(record, start), {"job", "start"})
    kept, problems = list(found.entries), list(found.problems)
    names = {job.name for job in kept}
    for job in kept:
        if missing := sorted({*job.after} - names):
            problems.append(
                f"{path}: job {job.name!r} is after {', '.join(missing)}, which is no job here: leave it out"
            )
    kept = [job for job in kept if {*job.after} <= names]
    while waiting := in_cycles({job.name: job.after for job in kept}):
        words = "wait for each other in a circle" if len(waiting) > 1 else "waits for itself"
        problems.append(f"{path}: {', '.join(sorted(waiting))} {words}: remove one `after` of them")
        kept = [job for job in kept if job.name not in waiting]
        left = {job.name for job in kept}
        problems += [f"{path}: job {job.name!r} waits for one of them" for job in kept if not {*job.after} <= left]
        kept = [job for job in kept if {*job.after} <= left]
    return Read(_need(tuple(kept), path, "job", problems), tuple(problems))


def start_of(path: Path, now: datetime) -> datetime:
    """When the plan of a job file begins: as the file says, or now."""
    given = _parsed(path).get("start", now)
    if isinstance(given, str):
        try:
            given = datetime.fromisoformat(given)
        except ValueError:
            given = None
    if not isinstance(given, datetime):
        raise UsageError(f"{path}: start is no time: write start = 2026-12-01T22:00:00")
    return _local(given)


# Reading.


def _parsed(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise UsageError(f"{path} has more than {LARGEST_FILE:,} bytes: is it the right file?")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}: check the name") from None
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}: check the path and its permissions") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{path} is not TOML ({error!s:.200}): correct it there") from None


def _entries(path: Path, kind: str, read: Callable[[Mapping[str, Any]], T], keys: set[str]) -> Read[T]:
    parsed = _parsed(path)
    if unknown := [key for key in parsed if key not in keys]:
        raise UsageError(
            f"{path} has {unknown[0]!r:.60} at its top, but only {' and '.join(sorted(keys))}{_near(unknown[0], keys)}"
        )
    records = parsed.get(kind, [])
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise UsageError(f"{path}: write each {kind} as [[{kind}]]")
    entries, problems, seen = list[T](), list[str](), set[str]()
    for number, record in enumerate(records, 1):
        name = record.get("name")
        what = f"{kind} {name!r:.60}" if isinstance(name, str) else f"{kind} number {number}"
        try:
            if not isinstance(name, str) or not name.strip():
                raise UsageError("it has no name: give it one")
            if name in seen:
                raise UsageError("the name is there twice: rename one of them")
            seen.add(name)
            entries.append(read(record))
        except AmpereError as problem:
            problems.append(f"{path}: {what}: {problem}")
    return Read(tuple(entries), tuple(problems))


def _need(entries: tuple[T, ...], path: Path, kind: str, problems: Sequence[str]) -> tuple[T, ...]:
    if entries:
        return entries
    raise UsageError(problems[0] if problems else f"{path} has no {kind}: write one as [[{kind}]]")


def _near(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, [*known], n=1)
    return f": did you mean {near[0]}?" if near else ""


class _Record:
    """A table of TOML: each value is taken once, with its type; what is left is unknown."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self._record, self._taken = record, set[str]()

    def take(self, key: str, read: Callable[[Any], T], default: T) -> T:
        self._taken.add(key)
        if key not in self._record:
            return default
        try:
            return read(self._record[key])
        except UsageError as problem:
            named = str(problem).startswith(f"{key} ")
            raise UsageError(str(problem) if named else f"{key}: {problem}") from None
        except (TypeError, ValueError, AttributeError):
            raise UsageError(f"{key} = {self._record[key]!r:.60} cannot be read: write {EXAMPLES[key]}") from None

    def done(self) -> None:
        for key in self._record:
            if key not in self._taken:
                elsewhere = ": give it to devices, in the fleet file" if key in OF_DEVICES else ": leave it out"
                raise UsageError(f"there is no key {key!r:.60}{_near(key, self._taken) or elsewhere}")


def _text(value: Any, example: str = "") -> str:
    if not isinstance(value, str):
        unit = f', with its unit, as in "{example}"' if example else ""
        raise UsageError(f"{value!r:.60} is not text: put it in quotes{unit}")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(_text, [value] if isinstance(value, str) else value))


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UsageError(f"{value!r:.60} is not a whole number from 1")
    return value


def _positive(value: Any) -> float:
    if isinstance(value, bool) or not 0 < float(value) < FOREVER:
        raise UsageError(f"{value!r:.60} is not a positive number")
    return float(value)


def _by_hour(value: Any) -> tuple[float, ...]:
    """One number, or 24 of them."""
    numbers = value if isinstance(value, list) else [value]
    plain = all(type(n) in (int, float) and 0 <= n < FOREVER for n in numbers)
    if len(numbers) not in (1, 24) or not plain:
        raise UsageError(
            f"{value!r:.60} is neither a number for a kilowatt-hour, such as 0.3, nor 24, one for each hour of the day"
        )
    return tuple(map(float, numbers))


def _hours(value: Any) -> tuple[tuple[float, float], ...]:
    """`["22:00-07:00"]`"""
    spans = []
    for text in _texts(value):
        begin, end = (part.strip() for part in text.partition("-")[::2])
        try:
            until = DAY if end == "24:00" else _of_day(time.fromisoformat(end))
            span = (_of_day(time.fromisoformat(begin)), until)
        except ValueError:
            raise UsageError(f"{text!r:.40} is no part of a day: write it as in 22:00-07:00") from None
        if span[0] == span[1]:
            raise UsageError(f"{text!r:.40} begins when it ends: leave `available` out for always")
        spans.append(span)
    return tuple(spans)


def _of_day(moment: datetime | time) -> float:
    return moment.hour * HOUR + moment.minute * 60.0 + moment.second


def _device(record: Mapping[str, Any]) -> FleetDevice:
    given = _Record(record)
    device = FleetDevice(
        name=given.take("name", _text, ""),
        address=given.take("address", _text, ""),
        labels=given.take("labels", _texts, ()),
        profile=given.take("profile", _text, None),
        runtime=given.take("runtime", _text, None),
        optimizer=given.take("optimizer", _text, None),
        dtype=given.take("dtype", _text, None),
        threads=given.take("threads", _count, None),
        meter=given.take("meter", _text, None),
        seed=given.take("seed", int, 0),
        battery_joules=given.take("battery", lambda v: parse_energy(_text(v, "15Wh")), FOREVER),
        memory_bytes=given.take("memory", lambda v: parse_memory(_text(v, "4GB")), FOREVER),
        available=given.take("available", _hours, ()),
        price=given.take("price", _by_hour, ()),
        carbon=given.take("carbon", _by_hour, ()),
        watts_idle=given.take("idle", lambda v: parse_power(str(v)), 0.0),
        condition=given.take("condition", _positive, 1.0),
        like=given.take("like", _texts, ()),
        on=given.take("on", _text, None),
    )
    given.done()
    if not device.address and not device.profile:
        raise UsageError("it has no address: give one, such as ssh://me@phone or simulated:xavier")
    return device


def _job(record: Mapping[str, Any], start: datetime) -> Job:
    given = _Record(record)
    job = Job(
        name=given.take("name", _text, ""),
        model=given.take("model", _text, ""),
        input=given.take("input", _text, None),
        batch=given.take("batch", _count, None),
        arguments=given.take("arguments", dict, {}),
        iterations=given.take("iterations", _count, None),
        epochs=given.take("epochs", _count, None),
        samples=given.take("samples", _count, None),
        deadline=given.take("deadline", lambda v: _moment(v, start), FOREVER),
        release=given.take("not_before", lambda v: _moment(v, start), 0.0),
        memory_bytes=given.take("memory", lambda v: parse_memory(_text(v, "4GB")), None),
        only_on=given.take("data", _texts, ()),
        after=given.take("after", _texts, ()),
    )
    given.done()
    if not job.model:
        raise UsageError('it has no model: give one, such as model = "lenet5" or "net.py:build"')
    if bool(job.iterations) == bool(job.epochs and job.samples) or bool(job.epochs) != bool(job.samples):
        raise UsageError("give its length once: iterations, or epochs and samples")
    if job.deadline <= 0:
        raise UsageError("its deadline is in the past: give a later one")
    if job.deadline <= job.release:
        raise UsageError("its deadline is before it may begin: change deadline or not_before")
    return job


def _moment(value: Any, start: datetime) -> float:
    """Seconds from the start: `"8h"`, `"07:30"` (the next one), or a date and time."""
    if isinstance(value, str) and value[:1].isdigit() and ":" in value and "-" not in value:
        value = time.fromisoformat(value.zfill(5))
    elif isinstance(value, str) and "-" in value[1:]:
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return (_local(value) - start).total_seconds()
    if isinstance(value, date):
        return (datetime.combine(value, time()) - start).total_seconds()
    if isinstance(value, time):
        later = datetime.combine(start.date(), value)
        return ((later if later > start else later + timedelta(days=1)) - start).total_seconds()
    try:
        return parse_seconds(str(value))
    except UsageError:
        raise ValueError(f"{value!r:.60} is no time") from None


def _local(moment: datetime) -> datetime:
    """The time on this machine's clock; one without a zone is that already."""
    return (moment.astimezone() if moment.tzinfo else moment).replace(tzinfo=None)
