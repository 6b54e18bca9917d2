"""What an iteration of a run cost, stored in the journal of a profile: the next fit learns from real runs.

A run is not paired with a yardstick, so it also shows how the device has changed since it was profiled (drift.py).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ampere.core import Measurement, Meter, Network, TrainingSetup
from ampere.core.errors import BusyError, ProfileError, UsageError
from ampere.core.measurement import Window
from ampere.devices import Device, allocator_on
from ampere.estimation.estimate import watts_of
from ampere.meters import watts_in
from ampere.storage.journal import Journal
from ampere.storage.places import default_path, journal_path
from ampere.storage.profile import Observation, Profile, check_device
from ampere.storage.recording import Header, header_from, record_header, record_observation

PATIENCE_SECONDS = 60.0  # with another process that writes to the same profile
KEPT = 4096  # readings, the newest
LEAST_STEPS = 20  # fewer say more about starting than about training
ROUNDS = 8  # that readings are summed up to


class Reading(NamedTuple):
    joules: float
    seconds: float
    steps: int


class RunRecorder:
    """Checks at the start that a run can be recorded, and records it at the end."""

    def __init__(self, network: Network | None, profile: Path | str | None, meter: Meter) -> None:
        if network is None:
            raise UsageError("record=True stores what a network cost: give network=ampere.trace(model, inputs) too")
        self.path = Path(profile) if profile else default_path(_this_device(), TrainingSetup())
        if not self.path.exists():
            raise ProfileError(
                f"{self.path} does not exist, so the run cannot be recorded: make it with `ampere profile MODEL` first"
            )
        known = Profile.load(self.path)
        if not known.observations:
            raise ProfileError(f"{self.path} holds no measurement: profile again, for longer")
        if not known.meter.simulated:
            check_device(known, _this_device())
        run_watts, own_watts = watts_in(meter.scope), watts_in(known.meter.scope)
        self._watts_share = own_watts / run_watts if run_watts and own_watts else 1.0
        if meter.name != known.meter.name or (meter.scope != known.meter.scope and not (run_watts and own_watts)):
            raise ProfileError(
                f"{self.path} counts joules by {known.meter.name} ({known.meter.scope}), this run by {meter.name} "
                f"({meter.scope}): choose the same meter, or leave out record=True"
            )
        self.network, self.readings = network, deque[Reading](maxlen=KEPT)

    def keep(self, meter_problem: str = "") -> bool:
        """Stores the run; False where it was too short. Others that store theirs at the same time lose nothing."""
        rounds = summed_up([r._replace(joules=r.joules * self._watts_share) for r in self.readings])
        if not rounds:
            return False
        with _opened(journal_path(self.path)) as journal:
            known = Profile.load(self.path)
            measured = replace(_measured(rounds, known), flags=("meter_failed",) if meter_problem else ())
            _begin(journal, known)
            run = Observation(self.network, measured, "run")
            record_observation(journal, run, known.profiling_seconds)
            replace(known, runs=(*known.runs, run)).save(self.path)
        return True


def _this_device() -> Mapping[str, Any]:
    with Device() as device:
        return device.identity


def _opened(path: Path) -> Journal:
    """The journal, as soon as whoever else writes to it is done."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return Journal(path)
        except BusyError:
            if time.monotonic() > deadline:
                raise


def summed_up(readings: Sequence[Reading]) -> list[Reading]:
    """A few rounds of about the same number of steps; none where the run was too short."""
    steps = sum(r.steps for r in readings)
    if steps < LEAST_STEPS:
        return []
    rounds, part = [], Reading(0.0, 0.0, 0)
    for reading in readings:
        part = Reading(part.joules + reading.joules, part.seconds + reading.seconds, part.steps + reading.steps)
        if part.steps * ROUNDS >= steps and part.joules > 0:
            rounds.append(part)
            part = Reading(0.0, 0.0, 0)
    return rounds


def _measured(rounds: Sequence[Reading], profile: Profile) -> Measurement:
    """A plain loop whose windows are the rounds; where joules are modelled, its busy time is what they were made of."""
    watts = None if profile.yardstick_joules is not None else watts_of(profile)
    windows = [Window(r.steps, r.seconds, r.joules / watts if watts else r.seconds, r.joules) for r in rounds]
    return Measurement(
        target=tuple(windows),
        yardstick=(),
        meter=profile.meter,
        allocator=allocator_on(profile.device, "system"),
        conditions={"unix_time": time.time()},
    )


def _begin(journal: Journal, known: Profile) -> None:
    """Begins the journal of a profile that has none."""
    if header_from(journal) is not None:
        return
    record_header(journal, Header.of(known))
    for observation in (*known.observations, *known.runs):
        record_observation(journal, observation, known.profiling_seconds)
