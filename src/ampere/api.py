"""What users call: load, trace, profile, estimate, compare, measure, validate, prune."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from ampere.comparison import Comparison, Ranking, rank
from ampere.comparison import compare as compare_networks
from ampere.core import Measurement, Network, TrainingSetup
from ampere.core.errors import ProfileError, UsageError
from ampere.core.setup import ALLOCATORS, PROTOCOLS
from ampere.devices import allocator_on, check_same_meter, describe, opened, setup_on
from ampere.devices.opening import LOCAL
from ampere.estimation.estimate import Estimate, Estimator, joules_in
from ampere.estimation.fitting import drift_share_in
from ampere.evaluation.validation import ROUNDS, Validation, measure_twice, unseen
from ampere.evaluation.validation import compare as compare_methods
from ampere.meters import DEFAULT_WATTS_PER_CORE, watts_in
from ampere.models.loading import LoadedModel, find_space, is_flax, load_model, need_torch, refuse_flax
from ampere.profiling.capabilities import built_by, check_setup, itself, known
from ampere.profiling.measuring import MeasureProgress, measure_experiment
from ampere.profiling.meter_windows import steady_power
from ampere.profiling.running import ProfilingResult, make_profile, usual_seconds
from ampere.profiling.sources import Source, SpaceSource, source_of
from ampere.profiling.strategies.strategy import Goal, Progress
from ampere.storage.places import default_path
from ampere.storage.profile import Profile, check_device

if TYPE_CHECKING:
    from torch import nn

    from ampere.pruning.checking import Check
    from ampere.pruning.result import Pruned


# A model, however it is named: traced to a network, or made ready to be trained.


def trace(model: Any, inputs: Any, *, loss: Callable[[Any], Any] | None = None, name: str = "") -> Network:
    """The layers of one training step of a model, without training it and without touching it."""
    if is_flax(model):
        from ampere.tracing.jax.trace import trace as trace_flax

        if loss is not None:
            raise UsageError("a flax model is traced with its usual loss: leave out loss")
        return trace_flax(model, inputs, name=name)
    from ampere.tracing.trace import trace as trace_model

    return trace_model(model, inputs, loss=loss, name=name)


def network_of(model: str | LoadedModel | Network, input: str | None = None) -> Network:
    """The traced network of a family, a `file.py:function`, a stored network file or a loaded model."""
    if isinstance(model, Network):
        return model
    if isinstance(model, str) and model.endswith(".json"):
        from ampere.storage.networks import load_network

        return load_network(Path(model))
    loaded = load_model(model, input) if isinstance(model, str) else model
    return trace(loaded.model, loaded.inputs, name=loaded.name)


def source_for(model: str | LoadedModel, input: str | None) -> Callable[[], Source]:
    """Names are checked at once; what needs torch waits until the workers are starting."""
    if isinstance(model, str) and ":" not in model and input is None:
        space = find_space(model)
        need_torch()
        return lambda: SpaceSource(space)
    return lambda: source_of(load_model(model, input) if isinstance(model, str) else model)


# What is known of a device: learnt now, or stored before.


def profile(
    model: str | LoadedModel,
    *,
    seconds: float | None = None,
    target: float = 0.0,
    out: Path | str | None = None,
    setup: TrainingSetup | None = None,
    watts_per_core: float | None = None,
    input: str | None = None,
    seed: int = 0,
    foreign: bool = False,
    method: str = "additive",
    protocol: str = "yardstick",
    device: str = LOCAL,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> ProfilingResult:
    """Trains small variants and networks like the model on a device, and keeps what was learnt.

    `seconds` are the device's own, simulated ones where it is. None means 15 (120 where the
    runtime compiles), and what a slow counter needs besides.
    `method` names the campaign (profiling/campaigns/), `protocol` how each block is timed.
    """
    if protocol not in PROTOCOLS:
        raise UsageError(f"protocol {protocol!r} is none of {', '.join(PROTOCOLS)}")
    meter = describe(device, watts_per_core or DEFAULT_WATTS_PER_CORE).meter
    setup = setup_on(device, setup)
    if seconds is None:
        seconds = usual_seconds(meter, known(device, setup.runtime).compiles, steady_power(meter, method, protocol))
    if not seconds > 0:
        raise UsageError(f"{seconds:g} seconds are no time to profile in: give a positive number, such as 15")
    if not 0 <= target < 1:
        raise UsageError(f"a target error of {target:g} makes no sense: give something like 3%")
    if watts_per_core is not None and not watts_per_core > 0:
        raise UsageError(f"{watts_per_core:g} watts a core make no sense: give a positive number")
    if watts_per_core is not None and watts_in(meter.scope) is None:
        raise UsageError(f"joules of {device} come from a counter: leave out --watts-per-core")
    path = Path(out) if out else None
    goal = Goal(seconds, target)
    source = source_for(model, input)
    return make_profile(source, setup, goal, watts_per_core, path, seed, foreign, on_progress, method, protocol, device)


def stored_profile(
    path: Path | str | None = None,
    setup: TrainingSetup | None = None,
    foreign: bool = False,
    method: str = "additive",
    protocol: str = "yardstick",
    device: str = LOCAL,
) -> Profile | None:
    """The profile at a path, or the device's own; None where there is none of its own yet."""
    identity = describe(device, DEFAULT_WATTS_PER_CORE).identity
    if path is None:
        place = default_path(identity, setup_on(device, setup), method, protocol)
        return Profile.load(place) if place.exists() else None
    found = Profile.load(Path(path))
    check_device(found, identity, foreign)
    return found


