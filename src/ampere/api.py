"""What users call: load, trace, profile, estimate, compare, measure, validate, prune."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.comparison import Comparison
from ampere.comparison import compare as compare_networks
from ampere.devices import allocator_on, check_same_meter, describe, opened, setup_on
from ampere.devices.opening import LOCAL
from ampere.errors import ProfileError, UsageError
from ampere.estimation import Estimate, Estimator, joules_in
from ampere.fitting import sharing_in
from ampere.models.loading import LoadedModel, find_space, load_model, need_torch
from ampere.network import Measurement, Network, TrainingSetup
from ampere.network.setup import ALLOCATORS, PROTOCOLS
from ampere.profiles.places import default_path
from ampere.profiles.profile import Profile, check_device
from ampere.profiling.abilities import built_by, check_setup, known
from ampere.profiling.campaigns.campaign import Goal, Progress
from ampere.profiling.measuring import MeasureProgress, measure_experiment
from ampere.profiling.running import Made, make_profile, usual_seconds
from ampere.profiling.sources import Source, SpaceSource, source_of
from ampere.validation import ROUNDS, Validation, measure_twice, unseen
from ampere.validation import compare as compare_methods
from ampere.worker.meters import DEFAULT_WATTS_PER_CORE, watts_in

if TYPE_CHECKING:
    from torch import nn

    from ampere.pruning.result import Pruned

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


def trace(model: nn.Module, inputs: Any, *, loss: Callable[[Any], Any] | None = None, name: str = "") -> Network:
    """The layers of one training step of a model, without training it and without touching it."""
    from ampere.tracing import trace as trace_model

    return trace_model(model, inputs, loss=loss, name=name)


def network_of(model: str | LoadedModel | Network, input: str | None = None) -> Network:
    """The traced network of a family, a `file.py:function`, a stored network file or a loaded model."""
    if isinstance(model, Network):
        return model
    if isinstance(model, str) and model.endswith(".json"):
        from ampere.profiles.networks import load_network

        return load_network(Path(model))
    loaded = load_model(model, input) if isinstance(model, str) else model
    return trace(loaded.model, loaded.inputs, name=loaded.name)


def _source(model: str | LoadedModel, input: str | None) -> Callable[[], Source]:
    """Names are checked at once; what needs torch waits until the workers are starting."""
    if isinstance(model, str) and ":" not in model and input is None:
        space = find_space(model)
        need_torch()
        return lambda: SpaceSource(space)
    return lambda: source_of(load_model(model, input) if isinstance(model, str) else model)


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
) -> Made:
    """Trains small variants and networks like the model on a device, and keeps what was learnt.

    `seconds` are the device's own, simulated ones where it is. None means 15 (60 where the
    runtime compiles), and what a slow counter needs besides.
    `method` names the campaign (profiling/campaigns/), `protocol` how each block is timed.
    """
    if protocol not in PROTOCOLS:
        raise UsageError(f"protocol {protocol!r} is none of {', '.join(PROTOCOLS)}")
    meter = describe(device, watts_per_core or DEFAULT_WATTS_PER_CORE).meter
    setup = setup_on(device, setup or TrainingSetup())
    if seconds is None:
        seconds = usual_seconds(meter, known(device, setup.runtime).compiles)
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
    source = _source(model, input)
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
        place = default_path(identity, setup_on(device, setup or TrainingSetup()), method, protocol)
        return Profile.load(place) if place.exists() else None
    found = Profile.load(Path(path))
    check_device(found, identity, foreign)
    return found


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
    if allocator not in ALLOCATORS:
        raise UsageError(f"allocator {allocator!r} is none of {', '.join(ALLOCATORS)}")
    return estimator_of(profile, device, watts_per_core).estimate(network_of(model, input), allocator, condition)


def estimator_of(profile: Profile | Estimator | None, device: str, watts_per_core: float | None = None) -> Estimator:
    """A profile made ready; None means the device's own."""
    known = profile if profile is not None else stored_profile(device=device)
    if known is None:
        raise ProfileError(
            "this device has no profile yet: make one with `ampere profile MODEL` or ampere.profile(...)"
        )
    return known if isinstance(known, Estimator) else Estimator(known, watts_per_core)


def compare(
    first: str | LoadedModel | Network,
    second: str | LoadedModel | Network,
    *profiles: Profile | Estimator,
    allocator: str = "system",
    input: str | None = None,
    device: str = LOCAL,
) -> Comparison:
    """Which of two models is cheaper to train, on the device of each profile, and how sure that is."""
    if allocator not in ALLOCATORS:
        raise UsageError(f"allocator {allocator!r} is none of {', '.join(ALLOCATORS)}")
    estimators = [estimator_of(profile, device) for profile in profiles or (None,)]
    return compare_networks(network_of(first, input), network_of(second, input), estimators, allocator)


def present_condition(profile: Profile, seconds: float = 1.0, device: str = LOCAL) -> float:
    """How much dearer training is now than when the device was profiled, told by the yardstick."""
    with opened(device, DEFAULT_WATTS_PER_CORE) as devices:
        now = devices["tuned"].yardstick(seconds, profile.setup.threads, profile.setup.runtime).cpu_seconds
    return (now / profile.yardstick_seconds) ** sharing_in(profile.observations, profile.yardstick_seconds).part


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
    """Trains the model itself, in processes of its own, and tells what an iteration costs: the truth."""
    if allocator not in ALLOCATORS:
        raise UsageError(f"allocator {allocator!r} is none of {', '.join(ALLOCATORS)}")
    if not seconds > 0:
        raise UsageError(f"{seconds:g} seconds are no time to measure in: give a positive number, such as 10")
    if profile:
        check_same_meter(device, profile.meter)
    allocator = allocator_on(describe(device, watts_per_core).identity, allocator)
    setup = setup_on(device, setup or TrainingSetup())
    check_setup(device, setup)
    original = built_by(device, setup.runtime, _source(model, input)()).original().under(allocator)
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
    source = built_by(device, profile.setup.runtime, _source(model, input)())
    allocator = allocator_on(profile.device, allocator)
    experiments = [e.under(allocator) for e in unseen(source, (profile, *others), networks, seed)]
    with opened(device, watts_in(profile.meter.scope) or DEFAULT_WATTS_PER_CORE, seed + 1) as devices:
        pairs = measure_twice(experiments, devices[allocator], profile, seed, on_progress, rounds)
    return compare_methods(source.name, pairs, profile, allocator, others, methods)


def prune(
    model: nn.Module,
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
    device: str = LOCAL,
) -> Pruned:
    """A copy of the model with fewer channels, whose training stays inside a budget; the model itself is not changed.

    `budget` is a share (0.5 or "50%"), joules of an iteration ("5mJ"), of a run of `iterations`, or of a battery.
    `short_training` takes a candidate of the random strategy and returns its loss after a few of your own steps.
    """
    from ampere.pruning.pruning import prune as prune_model

    return prune_model(
        model,
        example_input,
        budget,
        estimator_of(profile, device),
        strategy,
        keep=keep,
        confidence=confidence,
        iterations=iterations,
        battery_joules=joules_in(battery) if battery else None,
        allocator=allocator,
        seed=seed,
        short_training=short_training,
    )
