"""A profiling run from start to file: workers started, journal locked, loop run, profile written."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ampere.core import Measurement, Meter, TrainingSetup
from ampere.core.display import frame, html_table
from ampere.core.errors import ProfileError, UsageError
from ampere.core.measurement import clock_of
from ampere.core.units import percent
from ampere.core.windows import reading_by
from ampere.devices import Device, Worker
from ampere.devices.external_meters import asked_as
from ampere.devices.replayed import ReplayedWorker
from ampere.estimation.normalization import yardstick_alone
from ampere.meters import DEFAULT_WATTS_PER_CORE, watts_in
from ampere.profiling.strategies import find_strategy
from ampere.profiling.strategies.strategy import Collected, Goal, MeasurementContext, Progress, Strategy, Task, Trainer
from ampere.storage.journal import Journal
from ampere.storage.places import default_path, journal_path
from ampere.storage.profile import Observation, Profile, check_device
from ampere.storage.recording import (
    Apart,
    Header,
    apart,
    header_from,
    observations_from,
    profiling_seconds_from,
    record_header,
    record_observation,
    record_profile,
    store,
)

from .capabilities import built_by, check_setup
from .common_yardstick import with_common_yardstick
from .experiment import Experiment
from .meter_windows import slow, steady_power, yardstick_by_gauge
from .sources import RecordedSource, Source

# What a run's measurements stand for: what its journal says already, or what is here now.


def header_for(
    journal: Journal,
    old: Profile | None,
    fresh: Header,
    allow_other_device: bool,
    others: Iterable[Profile] = (),
) -> Header:
    """What the journal already stands for on so many threads; a new one begins with what is here now.

    `old` is the profile on as many threads, `others` are those on other numbers of them in the same file.
    """
    threads, last = fresh.setup.threads, header_from(journal)
    known = last if last is None or last.setup.threads == threads else header_from(journal, threads)
    if known is None and old is not None:
        known = last = Header.of(old)
        record_profile(journal, old)
    found = known or last or next((Header.of(other) for other in others), None)
    if found is not None:
        _refuse_another(journal, found, fresh, allow_other_device)
    if known is None:
        record_header(journal, fresh)
    return known or fresh


def _refuse_another(journal: Journal, known: Header, fresh: Header, allow_other_device: bool) -> None:
    """Raise where the journal stands for another device, setup, method or meter; threads may differ."""
    check_device(known, fresh.device, allow_other_device)
    if known.setup.family != fresh.setup.family:
        raise ProfileError(
            f"{journal.path} was made with {known.setup.family}, not {fresh.setup.family}: "
            "choose another file with --out, or the same setup"
        )
    if (known.method, known.timing) != (fresh.method, fresh.timing):
        raise ProfileError(
            f"{journal.path} was made with --method {known.method} --timing {known.timing}, which do not mix with "
            f"{fresh.method} and {fresh.timing}: choose another file with --out, or the same"
        )
    if not known.meter.counts_as(fresh.meter):
        raise ProfileError(
            f"{journal.path} counts joules by {known.meter.name} ({known.meter.scope}), not by {fresh.meter.name} "
            f"({fresh.meter.scope}): leave out --watts-per-core, set AMPERE_METER={asked_as(known.meter.name)}, or "
            "choose another file with --out"
        )


def at_typical_speed(header: Header, observations: Iterable[Observation]) -> Header:
    """The header with the yardstick's cost over all blocks instead of the first moment: every joule scales with it."""
    seconds = yardstick_alone(observations, clock_of(header.setup.threads))
    if seconds is None:
        return header
    names = ("yardstick_seconds", "yardstick_joules", "common_yardstick_seconds", "common_yardstick_joules")
    known = {name: value for name in names if (value := getattr(header, name)) is not None}
    return replace(header, **{name: value * seconds / header.yardstick_seconds for name, value in known.items()})


