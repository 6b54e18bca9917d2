"""What a profile says: of one model, of two, of what a budget leaves of one, and of the device today."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, overload

from ampere.comparison import Comparison, Ranking, rank
from ampere.comparison import compare as compare_networks
from ampere.devices import opened
from ampere.devices.opening import LOCAL
from ampere.errors import ProfileError, UsageError
from ampere.estimation import Estimate, Estimator, joules_in
from ampere.fitting import sharing_in
from ampere.models.flax_models import refuse_flax
from ampere.models.loading import LoadedModel
from ampere.network import Network
from ampere.network.setup import ALLOCATORS
from ampere.profiles.profile import Profile
from ampere.worker.meters import DEFAULT_WATTS_PER_CORE

from .learning import stored_profile
from .models import network_of

if TYPE_CHECKING:
    from torch import nn

    from ampere.pruning.checking import Place
    from ampere.pruning.result import Pruned


def estimate(
    model: str | LoadedModel | Network,
    profile: Profile | Estimator | None = None,
    *,
    allocator: str = "system",
    condition: float | None = None,
    input: str | None = None,
    watts_per_core: float | None = None,
    device: str = LOCAL,
) -> Estimate:
    """What one training iteration will cost, by layer, with its standard deviation."""
    check_allocator(allocator)
    return estimator_of(profile, device, watts_per_core).estimate(network_of(model, input), allocator, condition)


@overload
def compare(
    first: str | LoadedModel | Network,
    second: str | LoadedModel | Network,
    *profiles: Profile | Estimator,
    allocator: str = "system",
    input: str | None = None,
    device: str = LOCAL,
) -> Comparison: ...


@overload
def compare(
    first: str | LoadedModel | Network,
    second: Profile | Estimator,
    *profiles: Profile | Estimator,
    allocator: str = "system",
    input: str | None = None,
    device: str = LOCAL,
) -> Ranking: ...


def compare(
    first: str | LoadedModel | Network,
    second: str | LoadedModel | Network | Profile | Estimator,
    *profiles: Profile | Estimator,
    allocator: str = "system",
    input: str | None = None,
    device: str = LOCAL,
) -> Comparison | Ranking:
    """Which of two models is cheaper to train, on the device of each profile, and how sure that is.

    Where profiles follow the first model at once: with which of them it is cheapest, such as those of two runtimes.
    """
    check_allocator(allocator)
    if isinstance(second, (Profile, Estimator)):
        if not profiles:
            raise UsageError("one model with one profile is compared with nothing: give a second model or profile")
        places = [estimator_of(profile, device) for profile in (second, *profiles)]
        return rank(network_of(first, input), places, allocator)
    estimators = [estimator_of(profile, device) for profile in profiles or (None,)]
    return compare_networks(network_of(first, input), network_of(second, input), estimators, allocator)


def prune(
    model: nn.Module | LoadedModel,
    example_input: Any,
    budget: str | float,
    profile: Profile | Estimator | None = None,
    strategy: str = "energy",
    *,
    keep: Sequence[str] = (),
    confidence: float = 0.5,
    iterations: int | None = None,
    battery: str | None = None,
    allocator: str = "system",
    seed: int = 0,
    short_training: Callable[[nn.Module], float] | None = None,
    check: bool = False,
    device: str = LOCAL,
) -> Pruned:
    """A copy of the model with fewer channels, whose training stays inside a budget; the model itself is not changed.

    `budget` is a share (0.5 or "50%"), joules of an iteration ("5mJ"), of a run of `iterations`, or of a battery.
    `short_training` takes a candidate of the random strategy and returns its loss after a few of your own steps.
    `check` trains original and result on the device for some seconds in turn, to see that the budget holds; workers
    build models themselves, so it needs one that `ampere.load_model` loaded.
    """
    check_allocator(allocator)
    from ampere.pruning.place import opened_place
    from ampere.pruning.pruning import prune as prune_model

    module: nn.Module = model.model if isinstance(model, LoadedModel) else model
    refuse_flax(module, "pruned")
    estimator = estimator_of(profile, device)
    at: AbstractContextManager[Place | None] = nullcontext()
    if check:
        if not isinstance(model, LoadedModel):
            raise UsageError("check=True builds the model in a process of its own: give ampere.load_model('...') as it")
        at = opened_place(model, device, estimator.profile, allocator)
    with at as place:
        return prune_model(
            module,
            example_input,
            budget,
            estimator,
            strategy,
            keep=keep,
            confidence=confidence,
            iterations=iterations,
            battery_joules=joules_in(battery) if battery else None,
            allocator=allocator,
            seed=seed,
            short_training=short_training,
            place=place,
        )


def present_condition(profile: Profile, seconds: float = 1.0, device: str = LOCAL) -> float:
    """How much dearer training is now than when the device was profiled, told by the yardstick."""
    with opened(device, DEFAULT_WATTS_PER_CORE) as devices:
        now = devices["tuned"].yardstick(seconds, profile.setup.threads, profile.setup.runtime).cpu_seconds
    return (now / profile.yardstick_seconds) ** sharing_in(profile.observations, profile.yardstick_seconds).part


def estimator_of(profile: Profile | Estimator | None, device: str, watts_per_core: float | None = None) -> Estimator:
    """A profile made ready; None means the device's own."""
    known = profile if profile is not None else stored_profile(device=device)
    if known is None:
        raise ProfileError(
            "this device has no profile yet: make one with `ampere profile MODEL` or ampere.profile(...)"
        )
    return known if isinstance(known, Estimator) else Estimator(known, watts_per_core)


def check_allocator(allocator: str) -> None:
    if allocator not in ALLOCATORS:
        raise UsageError(f"allocator {allocator!r} is none of {', '.join(ALLOCATORS)}")
