"""A profile that is certain enough of a model: the stored one, that one extended, or a new one.

stored? --no--> make one -----------------------------+
   | yes                                              v
   +--> estimate --> touch --> certain enough, or not ours to extend? --yes--> done
                            | no
                            +--> profile more --> estimate again --> done
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ampere.core import Network, TrainingSetup
from ampere.core.errors import ProfileError, UsageError, WorkerError
from ampere.core.setup import CPU
from ampere.devices import Device
from ampere.estimation.estimate import Estimate
from ampere.estimation.estimator import Estimator, estimator_for
from ampere.estimation.fitting import BY_LAYER, drift_share_in
from ampere.estimation.mixture import mixed
from ampere.estimation.normalization import costs_of, reference_of
from ampere.estimation.own_code import with_own_code
from ampere.profiling.running import USUAL_SECONDS
from ampere.profiling.strategies import find_strategy
from ampere.runtimes import description_of
from ampere.runtimes.table import lacking
from ampere.storage.places import default_path, stored_setups
from ampere.storage.profile import Observation, Profile, other_version

from .making_profiles import USUAL_METHOD, profiling_seconds, run_profiling
from .memory import StepMemory
from .models import Model, ResolvedModel, VariedModel, resolve
from .options import SETUP, Options
from .stored_profiles import check_same_setup, on_named_threads, profile_at, profile_path
from .touching import check_touch, touched

CERTAIN_ENOUGH = 0.10  # standard deviation over joules
MORE_SECONDS = 10.0  # of profiling where something alike is known: this setup, or another one on the same device
CURRENT_SPEED_SECONDS = 1.0


@dataclass(frozen=True)
class ProfiledEstimate:
    """An estimate, and the profile that it comes from."""

    profile: Profile
    path: Path | None  # None of a profile that was given as an object
    network: Network
    estimator: Estimator
    estimate: Estimate
    step_memory: StepMemory
    unsupported: tuple[str, ...] = ()  # layers that the profile's runtime cannot train, each with the reason
    touches: tuple[Observation, ...] = ()  # the profile's, and those that are not stored in it


def ensure_profile(model: Model, options: Options, inputs: Any = None, touch: float | None = 0.0) -> ProfiledEstimate:
    """An estimate of the model, from a profile that is made or extended first where that is needed and allowed.

    `touch` are seconds of training the model's own code; None for as long as usual.
    """
    check_touch(touch)
    subject = resolve(model, inputs)
    if isinstance(subject, VariedModel):
        return _over_shapes(subject, options, touch)
    if isinstance(options.profile, (Profile, Estimator)):
        given = on_named_threads(options.profile, options)
        check_same_setup((given.profile if isinstance(given, Estimator) else given).setup, options, "the profile")
        known = _estimated(given, None, subject, options.watts_per_core, options.allocator)
        if not touch:
            return known
        with options.opened_device() as device:
            return touched(known, device, subject, options, touch)
    with options.opened_device() as device:
        return _ensure_on(device, subject, with_own_optimizer(options, subject), touch)


def _over_shapes(subject: VariedModel, options: Options, touch: float | None) -> ProfiledEstimate:
    """The estimate of an average iteration, with the profile's network of the commonest shape."""
    with options.opened() as options:
        known = [ensure_profile(part, options, touch=touch) for _, part in subject.parts]
    shares = [share for share, _ in subject.parts]
    commonest, largest = known[shares.index(max(shares))], max(known, key=lambda each: each.estimate.joules)
    estimate = mixed([each.estimate for each in known], shares)
    return replace(commonest, estimate=estimate, step_memory=largest.step_memory)


def with_own_optimizer(options: Options, *subjects: ResolvedModel) -> Options:
    """The options with the optimizer that the models configure themselves, where they agree and none is named."""
    _refuse_other_setup(options, subjects)
    own = {subject.optimizer for subject in subjects}
    optimizer = own.pop() if len(own) == 1 else None
    if optimizer is None or options.optimizer or options.profile:
        return options
    source = "its own step does" if subjects[0].is_step else "configure_optimizers says"
    options.say(f"trained with {OPTIMIZER_NAMES.get(optimizer, optimizer)}, as {source}")
    return replace(options, optimizer=optimizer)


def _refuse_other_setup(options: Options, subjects: Sequence[ResolvedModel]) -> None:
    """A step of the user's own has its precision and its optimizer in its code."""
    named = options.named_setup
    for subject in subjects:
        own = {"optimizer": subject.optimizer or named.get("optimizer"), "dtype": "float32"}
        other = next((field for field, value in own.items() if named.get(field, value) != value), None)
        if subject.is_step and other:
            raise UsageError(f"{subject.name} does a whole training step, in its own way: leave out --{other}")


