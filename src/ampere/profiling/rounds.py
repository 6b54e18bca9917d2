"""One round of a network's measurement, for what is held against estimates."""

from __future__ import annotations

from ampere.profiles.profile import Observation, Profile

from .campaigns.campaign import Trainer
from .experiment import Experiment
from .observing import observation, request


def one_round(
    experiment: Experiment, device: Trainer, profile: Profile, step_seconds: float, thorough: bool = True
) -> list[Observation]:
    """`step_seconds` is a guess. Nothing where the block has no usable figure."""
    block = device.block(**request(experiment, profile.setup, step_seconds, thorough))
    seen = observation(experiment, block, profile.meter, profile.yardstick_seconds, profile.yardstick_joules)
    return [] if seen is None else [seen]
