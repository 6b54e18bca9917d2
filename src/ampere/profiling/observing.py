"""How a block is asked for, and how long it will take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ampere.core import TrainingSetup
from ampere.core.windows import plan_windows
from ampere.estimation.normalization import reference_of, usable
from ampere.storage.profile import Observation, Profile

from .experiment import Experiment

if TYPE_CHECKING:
    from .strategies.strategy import Trainer

# A quiet block pairs every step with the yardstick; a plain one is a loop as a user writes it, from a fresh start.
QUIET = {"pairing": "step", "isolation": "inline"}
PLAIN = {"pairing": "window", "isolation": "fork"}
QUIET_SECONDS, PLAIN_SECONDS = 0.04, 0.08
BUILD_SECONDS = {"tuned": 0.012, "system": 0.06}


def iterations_of(allocator: str, step_seconds: float) -> tuple[int, int]:
    """How many steps to measure and how many to warm up: short blocks, since blocks differ more than steps."""
    if allocator == "system":
        return max(8, min(24, round(PLAIN_SECONDS / step_seconds))), 3
    return max(4, min(8, round(QUIET_SECONDS / step_seconds))), 2


def block_seconds(allocator: str, step_seconds: float, yardstick_seconds: float, window_seconds: float = 0.0) -> float:
    """What a block costs, so that the planner can weigh it; a slow counter needs its windows, of both."""
    iterations, warmup = iterations_of(allocator, step_seconds)
    pairs = iterations
    if allocator == "system":
        plan = plan_windows(iterations, step_seconds)
        pairs = (len(plan.targets) + 1) * (plan.settling + plan.yardsticks)
    trained, beside = (iterations + warmup) * step_seconds, (pairs + warmup) * yardstick_seconds
    return BUILD_SECONDS[allocator] + max(trained, window_seconds) + max(beside, window_seconds)


def request(
    experiment: Experiment,
    setup: TrainingSetup,
    step_seconds: float,
    thorough: bool = False,
    protocol: str = "yardstick",
    count: bool = True,
    power: bool = False,
) -> dict[str, Any]:
    """`thorough` is for what is held against estimates: blocks twice as long. A loop by the clock trains
    twice as many steps, which takes as long as steps with a yardstick beside each.
    """
    iterations, warmup = iterations_of(experiment.allocator, step_seconds / 2 if thorough else step_seconds)
    how: dict[str, Any] = dict(PLAIN if experiment.system else QUIET)
    if experiment.stage != "step":
        how = {**how, "stage": experiment.stage}
    if not count:
        how = {**how, "count": False}
    if power:
        how = {**how, "power": True}
    if protocol == "wallclock":
        iterations, how = 2 * iterations, {**how, "pairing": "plain"}
    return {"workload": experiment.workload, "setup": setup, "iterations": iterations, "warmup": warmup, **how}


def one_round(
    experiment: Experiment, device: Trainer, profile: Profile, step_seconds: float, thorough: bool = True
) -> list[Observation]:
    """`step_seconds` is a guess. Nothing where the block has no usable figure."""
    found = device.block(**request(experiment, profile.setup, step_seconds, thorough))
    return [experiment.observed(found)] if usable(found, reference_of(profile)) else []