def _ensure_on(device: Device, subject: ResolvedModel, options: Options, touch: float | None) -> ProfiledEstimate:
    _need_layers(options.method)
    setup, watts = options.setup_on(device), options.watts_on(device)
    path = Path(str(options.profile)) if options.profile else default_path(device.identity, setup, *options.how)
    may_profile = subject.trainable and not options.profile and options.extend
    profile = profile_at(device, path, options)
    if profile is None:
        profile = _first(device, setup, subject, path, options, may_profile)
    elif changed := other_version(profile, device.identity):
        options.say(changed)
    known = _estimated(profile, path, subject, watts, options.allocator)
    known = touched(known, device, subject, options, touch)
    if may_profile and (why := _why_more(known, subject.name)):
        options = _in_seconds(device, setup, options, alike=True)
        options.say(f"profiling for {options.seconds:g} s more: {why}")
        extended = run_profiling(device, subject, replace(options, watts_per_core=None)).profile
        known = _estimated(extended, path, subject, watts, options.allocator, known.touches)
    return known


def _need_layers(method: str) -> None:
    """Refused before any time is spent on profiling."""
    if method not in BY_LAYER:
        raise UsageError(
            f"--method {method} cannot estimate layer by layer: choose one of {', '.join(BY_LAYER)}; "
            "`ampere validate --methods` compares the others"
        )


def _estimated(
    profile: Profile | Estimator,
    path: Path | None,
    subject: ResolvedModel,
    watts: float | None,
    allocator: str,
    touches: Sequence[Observation] = (),
) -> ProfiledEstimate:
    estimator = profile if isinstance(profile, Estimator) else estimator_for(profile, watts)
    network, made = subject.network, estimator.profile
    unsupported = unsupported_layers(network, made.setup.runtime)
    touches = tuple(touches) or made.touches
    followed = StepMemory(subject, made.setup, allocator, made, touches)
    estimate = followed.estimate_with(estimator, allocator)
    estimate = with_own_code(estimator, estimate, network, touches)
    return ProfiledEstimate(made, path, network, estimator, estimate, followed, unsupported, touches)


def unsupported_layers(network: Network, runtime: str) -> tuple[str, ...]:
    """The layers that a runtime cannot train, each with the reason."""
    try:
        description = description_of(runtime)
    except WorkerError:  # a device's own, of which nothing is known here
        return ()
    return () if description.factories else tuple(lacking(network, description))


# Making a profile, and making it more certain.

OPTIMIZER_NAMES = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW"}


def _first(
    device: Device, setup: TrainingSetup, subject: ResolvedModel, path: Path, options: Options, may_profile: bool
) -> Profile:
    which = f"this device{_missing(setup, stored_setups(device.identity), path)}"
    if not may_profile:
        command = f"ampere profile MODEL{profile_options(setup, options)}"
        raise ProfileError(f"no profile of {which} yet: make one with `{command}`, or give --profile FILE")
    same_file = path.exists() and Profile.load(path).observations  # on other numbers of threads, which it learns from
    alike = None if same_file else _of_another_setup(device, setup)
    options = _in_seconds(device, setup, options, alike=bool(same_file or alike))
    options.say(f"no profile of {which} yet: making one in {options.seconds:g} s, once")
    sources = [alike] if alike else []
    return run_profiling(device, subject, replace(options, watts_per_core=None), sources=sources).profile


def _in_seconds(device: Device, setup: TrainingSetup, options: Options, alike: bool) -> Options:
    """The options with the seconds to profile: fewer than usual where something alike is known."""
    usual = profiling_seconds(device, setup, options)
    shorter = alike and options.seconds is None and usual == USUAL_SECONDS
    return replace(options, seconds=MORE_SECONDS if shorter else usual)


def _of_another_setup(device: Device, setup: TrainingSetup) -> Profile | None:
    """The device's profile with another optimizer or precision, which estimates with this one start from."""
    found = [s for s in stored_setups(device.identity) if (s.runtime, s.on) == (setup.runtime, setup.on)]
    nearest = sorted(found, key=lambda s: (s.dtype != setup.dtype) + (s.optimizer != setup.optimizer))
    for other in nearest:
        path = default_path(device.identity, other)
        profile = Profile.load(path) if path.exists() else None
        if profile and (profile := profile.on_threads(setup.threads) or profile).observations:
            return replace(profile, others=(), touches=())
    return None


