"""Training a model itself: the truth that estimates are held against.

    one round, a process of its own:   warm up | yardstick | steps | yardstick | steps | ... | yardstick

Rounds differ because processes differ (where memory lies, what the allocator does), so there are several.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ampere.core import Measurement, Meter, TrainingSetup
from ampere.core.errors import DeviceError
from ampere.devices import Worker, Yardstick, opened
from ampere.devices.opening import LOCAL
from ampere.estimation.fitting import drift_share_in
from ampere.estimation.normalization import to_reference
from ampere.storage.profile import Observation, Profile

from .experiment import Experiment
from .observing import merged, observation

PAIRING = {"system": "window", "tuned": "step"}
FIRST_GUESS = 20  # steps of the first round, before it is known how long one takes
ROUNDS_AT_LEAST, ROUNDS_AT_MOST = 3, 8
ROUND_SECONDS = 0.8


Nominal = tuple[float, float | None]  # seconds and joules of the yardstick


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
    on: str = LOCAL,
) -> Measurement:
    """`on` names the device, as in `--device`."""
    elapsed, seen, steps = 0.0, [], FIRST_GUESS
    nominal = (profile.yardstick_seconds, profile.yardstick_joules) if profile else None
    for number in range(ROUNDS_AT_MOST):
        if elapsed > seconds and number >= ROUNDS_AT_LEAST:
            break
        on_progress(MeasureProgress(elapsed, seconds, number + 1))
        with opened(on, watts_per_core, number + 1) as devices:
            device = devices[experiment.allocator]
            began = device.clock()
            nominal = nominal or _nominal(device.yardstick(0.5, setup.threads, setup.runtime))
            seen += _round(experiment, setup, device, nominal, steps)
            elapsed += device.clock() - began
        if seen:
            steps = max(8, min(400, round(ROUND_SECONDS / seen[-1].measurement.cpu_seconds)))
    if not seen:
        raise DeviceError("no round gave a usable figure: close other programs and try again")
    measured = merged(seen)[0].measurement
    if profile is None or nominal is None:
        return measured
    return to_reference(measured, nominal[0], drift_share_in(profile.observations, profile.yardstick_seconds).part)


def _nominal(yardstick: Yardstick) -> Nominal:
    return yardstick.cpu_seconds, yardstick.joules


def _round(
    experiment: Experiment, setup: TrainingSetup, device: Worker, nominal: Nominal, steps: int
) -> list[Observation]:
    meter = Meter(**device.hello()["meter"])
    block = device.block(
        experiment.subject, setup, iterations=steps, warmup=5, pairing=PAIRING[experiment.allocator], isolation="inline"
    )
    found = observation(experiment, block, meter, *nominal)
    return [] if found is None else [found]