# What a profile says: of one model, of two, of what a budget leaves of one, and of the device today.


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
    return compare_networks([network_of(first, input), network_of(second, input)], estimators, allocator)


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
    from ampere.pruning.checking import opened_check
    from ampere.pruning.pruning import prune as prune_model

    module: nn.Module = model.model if isinstance(model, LoadedModel) else model
    refuse_flax(module, "pruned")
    estimator = estimator_of(profile, device)
    at: AbstractContextManager[Check | None] = nullcontext()
    if check:
        if not isinstance(model, LoadedModel):
            raise UsageError("check=True builds the model in a process of its own: give ampere.load_model('...') as it")
        at = opened_check(model, device, estimator.profile, allocator)
    with at as opened_on:
        return prune_model(
            model,
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
            check=opened_on,
        )


def present_condition(profile: Profile, seconds: float = 1.0, device: str = LOCAL) -> float:
    """How much dearer training is now than when the device was profiled, told by the yardstick."""
    with opened(device, DEFAULT_WATTS_PER_CORE) as devices:
        now = devices["tuned"].yardstick(seconds, profile.setup.threads, profile.setup.runtime).cpu_seconds
    return (now / profile.yardstick_seconds) ** drift_share_in(profile.observations, profile.yardstick_seconds).part


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


# Really trained: the model itself, or networks like it that no profile saw.


def measure(
    model: str | LoadedModel,
    *,
    seconds: float = 10.0,
    setup: TrainingSetup | None = None,
    allocator: str = "system",
    watts_per_core: float = DEFAULT_WATTS_PER_CORE,
    input: str | None = None,
    profile: Profile | None = None,
    device: str = LOCAL,
    on_progress: Callable[[MeasureProgress], None] = lambda _: None,
) -> Measurement:
    """Trains the model itself, in processes of its own, and tells what an iteration costs: the truth.

    By its own code where the runtime can run that, else built from its layers.
    """
    check_allocator(allocator)
    if not seconds > 0:
        raise UsageError(f"{seconds:g} seconds are no time to measure in: give a positive number, such as 10")
    if profile:
        check_same_meter(device, profile.meter)
    allocator = allocator_on(describe(device, watts_per_core).identity, allocator)
    setup = setup_on(device, setup)
    check_setup(device, setup)
    original = itself(device, setup.runtime, source_for(model, input)()).under(allocator)
    return measure_experiment(original, setup, seconds, watts_per_core, profile, on_progress, device)


def validate(
    model: str | LoadedModel,
    profile: Profile,
    *,
    others: Sequence[Profile] = (),
    methods: Sequence[str] | None = None,
    networks: int = 60,
    rounds: int = ROUNDS,
    seed: int = 0,
    allocator: str = "tuned",
    input: str | None = None,
    device: str = LOCAL,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Validation:
    """Really trains random networks like the model that were not profiled, and compares every method.

    The main profile gives its own method and those rivals that can learn from it; each further one adds the methods
    that learn from it.
    """
    if networks < 1:
        raise UsageError(f"{networks} networks cannot be validated on: give 1 or more")
    if rounds < 1:
        raise UsageError(f"{rounds} rounds measure nothing: give 1 or more")
    check_setup(device, profile.setup)
    check_same_meter(device, profile.meter)
    source = built_by(device, profile.setup.runtime, source_for(model, input)())
    allocator = allocator_on(profile.device, allocator)
    experiments = [e.under(allocator) for e in unseen(source, (profile, *others), networks, seed)]
    with opened(device, watts_in(profile.meter.scope) or DEFAULT_WATTS_PER_CORE, seed + 1) as devices:
        left_out: dict[int, str] = {}
        pairs = measure_twice(experiments, devices[allocator], profile, seed, on_progress, rounds, left_out)
    found = compare_methods(source.name, pairs, profile, allocator, others, methods)
    return replace(found, left_out=tuple(left_out.values()))


# What users call: load, trace, profile, estimate, compare, measure, validate, prune.

__all__ = [
    "compare",
    "estimate",
    "estimator_of",
    "load_model",
    "measure",
    "network_of",
    "present_condition",
    "profile",
    "prune",
    "stored_profile",
    "trace",
    "validate",
]
