"""A profiling run from start to file: devices opened, journal locked, loop run, profile written."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ampere.core import Meter, TrainingSetup
from ampere.core.errors import ProfileError, UsageError
from ampere.core.windows import reading_by
from ampere.devices import Block, Worker, describe, opened
from ampere.devices.external_meters import asked_as
from ampere.devices.opening import LOCAL
from ampere.devices.replayed import ReplayedWorker
from ampere.meters import DEFAULT_WATTS_PER_CORE, watts_in
from ampere.profiling.strategies import find_strategy
from ampere.profiling.strategies.strategy import Collected, Goal, MeasurementContext, Progress, Task, Trainer
from ampere.storage.journal import Journal
from ampere.storage.places import default_path, journal_path
from ampere.storage.profile import Observation, Profile, check_device
from ampere.storage.recording import (
    Header,
    apart,
    header_from,
    observations_from,
    profiling_seconds_from,
    record_header,
    record_observation,
)

from .capabilities import built_by, check_setup
from .common_yardstick import beside_torch
from .experiment import Experiment
from .meter_windows import slow, steady_power, yardstick_by_gauge
from .observing import merged
from .sources import RecordedSource, Source

# What a run's measurements stand for: what its journal says already, or what is here now.


def header_for(journal: Journal, old: Profile | None, fresh: Header, foreign: bool) -> Header:
    """What the journal already stands for; a new one begins with what is here now."""
    known = header_from(journal)
    if known is None and old is not None:
        known = Header.of(old)
        record_header(journal, known)
        for observation in (*old.observations, *old.runs):
            record_observation(journal, observation, old.profiling_seconds)
    if known is None:
        record_header(journal, fresh)
        return fresh
    check_device(known, fresh.device, foreign)
    if known.setup != fresh.setup:
        raise ProfileError(
            f"{journal.path} was made with {known.setup.name}, not {fresh.setup.name}: "
            "choose another file with --out, or the same setup"
        )
    if (known.method, known.protocol) != (fresh.method, fresh.protocol):
        raise ProfileError(
            f"{journal.path} was made with --method {known.method} --protocol {known.protocol}, which do not mix with "
            f"{fresh.method} and {fresh.protocol}: choose another file with --out, or the same"
        )
    if not known.meter.counts_as(fresh.meter):
        raise ProfileError(
            f"{journal.path} counts joules by {known.meter.name} ({known.meter.scope}), not by {fresh.meter.name} "
            f"({fresh.meter.scope}): leave out --watts-per-core, set AMPERE_METER={asked_as(known.meter.name)}, or "
            "choose another file with --out"
        )
    return known


# A profiling run from start to file: devices opened, journal locked, loop run, profile written.

YARDSTICK_SECONDS = 0.4
USUAL_SECONDS = 15.0
USUAL_COMPILING = 120.0  # with a runtime that compiles every new shape
USUAL_BLOCKS, FEW_BLOCKS = 100, 12  # with a counter whose windows decide how long a block takes, or a slow one
USUAL_AT_MOST = 1000.0  # seconds
USUAL_TIMED = 60.0  # with a slow gauge, besides its readings
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

    def block(self, subject: Mapping[str, Any], setup: TrainingSetup, **options: Any) -> Block:
        self._started.result()
        return self._device.block(subject, setup, **options)


def make_profile(
    source: Callable[[], Source],
    setup: TrainingSetup,
    goal: Goal,
    watts_per_core: float | None = None,
    path: Path | None = None,
    seed: int = 0,
    foreign: bool = False,
    on_progress: Callable[[Progress], None] = lambda _: None,
    method: str = "additive",
    protocol: str = "yardstick",
    on: str = LOCAL,
) -> ProfilingResult:
    """`on` names the device, as in `--device`."""
    began = time.monotonic()
    campaign = find_strategy(method, protocol)
    runtime = check_setup(on, setup)
    if campaign.stages and not runtime.stages:
        raise UsageError(f"--method {method} needs --runtime torch: {setup.runtime} runs a step as a whole")
    device = describe(on, DEFAULT_WATTS_PER_CORE).identity
    path = path or default_path(device, setup, method, protocol)
    old = Profile.load(path) if path.exists() else None
    _refuse_second_recording(path, old)
    watts = watts_per_core or _known_watts(path, old)
    described = describe(on, watts)
    with (
        Journal(journal_path(path)) as journal,
        opened(on, watts, seed) as devices,
        ThreadPoolExecutor(2) as background,
    ):
        clock = time.monotonic if on == LOCAL else devices["tuned"].clock
        began = began if on == LOCAL else clock()
        steady = steady_power(described.meter, method, protocol)
        how = setup.threads, setup.runtime, steady
        whole = yardstick_by_gauge(goal.seconds) if steady else YARDSTICK_SECONDS
        quiet = background.submit(devices["tuned"].yardstick, whole, *how)
        asked = built_by(on, setup.runtime, source())  # torch is imported and the model traced while the worker starts
        if isinstance(replaying := devices["tuned"], ReplayedWorker):
            asked = RecordedSource(asked.name, replaying)
        nominal = quiet.result()
        counted = nominal.joules, nominal.watts_idle
        fresh = Header(device, setup, described.meter, nominal.cpu_seconds, method, protocol, *counted)
        header = header_for(journal, old, fresh, foreign)
        paused = clock()
        timed = beside_torch(header, devices["tuned"], on, watts, described, runtime)
        began += clock() - paused  # the seconds asked for are for what is profiled
        if timed != header:
            record_header(journal, header := timed)
        trainers: dict[str, Trainer] = {"tuned": devices["tuned"]}
        if "system" in campaign.allocators and "system" in devices:
            trainers["system"] = Starting(devices["system"], setup, background)
        measured, runs = apart(observations_from(journal))
        known = merged(measured)
        spent = profiling_seconds_from(journal)
        unfinished = max(0.0, spent - (old.profiling_seconds if old else 0.0))
        left = max(goal.seconds - unfinished, LEAST_SHARE_LEFT * goal.seconds) if unfinished else goal.seconds
        bench = MeasurementContext(
            asked,
            trainers,
            setup,
            header.meter,
            header.yardstick_seconds,
            lambda seen: record_observation(journal, seen, spent + clock() - began),
            protocol,
            header.yardstick_joules,
            clock,
            described.vector_width,
            runtime.compiles,
            runtime.one_by_one,
            lambda experiment: _offers(devices, experiment),
            yardstick_now=lambda: devices["tuned"].yardstick(YARDSTICK_SECONDS, *how).joules,
        )
        fit = old.fit if old else {}
        task = Task(Goal(left, goal.target), began, on_progress, known, fit, seed + len(known))
        gathered = campaign.gather(bench, task)
        profile = _profile(header, gathered, old, asked.name, spent + clock() - began, runs)
        profile.save(path)
    return ProfilingResult(
        profile, path, gathered.expected_error, gathered.thinking_seconds, gathered.refused, resumed=unfinished > 0
    )


def _offers(devices: Mapping[str, Worker], experiment: Experiment) -> bool:
    """Whether a device can train it: a replayed one only what it has not given yet."""
    device = devices[experiment.allocator]
    return not isinstance(device, ReplayedWorker) or device.left(experiment.network, experiment.stage) > 0


def _refuse_second_recording(path: Path, old: Profile | None) -> None:
    """A log that is attached later is of one run: windows of two would be looked for in the wrong one."""
    journal = journal_path(path)
    known = old.observations if old else observations_from(journal) if journal.exists() else ()
    if any(o.measurement.windows for o in known):
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
    gathered: Collected,
    old: Profile | None,
    name: str,
    seconds: float,
    runs: tuple[Observation, ...],
) -> Profile:
    spaces = tuple(dict.fromkeys([*(old.spaces if old else ()), name]))
    return Profile(
        **vars(header),
        observations=gathered.observations,
        profiling_seconds=seconds,
        spaces=spaces,
        fit=gathered.fit,
        joules_fit=gathered.joules_fit,
        runs=runs,
    )
