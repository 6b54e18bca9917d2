"""Really trained: the model itself, or networks like it that no profile saw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ampere.devices import allocator_on, check_same_meter, describe, opened, setup_on
from ampere.devices.opening import LOCAL
from ampere.errors import UsageError
from ampere.models.loading import LoadedModel
from ampere.network import Measurement, TrainingSetup
from ampere.profiles.profile import Profile
from ampere.profiling.abilities import built_by, check_setup, itself
from ampere.profiling.measuring import MeasureProgress, measure_experiment
from ampere.validation import ROUNDS, Validation, measure_twice, unseen
from ampere.validation import compare as compare_methods
from ampere.worker.meters import DEFAULT_WATTS_PER_CORE, watts_in

from .estimating import check_allocator
from .models import source_for


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
