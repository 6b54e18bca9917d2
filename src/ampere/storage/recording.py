"""What a profiling run writes to its journal, so that a killed run can continue from there.

{"header": ...}                                   once: the device, setup, method, meter and yardstick
{"observation": ..., "profiling_seconds": ...}    for each measurement, with the seconds spent so far

A journal may hold several numbers of threads, with a header for each. A measurement names its `threads`; without a name
it belongs to the header before it.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ampere.core import Meter, TrainingSetup
from ampere.core.errors import BusyError, ProfileError

from .checks import check_header, checked
from .files import older
from .journal import Journal, read_records
from .layer_table import LayerTable
from .places import journal_path
from .profile import APART, OPTIONAL, Observation, Profile, optional_numbers

FORMAT = 2
NEARLY_FULL = 0.75  # of what a journal may hold: the rest is for a run that is killed before it ends


@dataclass(frozen=True)
class Header:
    """How a profiling run measures: all of a profile but its observations and their fit."""

    device: Mapping[str, Any]
    setup: TrainingSetup
    meter: Meter
    yardstick_seconds: float
    method: str = "additive"
    timing: str = "yardstick"
    yardstick_joules: float | None = None  # where a counter reads them
    watts_idle: float | None = None  # what the counter read at rest
    common_yardstick_seconds: float | None = None  # of PyTorch's yardstick in the same condition, where it was timed
    common_yardstick_joules: float | None = None

    def __post_init__(self) -> None:
        with checked("a journal's header"):
            check_header(self)

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "device": dict(self.device),
            "setup": self.setup.to_json(),
            "meter": self.meter.to_json(),
            "yardstick_seconds": self.yardstick_seconds,
            "method": self.method,
            "timing": self.timing,
            **{name: getattr(self, name) for name in OPTIONAL},
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Header":
        setup, meter = TrainingSetup.from_json(record["setup"]), Meter(**record["meter"])
        how = record.get("method", "additive"), record.get("timing", "yardstick")
        header = cls(dict(record["device"]), setup, meter, float(record["yardstick_seconds"]), *how)
        return replace(header, **optional_numbers(record))

    @classmethod
    def of(cls, profile: Profile) -> "Header":
        """The header of a profile that came without its journal."""
        return cls(**{field.name: getattr(profile, field.name) for field in fields(cls)})


def record_header(journal: Journal, header: Header) -> None:
    journal.append({"header": header.to_json()})


def record_observation(
    journal: Journal, observation: Observation, profiling_seconds: float = 0.0, threads: int | None = None
) -> None:
    _record(journal, [observation], profiling_seconds, threads)


def _record(
    journal: Journal, observations: Iterable[Observation], profiling_seconds: float, threads: int | None
) -> None:
    rest = {"profiling_seconds": profiling_seconds, **({} if threads is None else {"threads": threads})}
    journal.append(*({"observation": observation.to_json(), **rest} for observation in observations))


def record_profile(journal: Journal, profile: Profile) -> None:
    """What a profile on one number of threads holds, for a journal that has nothing of it."""
    record_header(journal, Header.of(profile))
    _record(journal, profile.everything, profile.profiling_seconds, profile.setup.threads)


def store(profile: Profile, path: Path, journal: Journal) -> Profile:
    """Write a profile, or as much of it as a file may hold. A journal that is nearly full begins anew from it."""
    kept = profile.within_limits()
    kept.save(path)
    if journal.filled > NEARLY_FULL:
        journal.clear()  # the next run fills it from the profile
    return kept


def header_from(journal: Journal | Path, threads: int | None = None) -> Header | None:
    """The last header, since a run that changes its yardstick writes a new one; None without a header."""
    return _header(_name(journal), _records(journal, threads))


def observations_from(journal: Journal | Path, threads: int | None = None) -> Iterator[Observation]:
    """Every observation in a journal, in order, or those on so many threads."""
    return _observations(_name(journal), _records(journal, threads))


def profiling_seconds_from(journal: Journal | Path, threads: int | None = None) -> float:
    """Seconds that were spent on profiling so far."""
    return _profiling_seconds(_name(journal), _records(journal, threads))


def profile_from(journal: Journal | Path, spaces: Iterable[str] = (), fit: Mapping[str, Any] | None = None) -> Profile:
    """The profile that a journal holds; its part that was written to last is in front."""
    name = _name(journal)
    last = header_from(journal)
    if last is None:
        raise ProfileError(f"{name} does not say on which device it was made: move it away and profile again")
    counts = {threads for record in _records(journal) if "header" in record and (threads := _threads_of(record))}
    others = (_part(journal, threads, (), {}) for threads in sorted(counts - {last.setup.threads}))
    return replace(_part(journal, last.setup.threads, spaces, fit or {}), others=tuple(others))


def _part(journal: Journal | Path, threads: int, spaces: Iterable[str], fit: Mapping[str, Any]) -> Profile:
    name, records = _name(journal), list(_records(journal, threads))
    header = _header(name, records)
    assert header is not None
    observations, other = apart(_observations(name, records))
    seconds = _profiling_seconds(name, records)
    return Profile(
        **vars(header),
        observations=observations,
        profiling_seconds=seconds,
        spaces=tuple(spaces),
        fit=fit,
        **other,
    )


def _header(name: str, records: Iterable[dict[str, Any]]) -> Header | None:
    found = None
    for record in records:
        _refuse_other_formats(name, record)
        found = record.get("header", found)
    if found is None:
        return None
    with checked(name):
        return Header.from_json(found)


def _observations(name: str, records: Iterable[dict[str, Any]]) -> Iterator[Observation]:
    table = None
    for record in records:
        _refuse_other_formats(name, record)
        if "observation" in record:
            with checked(name):
                row = record["observation"]
                table = LayerTable.from_json(row["layers"], table)
                observation = Observation.from_row(row, table)
            yield observation


def _profiling_seconds(name: str, records: Iterable[dict[str, Any]]) -> float:
    with checked(name):
        return float(max((record.get("profiling_seconds", 0.0) for record in records), default=0.0))


Apart = dict[str, Any]  # observations by their field of a profile


def apart(observations: Iterable[Observation]) -> tuple[tuple[Observation, ...], Apart]:
    """Observations that layers are fitted to, and those of users' own training."""
    every = tuple(observations)
    other: Apart = {field: tuple(o for o in every if o.purpose == purpose) for purpose, field in APART.items()}
    return tuple(o for o in every if o.purpose not in APART), other


