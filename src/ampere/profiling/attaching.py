"""Attaching: the log of a meter, exported after a run, gives the profile of that run its joules.

profile: windows by the device's clock  \
                                         patterns found -> joules of every window -> a new fit of measured joules
log: rows by the meter's clock          /
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from ampere.core import Measurement, Meter
from ampere.core.errors import MeterError, ProfileError
from ampere.core.measurement import LOG, Window, joules_per_iteration, seconds_per_iteration
from ampere.devices.external_meters import DEFERRED, meter_for
from ampere.devices.external_meters.alignment import Alignment, aligned, watts_at_rest
from ampere.devices.external_meters.log import Log, LogSpec, busy_watts, span
from ampere.estimation.hyperparameters import Hyperparameters
from ampere.estimation.normalization import costs_of, reference_of
from ampere.storage.journal import Journal
from ampere.storage.places import journal_path
from ampere.storage.profile import Profile

from .loop import joules_learnt

LEAST_COVERED = 0.5  # of the blocks: with less a profile would be mostly modelled
MUCH_SLOWER = 1.5  # ratio of the log's interval to the one that windows were made for
ADDITIVE = "additive"


@dataclass(frozen=True)
class Attached:
    """A profile with measured joules, and how well the log fits it."""

    profile: Profile
    alignment: Alignment
    rows: int
    covered: int  # blocks whose windows the log covers
    blocks: int


def attach(spec: LogSpec, path: Path, again: bool = False) -> Attached:
    """Writes the log's joules into the profile at `path`. On any error the profile stays as it is.

    `again` allows to replace a log that was attached before.
    """
    if not spec.path.is_file():
        raise MeterError(f"{spec.path} does not exist: export the meter's recording and pass that file")
    with Journal(_journal_of(path)) as journal:
        profile = Profile.load(path)
        _check(profile, path, again)
        log = Log(spec)
        rows = log.advance()
        every = [o.measurement for o in profile.observations if deferred(o.measurement)]
        patterns = sorted(m.pattern for m in every if m.pattern)
        if not patterns:
            raise ProfileError(f"{path} has no pattern to find in a log: profile again with --meter {DEFERRED}")
        _check_rows(log, profile)
        alignment = aligned(log, patterns)
        covered = sum(_covered(log, alignment, m) for m in every)
        if covered < LEAST_COVERED * len(every):
            raise MeterError(
                f"{spec.path} has rows for only {covered} of {len(every)} blocks: export the whole recording"
            )
        measured = _measured(profile, log, alignment, watts_at_rest(log, alignment, patterns))
        measured.save(path)
        journal.clear()  # its joules are modelled; the next run fills it from the profile
    return Attached(measured, alignment, rows, covered, len(every))


def _journal_of(path: Path) -> Path:
    """The journal to lock, so that no other run extends the profile. It is not created for a missing profile."""
    if not path.exists():
        Profile.load(path)  # raises, and suggests similar names
    return journal_path(path)


def _check(profile: Profile, path: Path, again: bool) -> None:
    if not any(deferred(o.measurement) for o in profile.observations):
        raise ProfileError(f"{path} was not made for a log that is attached later: profile with --meter {DEFERRED}")
    if profile.meter.name != DEFERRED and not again:
        raise ProfileError(f"{path} has its log already ({profile.meter.scope}): replace it with --again")


def _check_rows(log: Log, profile: Profile) -> None:
    made_for = profile.meter.update_seconds
    if log.interval is None or log.interval > MUCH_SLOWER * made_for:
        found = "too few rows" if log.interval is None else f"a row every {log.interval:.3g} s"
        raise MeterError(
            f"{log.spec.path} has {found}, but the profile was made for one every {made_for:.3g} s: export all rows, "
            f"or profile again with --meter {meter_for(log.interval or made_for)}"
        )


def deferred(measurement: Measurement) -> bool:
    """Whether its windows have start times, for a log that is read later."""
    return any(window.began is not None for window in measurement.target)


def _covered(log: Log, clocks: Alignment, m: Measurement) -> bool:
    """Whether the log has rows for all windows of a measurement."""
    spans = [span(window) for window in (*m.target, *m.yardstick)]
    return all(log.covers(clocks.in_log(began), clocks.in_log(ended)) for began, ended in spans)


def _meter(log: Log, profile: Profile) -> Meter:
    scope = f"all that the meter feeds, {log.spec.path.name}, a row every {log.interval:.3g} s, attached after the run"
    made_for = profile.meter
    return Meter(LOG, True, scope, window_seconds=made_for.window_seconds, update_seconds=made_for.update_seconds)


def _measured(profile: Profile, log: Log, clocks: Alignment, watts_idle: float | None) -> Profile:
    """The profile with the log's joules, fitted to them."""
    meter = _meter(log, profile)
    observations = tuple(replace(o, measurement=_read(o.measurement, log, clocks, meter)) for o in profile.observations)
    clock = reference_of(profile).clock
    paired = [(o.measurement.yardstick, joules_per_iteration(o.measurement.yardstick, clock)) for o in observations]
    watts = [joules / seconds_per_iteration(yardstick, clock) for yardstick, joules in paired if joules]
    read = replace(
        profile,
        meter=meter,
        observations=observations,
        yardstick_joules=median(watts) * profile.yardstick_seconds,
        watts_idle=watts_idle,
    )
    hyper = Hyperparameters.from_json(dict(profile.fit)) if profile.fit else Hyperparameters()
    if profile.method != ADDITIVE:
        return replace(read, joules_fit={})
    learnt = joules_learnt(costs_of(read), reference_of(read), hyper).hyper.to_json()
    return replace(read, joules_fit=learnt)


def _read(m: Measurement, log: Log, clocks: Alignment, meter: Meter) -> Measurement:
    """A measurement with the log's joules; with none where the log does not cover its windows."""
    if not deferred(m) or not _covered(log, clocks, m):
        return replace(m, target=_at(None, m.target), yardstick=_at(None, m.yardstick), meter=meter)
    target, yardstick = (busy_watts(log, clocks, windows) for windows in (m.target, m.yardstick))
    return replace(m, target=_at(target, m.target), yardstick=_at(yardstick, m.yardstick), meter=meter)


def _at(watts: float | None, windows: tuple[Window, ...]) -> tuple[Window, ...]:
    """Windows with the joules of this power."""
    return tuple(w._replace(joules=None if watts is None else watts * w.busy_seconds) for w in windows)