def _missing(setup: TrainingSetup, stored: list[TrainingSetup], path: Path) -> str:
    """What the setup has that no stored one has; "" where nothing is stored at all."""
    if not stored:
        return ""
    fields = min(([f for f in SETUP if getattr(setup, f) != getattr(other, f)] for other in stored), key=len)
    if path.exists() and setup.threads not in Profile.load(path).threads:
        fields = ["threads"]
    named = {
        "optimizer": OPTIMIZER_NAMES.get(setup.optimizer, setup.optimizer),
        "dtype": setup.dtype,
        "threads": f"{setup.threads} thread{'s' if setup.threads > 1 else ''}",
    }
    differing = " and ".join(named[field] for field in fields if field in named)
    return (f" in {setup.runtime}" if "runtime" in fields else "") + (f" with {differing}" if differing else "")


def _why_more(known: ProfiledEstimate, name: str) -> str:
    """Why the profile is not certain enough of the model; "" where it is."""
    estimate, profile = known.estimate, known.profile
    unknown = [] if estimate.touch else [*estimate.unprofiled, *estimate.extrapolated]
    uncertain = name not in profile.spaces and estimate.stddev > CERTAIN_ENOUGH * estimate.joules
    if not unknown and not uncertain:
        return ""
    if known.network.batch not in {o.network.batch for o in profile.observations}:
        return f"batch {known.network.batch} was not profiled"
    if unknown:
        return f"no layers like {_few(unknown)} were profiled"
    return f"the profile was made for {_few(profile.spaces)} and is not certain of this model"


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (" ..." if names[3:] else "")


def profile_options(setup: TrainingSetup, options: Options) -> str:
    """What follows `ampere profile MODEL` for the same device and setup; "" where both are the usual ones."""
    usual = TrainingSetup()
    named = {f: getattr(setup, f) for f in SETUP if f != "threads" and getattr(setup, f) != getattr(usual, f)}
    if options.threads is not None:
        named["threads"] = setup.threads
    if setup.on != CPU:
        named["on"] = setup.on
    spec = options.device.spec if isinstance(options.device, Device) else options.device
    if spec != "local":
        named["device"] = spec
        if options.runtime is None:  # it is the device's own
            named.pop("runtime", None)
    return "".join(f" --{name} {value}" for name, value in named.items())


def baseline_profiles(
    device: Device, subject: ResolvedModel, options: Options, methods: Sequence[str], samples: int = 0
) -> list[Profile]:
    """Profiles for methods that learn from other measurements than ours: stored ones, or new ones made in as long.

    Those of isolated layers have at least `samples` measurements.
    """
    from ampere.baselines.answers import strategy_of

    ways = dict.fromkeys(strategy_of(method) for method in methods)
    return [_baseline(device, subject, options, *way, samples) for way in ways if way != USUAL_METHOD]


def _baseline(
    device: Device, subject: ResolvedModel, options: Options, method: str, timing: str, samples: int
) -> Profile:
    samples = samples if find_strategy(method, timing).stages else 0
    asked = replace(options, profile=None, method=method, timing=timing, watts_per_core=None)
    stored = profile_at(device, profile_path(device, asked), asked)
    if stored is not None and subject.name in stored.spaces and len(stored.observations) >= samples:
        return stored
    if not options.extend:
        raise ProfileError(
            f"this device has no profile of {subject.name} made with --method {method} --timing {timing}: "
            "leave out --no-profiling, or fewer --methods"
        )
    return run_profiling(device, subject, asked, samples=samples).profile


# The speed of the device at present.


def at_current_speed(known: ProfiledEstimate, options: Options) -> ProfiledEstimate:
    """The same estimate, for a device that is as fast as it is now instead of as it was when profiled."""
    profile = known.profile
    options.say("measuring how fast the device is now ...")
    with options.opened_device() as device:
        now = device.worker().yardstick(CURRENT_SPEED_SECONDS, profile.setup.threads, profile.setup.runtime)
    if now.flags:
        options.say(
            f"the device was not steady while its speed was measured ({', '.join(now.flags)}): repeat this later"
        )
    reference = reference_of(profile)
    share = drift_share_in(costs_of(profile), reference).part
    condition = (now.seconds(profile.setup.threads) / reference.loop_seconds) ** share
    now_costs = known.estimate.scaled(condition / known.estimate.condition)
    return replace(known, estimate=replace(now_costs, condition=condition))
