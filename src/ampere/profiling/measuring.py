"""Training a model itself: the truth that estimates are held against.

    one round, a process of its own:   warm up | yardstick | steps | yardstick | steps | ... | yardstick

Rounds differ because processes differ (where memory lies, what the allocator does), so there are several.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ampere.devices import LocalDevice
from ampere.errors import DeviceError
from ampere.network import Measurement, Meter, TrainingSetup
from ampere.profiles.profile import Observation, Profile
from ampere.yardstick import in_reference, sharing_of

from .experiment import Experiment
from .merging import merged
from .observing import observation

PAIRING = {"system": "window", "tuned": "step"}
FIRST_GUESS = 20  # steps of the first round, before it is known how long one takes
ROUNDS_AT_LEAST, ROUNDS_AT_MOST = 3, 8
ROUND_SECONDS = 0.8


@dataclass(frozen=True)
class MeasureProgress:
    elapsed: float
    seconds: float
    round: int


def measure_experiment(
    experiment: Experiment,
    setup: TrainingSetup,
    seconds: float,
    watts_per_core: float,
    profile: Profile | None,
    on_progress: Callable[[MeasureProgress], None],
) -> Measurement:
    began, seen, steps = time.monotonic(), [], FIRST_GUESS
    nominal = profile.yardstick_seconds if profile else None
    for number in range(ROUNDS_AT_MOST):
        elapsed = time.monotonic() - began
        if elapsed > seconds and number >= ROUNDS_AT_LEAST:
            break
        on_progress(MeasureProgress(elapsed, seconds, number + 1))
        with LocalDevice(experiment.allocator, watts_per_core) as device:
            nominal = nominal or device.yardstick(0.5, setup.threads).cpu_seconds
            seen += _round(experiment, setup, device, nominal, steps)
        if seen:
            steps = max(8, min(400, round(ROUND_SECONDS / seen[-1].measurement.cpu_seconds)))
    if not seen:
        raise DeviceError("no round gave a usable figure: close other programs and try again")
    measured = merged(seen)[0].measurement
    if profile is None or nominal is None:
        return measured
    return in_reference(measured, nominal, sharing_of([o.measurement for o in profile.observations]))


def _round(
    experiment: Experiment, setup: TrainingSetup, device: LocalDevice, nominal: float, steps: int
) -> list[Observation]:
    meter = Meter(**device.hello()["meter"])
    block = device.block(
        experiment.subject, setup, iterations=steps, warmup=5, pairing=PAIRING[experiment.allocator], isolation="inline"
    )
    found = observation(experiment, block, meter, nominal)
    return [] if found is None else [found]
