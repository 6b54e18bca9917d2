"""A meter's log, exported after the run, attached to the profile that was made beside it.

profile: windows by the device's clock  \
                                         patterns found -> joules of every window -> measured joules, learnt anew
log: rows by the meter's clock          /
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from ampere.core import Measurement, Meter
from ampere.core.errors import MeterError, ProfileError
from ampere.core.measurement import LOG, Windows
from ampere.devices.external_meters import LATER, meter_for
from ampere.devices.external_meters.alignment import Alignment, aligned, watts_at_rest
from ampere.devices.external_meters.log import Log, LogSpec, cpu_watts
from ampere.estimation.hyperparameters import Hyperparameters
from ampere.storage.journal import Journal
from ampere.storage.places import journal_path
from ampere.storage.profile import Profile

from .loop import joules_learnt
from .observing import timed_only

LEAST_COVERED = 0.5  # of the blocks: below, a profile would be mostly guessed
MUCH_SLOWER = 1.5  # rows further apart than windows were made for
ADDITIVE = "additive"


@dataclass(frozen=True)
class Attached:
    profile: Profile
    alignment: Alignment
    rows: int
    covered: int  # blocks whose windows the log has
    blocks: int


@dataclass(frozen=True)
class _Read:
    """What the log tells of a block: joules a CPU second."""

    watts: float
    yardstick_watts: float


def attach(spec: LogSpec, path: Path, again: bool = False) -> Attached:
    """Rewrites the profile, with joules that were measured; it is left as it is where anything is refused."""
    if not spec.path.is_file():
        raise MeterError(f"{spec.path} is not there: export the meter's recording, and name that file")
    with Journal(_journal_of(path)):
        profile = Profile.load(path)
        _check(profile, path, again)
        log = Log(spec)
        rows = log.advance()
        every = _windows(profile)
        patterns = sorted(w.pattern for w in every if w.pattern)
        if not patterns:
            raise ProfileError(f"{path} has no pattern to look for: profile again with --meter {LATER}")
        _check_rows(log, profile)
        alignment = aligned(log, patterns)
        read = {windows: found for windows in every if (found := _read(log, alignment, windows))}
        if len(read) < LEAST_COVERED * len(every):
            raise MeterError(
                f"{spec.path} has rows for only {len(read)} of {len(every)} blocks: export the whole recording"
            )
        measured = _measured(profile, read, _meter(log, profile), watts_at_rest(log, alignment, patterns))
        measured.save(path)
    journal_path(path).unlink(missing_ok=True)  # it tells modelled joules; the next run begins one from the profile
    return Attached(measured, alignment, rows, len(read), len(every))


def _journal_of(path: Path) -> Path:
    """Held meanwhile, so that nobody extends the profile; not made beside a file that is not there."""
    if not path.exists():
        Profile.load(path)  # says so, and what it may be called
    return journal_path(path)


def _check(profile: Profile, path: Path, again: bool) -> None:
    if not _windows(profile):
        raise ProfileError(f"{path} was not made for a log that comes later: profile with --meter {LATER}")
    if profile.meter.name != LATER and not again:
        raise ProfileError(f"{path} has its log already ({profile.meter.scope}): insist with --again")


def _check_rows(log: Log, profile: Profile) -> None:
    made_for = profile.meter.update_seconds
    if log.interval is None or log.interval > MUCH_SLOWER * made_for:
        told = "too few rows" if log.interval is None else f"a row every {log.interval:.3g} s"
        raise MeterError(
            f"{log.spec.path} has {told}, and the profile was made for one every {made_for:.3g} s: export all of them, "
            f"or profile again with --meter {meter_for(log.interval or made_for)}"
        )


def _windows(profile: Profile) -> list[Windows]:
    return [windows for o in profile.observations for windows in o.measurement.windows]


def _read(log: Log, clocks: Alignment, windows: Windows) -> _Read | None:
    """None where the log does not cover them."""
    spans = (*windows.target, *windows.yardstick)
    if not all(log.covers(clocks.in_log(began), clocks.in_log(ended)) for began, ended, _ in spans):
        return None
    return _Read(cpu_watts(log, clocks, windows.target), cpu_watts(log, clocks, windows.yardstick))


def _meter(log: Log, profile: Profile) -> Meter:
    scope = f"all that the meter feeds, {log.spec.path.name}, a row every {log.interval:.3g} s, attached after the run"
    made_for = profile.meter
    return Meter(LOG, True, scope, window_seconds=made_for.window_seconds, update_seconds=made_for.update_seconds)


def _measured(profile: Profile, read: dict[Windows, _Read], meter: Meter, watts_idle: float | None) -> Profile:
    unit = median(found.yardstick_watts for found in read.values()) * profile.yardstick_seconds
    observations = tuple(
        replace(o, measurement=_with_joules(o.measurement, read, meter, profile.yardstick_seconds, unit))
        for o in profile.observations
    )
    hyper = Hyperparameters.from_json(dict(profile.fit)) if profile.fit else Hyperparameters()
    learnt = joules_learnt(observations, hyper, unit).hyper.to_json() if profile.method == ADDITIVE else {}
    return replace(
        profile,
        meter=meter,
        observations=observations,
        yardstick_joules=unit,
        watts_idle=watts_idle,
        joules_fit=learnt,
    )


def _with_joules(
    m: Measurement, read: dict[Windows, _Read], meter: Meter, yardstick_seconds: float, unit: float
) -> Measurement:
    """Told in joules of the yardstick beside them, as seconds are; at its power where the log has nothing of it."""
    rounds = tuple(_joules(w, read[w], unit) for w in m.windows if w in read)
    if rounds:
        return replace(m, joules=median(rounds), joules_rounds=rounds, meter=meter)
    joules = m.cpu_seconds * unit / yardstick_seconds
    return replace(m, joules=joules, joules_rounds=(), meter=timed_only(meter))


def _joules(windows: Windows, read: _Read, unit: float) -> float:
    target, beside = read.watts * windows.cpu_seconds, read.yardstick_watts * windows.yardstick_seconds
    return target / beside * unit