# A profiling run from start to file: workers started, journal locked, loop run, profile written.

YARDSTICK_SECONDS = 0.4
USUAL_SECONDS = 15.0
USUAL_COMPILING = 120.0  # with a runtime that compiles every new shape
USUAL_BLOCKS, FEW_BLOCKS = 100, 12  # with a counter whose windows decide how long a block takes, or a slow one
USUAL_AT_MOST = 1000.0  # seconds
USUAL_TIMED = 60.0  # with a slow gauge, in addition to its readings
STARTING_SHARE = 0.5  # of the seconds at most: a board that imports PyTorch for 20 s still trains
FULL = 0.95  # of what a journal may hold, from which on no more is measured
LEAST_SHARE_LEFT = 0.2  # of the budget, for a resumed run that had nearly used it up


@dataclass(frozen=True)
class ProfilingResult:
    """A profile, where it is, and how it came about."""

    profile: Profile
    path: Path
    expected_error: float | None
    thinking_seconds: float
    refused: tuple[str, ...]
    resumed: bool
    seconds: float = 0.0  # by the host's clock, from start to file

    @property
    def setup(self) -> TrainingSetup:
        return self.profile.setup

    @property
    def compile_seconds(self) -> float:
        return sum(o.measurement.compile_seconds for o in self.profile.observations)

    @property
    def measurements(self) -> dict[str, int]:
        """How many of each purpose."""
        return dict(Counter(o.purpose for o in self.profile.observations))

    def to_json(self) -> dict[str, Any]:
        profile = self.profile
        return {
            "path": str(self.path),
            "expected_error": self.expected_error,
            "seconds": self.seconds,
            "thinking_seconds": self.thinking_seconds,
            "profiling_seconds": profile.profiling_seconds,
            "profiling_joules": profile.profiling_joules,
            "points": len(profile.observations),
            "ended_by": profile.ended_by or None,
            "kinds_ended": dict(profile.ended),
            "compile_seconds": self.compile_seconds,
            "measurements": self.measurements,
            "spaces": list(profile.spaces),
            "refused": list(self.refused),
            "resumed": self.resumed,
            "method": profile.method,
            "timing": profile.timing,
            "meter": profile.meter.to_json(),
            "setup": profile.setup.to_json(),
            "threads": list(profile.threads),
            "device": profile.device_name,
        }

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each measurement."""
        return frame(self._rows())

    def _repr_html_(self) -> str:
        error = "" if self.expected_error is None else f", expected error {percent(self.expected_error)}"
        rows = [{"of": purpose, "measurements": count} for purpose, count in self.measurements.items()]
        return html_table(f"{self.path.name}: {len(self.profile.observations)} measurements{error}", rows)

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "network": o.network.name,
                "purpose": o.purpose,
                "layers": len(o.network.layers),
                "batch": o.network.batch,
                "joules": o.measurement.joules,
                "seconds": o.measurement.wall_seconds,
                "allocator": o.measurement.allocator,
            }
            for o in self.profile.observations
        ]


def usual_seconds(meter: Meter, compiles: bool = False, steady: bool = False) -> float:
    """How long to profile where nobody says it."""
    least = USUAL_COMPILING if compiles else USUAL_SECONDS
    if steady:
        return USUAL_TIMED + (FEW_BLOCKS + 1) * reading_by(meter.update_seconds).whole
    blocks = FEW_BLOCKS if slow(meter) else USUAL_BLOCKS
    return min(least + (blocks + 1) * 2 * meter.window_seconds, USUAL_AT_MOST)


class Starting:
    """A device whose worker starts in the background: the first block waits for it, everything else goes on."""

    def __init__(self, device: Worker, setup: TrainingSetup, pool: ThreadPoolExecutor) -> None:
        self._device = device
        self._started = pool.submit(device.yardstick, 0.05, setup.threads, setup.runtime, count=False)

    def block(self, workload: Mapping[str, Any], setup: TrainingSetup, **options: Any) -> Measurement:
        self._started.result()
        return self._device.block(workload, setup, **options)


class Earlier(NamedTuple):
    """What the journal holds of runs before this one."""

    measured: tuple[Observation, ...]
    other: Apart  # of users' own training
    seconds: float
    unfinished: float  # of these seconds, those of a run that did not come to its end

    @classmethod
    def of(cls, journal: Journal, threads: int, old: Profile | None) -> Earlier:
        seconds = profiling_seconds_from(journal, threads)
        return cls(
            *apart(observations_from(journal, threads)),
            seconds,
            max(0.0, seconds - (old.profiling_seconds if old else 0)),
        )

    def seconds_left(self, goal: Goal) -> float:
        """A run that did not end goes on with the rest of its seconds."""
        return max(goal.seconds - self.unfinished, LEAST_SHARE_LEFT * goal.seconds) if self.unfinished else goal.seconds


def make_profile(
    source: Callable[[], Source],
    setup: TrainingSetup,
    goal: Goal,
    device: Device,
    *,
    path: Path | None = None,
    watts_per_core: float | None = None,
    seed: int = 0,
    allow_other_device: bool = False,
    method: str = "additive",
    timing: str = "yardstick",
    iterations: int | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
    strategy: Strategy | None = None,
    sources: tuple[Profile, ...] = (),
) -> ProfilingResult:
    """Profiles a source of networks on a device, and writes the profile to `path`, or to the device's usual file.

    `source` is called while the first worker starts: torch is imported and the model traced meanwhile. `strategy`
    replaces the method's own by one with other settings. `sources` are profiles of devices like this one, which its
    estimates start from.
    """
    began = started = time.monotonic()
    strategy = strategy or find_strategy(method, timing)
    _check_asked(strategy, method, goal, iterations)
    runtime = check_setup(device, setup)
    if strategy.stages and not runtime.stages:
        raise UsageError(f"--method {method} needs --runtime torch: {setup.runtime} runs a step as a whole")
    path = path or default_path(device.identity, setup, method, timing)
    old, others = _stored(path, setup.threads)
    _refuse_second_recording(path, old)
    watts = watts_per_core or _known_watts(path, old or next(iter(others), None))
    meter = device.meter_at(watts)
    with (
        Journal(journal_path(path)) as journal,
        device.fresh(watts, seed) as workers,
        ThreadPoolExecutor(2) as background,
    ):
        old, others = _stored(path, setup.threads)  # again: another run may have ended before the lock
        quiet = workers["tuned"]
        clock = time.monotonic if device.is_local else quiet.clock
        began = began if device.is_local else clock()
        steady = steady_power(meter, method, timing)
        how = setup.threads, setup.runtime, steady
        whole = yardstick_by_gauge(goal.seconds) if steady else YARDSTICK_SECONDS
        timed = background.submit(quiet.yardstick, whole, *how)
        asked = built_by(device, setup.runtime, source())
        if isinstance(quiet, ReplayedWorker):
            asked = RecordedSource(asked.name, quiet)
        nominal = timed.result()
        counted = nominal.joules, nominal.watts_idle
        fresh = Header(device.identity, setup, meter, nominal.seconds(setup.threads), method, timing, *counted)
        header = header_for(journal, old, fresh, allow_other_device, others)
        paused = clock()
        complete = with_common_yardstick(header, quiet, device, watts, runtime)
        began += clock() - paused  # the seconds asked for are for what is profiled
        if complete != header:
            record_header(journal, header := complete)
        trainers: dict[str, Trainer] = {"tuned": quiet}
        if "system" in strategy.allocators and "system" in workers and "system" in device.allocators:
            trainers["system"] = Starting(workers["system"], setup, background)
        earlier = Earlier.of(journal, setup.threads, old)
        left = earlier.seconds_left(goal)
        context = MeasurementContext(
            asked,
            trainers,
            setup,
            header.meter,
            header.yardstick_seconds,
            lambda seen: record_observation(journal, seen, earlier.seconds + clock() - began, setup.threads),
            timing,
            header.yardstick_joules,
            clock,
            device.vector_width,
            runtime.compiles,
            runtime.one_by_one,
            lambda experiment: _offers(workers, experiment),
            yardstick_now=lambda: quiet.yardstick(YARDSTICK_SECONDS, *how).joules,
            iterations=iterations,
            full=lambda: journal.filled > FULL,
        )
        began = max(began, clock() - STARTING_SHARE * left)
        known, fit = earlier.measured, old.fit if old else {}
        collected = strategy.collect(
            context, Task(Goal(left, goal.target, goal.samples), began, on_progress, known, fit, seed + len(known))
        )
        if (typical := at_typical_speed(header, collected.observations)) != header:
            record_header(journal, header := typical)
        profile = _profile(header, collected, old, asked.name, earlier.seconds + clock() - began, earlier.other)
        profile = replace(profile, others=others, sources=sources or (old.sources if old else ()))
        profile = store(profile, path, journal)
    return ProfilingResult(
        profile,
        path,
        collected.expected_error,
        collected.thinking_seconds,
        collected.refused,
        resumed=earlier.unfinished > 0,
        seconds=time.monotonic() - started,
    )


def _stored(path: Path, threads: int) -> tuple[Profile | None, tuple[Profile, ...]]:
    """What a file holds on so many threads, and on other numbers of them."""
    parts = Profile.load(path).parts if path.exists() else ()
    own = next((part for part in parts if part.setup.threads == threads), None)
    return own, tuple(part for part in parts if part is not own)


def _check_asked(strategy: Strategy, method: str, goal: Goal, iterations: int | None) -> None:
    if goal.own_end and not strategy.ends_itself:
        raise UsageError(f"--method {method} has no end of its own: give --seconds, or choose --method sequential")
    if iterations is not None and not strategy.any_iterations:
        raise UsageError(
            f"--method {method} chooses the iterations of a measurement itself: "
            "leave out --iterations-per-measurement, or choose --method sequential or networks"
        )


def _offers(workers: Mapping[str, Worker], experiment: Experiment) -> bool:
    """Whether a device can train it: a replayed one only what it has not given yet."""
    worker = workers[experiment.allocator]
    return not isinstance(worker, ReplayedWorker) or worker.left(experiment.network, experiment.stage) > 0


def _refuse_second_recording(path: Path, old: Profile | None) -> None:
    """A log that is attached later is of one run: windows of two would be looked for in the wrong one."""
    journal = journal_path(path)
    known = old.observations if old else observations_from(journal) if journal.exists() else ()
    if any(window.began is not None for o in known for window in o.measurement.target):
        raise ProfileError(
            f"{path if old else journal} belongs to a recording of a meter that is over: attach that if it is not yet, "
            "and choose another file with --out for another run"
        )


def _known_watts(path: Path, old: Profile | None) -> float:
    """What is known already was modelled with so many; joules of two kinds in one file would be of no kind."""
    known = old or (header_from(journal_path(path)) if journal_path(path).exists() else None)
    return (watts_in(known.meter.scope) if known else None) or DEFAULT_WATTS_PER_CORE


def _profile(
    header: Header,
    collected: Collected,
    old: Profile | None,
    name: str,
    seconds: float,
    other: Apart,
) -> Profile:
    spaces = tuple(dict.fromkeys([*(old.spaces if old else ()), name]))
    return Profile(
        **vars(header),
        observations=collected.observations,
        profiling_seconds=seconds,
        spaces=spaces,
        fit=collected.model.hyper.to_json() if collected.model else collected.fit,
        joules_fit=collected.joules_model.hyper.to_json() if collected.joules_model else {},
        **other,
        ended=collected.ended,
    )
