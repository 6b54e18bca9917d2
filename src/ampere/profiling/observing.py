"""Requests for blocks of training steps, and how long a block will take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ampere.core import TrainingSetup
from ampere.core.windows import plan_windows
from ampere.estimation.normalization import reference_of, usable
from ampere.storage.profile import Observation, Profile

from .experiment import Experiment

if TYPE_CHECKING:
    from .strategies.strategy import Trainer

# A quiet block pairs every step with the yardstick; a plain one is a user's ordinary loop in a fresh process. A settled
# one is such a loop, quiet: the yardstick is timed once the network's data has left the caches.
QUIET = {"pairing": "step", "isolation": "inline"}
SETTLED = {"pairing": "window", "isolation": "inline"}
PLAIN = {"pairing": "window", "isolation": "fork"}
QUIET_SECONDS, PLAIN_SECONDS = 0.04, 0.08
LONG_STEP = 0.15  # seconds, from which on a block has few steps: large layers and models fit into a profile only so
LONG_STEPS = {"tuned": 2, "system": 3}
BLOCK_SECONDS, SLOWEST_STEP = 60.0, 1.0  # when a block is cut short: after so long, or so long for each step
BUILD_SECONDS = {"tuned": 0.012, "system": 0.06}


def iterations_of(allocator: str, step_seconds: float) -> tuple[int, int]:
    """The number of steps to measure and to warm up. Blocks are short, because blocks differ more than steps."""
    if step_seconds > LONG_STEP:
        return LONG_STEPS[allocator], 1
    if allocator == "system":
        return max(8, min(24, round(PLAIN_SECONDS / step_seconds))), 3
    return max(4, min(8, round(QUIET_SECONDS / step_seconds))), 2


def block_seconds(allocator: str, step_seconds: float, yardstick_seconds: float, window_seconds: float = 0.0) -> float:
    """How long a block takes. A slow counter needs a window for the network and one for the yardstick."""
    iterations, warmup = iterations_of(allocator, step_seconds)
    pairs = iterations
    if allocator == "system":
        plan = plan_windows(iterations, step_seconds)
        pairs = (len(plan.targets) + 1) * (plan.settling + plan.yardsticks)
    target, yardstick = (iterations + warmup) * step_seconds, (pairs + warmup) * yardstick_seconds
    return BUILD_SECONDS[allocator] + max(target, window_seconds) + max(yardstick, window_seconds)


def request(
    experiment: Experiment,
    setup: TrainingSetup,
    step_seconds: float,
    thorough: bool = False,
    timing: str = "yardstick",
    count: bool = True,
    power: bool = False,
    iterations: int | None = None,
    settled: bool = False,
) -> dict[str, Any]:
    """The arguments of a worker's `block` for an experiment; `iterations` are as many as usual where not given.

    `thorough` blocks are twice as long; they check estimates. A plain loop trains twice as many steps, which takes
    as long as steps that are paired with the yardstick.
    """
    usual, warmup = iterations_of(experiment.allocator, step_seconds / 2 if thorough else step_seconds)
    how: dict[str, Any] = dict(PLAIN if experiment.system else SETTLED if settled else QUIET)
    if experiment.stage != "step":
        how = {**how, "stage": experiment.stage}
    if not count:
        how = {**how, "count": False}
    if power:
        how = {**how, "power": True}
    if timing == "wallclock":
        how = {**how, "pairing": "plain"}
    if timing == "wallclock" or settled:
        usual = 2 * usual
    if iterations is not None:
        usual, how = iterations, {**how, "seconds_limit": max(BLOCK_SECONDS, SLOWEST_STEP * iterations)}
    return {"workload": experiment.workload, "setup": setup, "iterations": usual, "warmup": warmup, **how}


def one_round(
    experiment: Experiment, device: Trainer, profile: Profile, step_seconds: float, thorough: bool = True
) -> list[Observation]:
    """Trains one block and returns its observation, or nothing if the measurement is unusable.

    `step_seconds` is a guess.
    """
    found = device.block(**request(experiment, profile.setup, step_seconds, thorough))
    return [experiment.observed(found)] if usable(found, reference_of(profile)) else []
