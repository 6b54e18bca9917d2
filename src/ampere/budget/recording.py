"""What an iteration of a run cost, stored in the journal of a profile: the next fit learns from real runs.

A run is not paired with a yardstick, so it also shows how the device has changed since it was profiled (drift.py).
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ampere.core import Measurement, Meter, Network
from ampere.core.errors import ProfileError, StorageError, UsageError
from ampere.core.measurement import Window
from ampere.core.units import counted
from ampere.devices import Device, allocator_on
from ampere.estimation.estimator import watts_of
from ampere.meters import watts_in
from ampere.storage.files import write_whole
from ampere.storage.places import default_path
from ampere.storage.profile import Observation, Profile, check_device
from ampere.storage.recording import keep_apart

PATIENCE_SECONDS = 60.0  # with another process that writes to the same profile
KEPT = 4096  # readings, the newest
LEAST_STEPS = 20  # fewer say more about starting than about training
ROUNDS = 8  # that readings are summed up to
NOTE_SECONDS = 1.0  # between two notes of how far a run is
FORGOTTEN_SECONDS = 86_400.0  # a note of a process that was killed


class Reading(NamedTuple):
    joules: float
    seconds: float
    steps: int


class RunRecorder:
    """Checks at the start that a run can be recorded, and records it at the end."""

    def __init__(self, network: Network | None, profile: Path | str | None, meter: Meter) -> None:
        if network is None:
            raise UsageError("record=True stores what a network cost: give network=ampere.trace(model, inputs) too")
        self._threads: int | None = None  # the profile's own
        if profile:
            self.path = Path(profile)
        else:
            self.path, self._threads = _usual_place()
        if not self.path.exists():
            raise ProfileError(
                f"{self.path} does not exist, so the run cannot be recorded: make it with `ampere profile MODEL` first"
            )
        known = self._profile()
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
        self._note = running_notes(self.path) / f"{os.getpid()}.json"
        self._noted = 0.0

    def _profile(self) -> Profile:
        profile = Profile.load(self.path)
        found = profile if self._threads is None else profile.on_threads(self._threads)
        if found is None:
            raise ProfileError(
                f"{self.path} was not profiled on {counted(self._threads or 1, 'thread')}, so the run cannot be "
                f"recorded: make it with `ampere profile MODEL --threads {self._threads}` first"
            )
        return found

    def note(self, progress: Callable[[], Mapping[str, Any]]) -> None:
        """Writes how far the run is, for `ampere serve`: now and then, and without waiting for the disk."""
        if time.monotonic() - self._noted < NOTE_SECONDS:
            return
        self._noted = time.monotonic()
        named = {"network": self.network.name, "profile": self.path.stem, "unix_time": time.time()}
        with suppress(StorageError):
            write_whole(self._note, json.dumps({**named, **progress()}), wait=False)

    def end_note(self) -> None:
        """The run is over; notes of processes that were killed go, too."""
        for path in running_notes(self.path).glob("*.json"):
            with suppress(OSError):
                if path == self._note or time.time() - path.stat().st_mtime > FORGOTTEN_SECONDS:
                    path.unlink()

    def keep(self, meter_problem: str = "") -> bool:
        """Stores the run; False where it was too short. Others that store theirs at the same time lose nothing."""
        rounds = summed_up([r._replace(joules=r.joules * self._watts_share) for r in self.readings])
        if not rounds:
            return False
        measured = replace(_measured(rounds, self._profile()), flags=("meter_failed",) if meter_problem else ())
        seen = [Observation(self.network, measured, "run")]
        keep_apart(self.path, seen, PATIENCE_SECONDS, self._threads)
        return True


def running_notes(profile: Path) -> Path:
    """Where processes note how far their runs are, one file each, beside the profiles."""
    return profile.parent / "running"


def _usual_place() -> tuple[Path, int]:
    """This device's own profile, and the threads of a run that does not name them."""
    with Device() as device:
        setup = device.setup()
        return default_path(device.identity, setup), setup.threads


def _this_device() -> Mapping[str, Any]:
    with Device() as device:
        return device.identity


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
    """A plain loop whose windows are the rounds; where joules are modelled, its time is what they were made of.

    With one thread that is busy time. With several it is the wall time at the usual power, without waiting for data.
    """
    watts = None if profile.yardstick_joules is not None else watts_of(profile)
    windows = [_window(r, r.joules / watts if watts else r.seconds, profile.setup.threads) for r in rounds]
    return Measurement(
        target=tuple(windows),
        yardstick=(),
        meter=profile.meter,
        allocator=allocator_on(profile.device, "system"),
        conditions={"unix_time": time.time()},
    )


def _window(reading: Reading, busy_seconds: float, threads: int) -> Window:
    wall = reading.seconds if threads == 1 else busy_seconds
    return Window(reading.steps, wall, busy_seconds, reading.joules)