def keep_apart(
    path: Path, seen: Sequence[Observation], patience_seconds: float = 0.0, threads: int | None = None
) -> Profile:
    """Stores observations of users' own training in a profile. Others that store at the same time lose nothing.

    They belong to its part on so many threads; without, to the one that is in front.
    """
    with _opened(journal_path(path), patience_seconds) as journal:
        known = Profile.load(path)
        if threads is not None:
            known = known.on_threads(threads) or known
        threads = known.setup.threads
        if header_from(journal, threads) is None:  # a profile that came without its journal
            record_profile(journal, known)
        _record(journal, seen, known.profiling_seconds, threads)
        more: Apart = {field: (*getattr(known, field), *found) for field, found in apart(seen)[1].items()}
        return store(replace(known, **more), path, journal)


def _opened(path: Path, patience_seconds: float) -> Journal:
    """The journal, as soon as whoever else writes to it is done."""
    deadline = time.monotonic() + patience_seconds
    while True:
        try:
            return Journal(path)
        except BusyError:
            if time.monotonic() >= deadline:
                raise


def _records(journal: Journal | Path, threads: int | None = None) -> Iterator[dict[str, Any]]:
    """All records, or those on so many threads."""
    before = None
    for record in journal.records() if isinstance(journal, Journal) else read_records(journal):
        found = _threads_of(record)
        before = found if "header" in record else before
        if threads is None or threads == (before if found is None else found):
            yield record


def _threads_of(record: dict[str, Any]) -> int | None:
    """The number of threads that a record names, by itself or in its header; None where it names none."""
    header = record.get("header")
    setup = header.get("setup") if isinstance(header, dict) else record
    threads = setup.get("threads") if isinstance(setup, dict) else None
    return threads if isinstance(threads, int) else None


def _name(journal: Journal | Path) -> str:
    return str(journal.path if isinstance(journal, Journal) else journal)


def _refuse_other_formats(name: str, record: dict[str, Any]) -> None:
    version = record["header"].get("format") if isinstance(record.get("header"), dict) else None
    if isinstance(version, int) and version > FORMAT:
        raise ProfileError(
            f"{name} was written by a newer Ampere (format {version}, this one reads up to {FORMAT}): "
            "upgrade with pip install -U ampere-energy"
        )
    if isinstance(version, int) and version < FORMAT:
        raise ProfileError(older(name, version, FORMAT))
