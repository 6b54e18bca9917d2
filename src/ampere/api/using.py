"""What estimates are used for: comparing, pruning, searching, validating, reporting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from ampere.baselines.answers import IN_LOOPS
from ampere.comparison import Comparison, Ranking, rank
from ampere.comparison import compare as compare_networks
from ampere.core import TrainingSetup, units
from ampere.core.errors import DeviceError, ModelError, UsageError
from ampere.devices import Device, check_same_meter
from ampere.estimation.estimate import Estimator, estimator_for, joules_in
from ampere.estimation.memory import MemoryEstimate, runtime_bytes_in
from ampere.evaluation.validation import ROUNDS, InLoops, Validation, measure_twice, unseen
from ampere.evaluation.validation import compare as compare_methods
from ampere.meters import watts_in
from ampere.models.loading import refuse_flax, refuse_step
from ampere.profiling.capabilities import built_by, check_builds, check_setup, runs_own_code
from ampere.profiling.running import ProfilingResult
from ampere.profiling.sources import ModelSource, by_own_code
from ampere.runtimes.table import refusal
from ampere.storage.profile import Profile

from .estimating import profile_apart
from .memory import StepMemory, bytes_in
from .models import Model, ResolvedModel, resolve
from .options import AnyProfile, DeviceKeywords, OptionKeywords, Options
from .profiles import (
    ProfiledEstimate,
    baseline_profiles,
    check_same_setup,
    ensure_profile,
    load_profile,
    stored_profile,
    unsupported_layers,
    with_own_optimizer,
)

if TYPE_CHECKING:
    from torch import nn
    from typing_extensions import Unpack

    from ampere.pruning.checking import Check
    from ampere.pruning.result import Pruned
    from ampere.reporting import Report
    from ampere.searching.result import Found
    from ampere.searching.spaces import Values
    from ampere.searching.training import Train


MEMORY_TRIES, SMALLER = 6, 0.75  # budgets that are tried for a result that fits into memory, each a part of the last
OBJECTS = (Profile, Estimator, ProfilingResult)  # a profile may be given as one of these, or as a file


def compare(
    *models: Model,
    inputs: Any = None,
    profiles: Sequence[AnyProfile] = (),
    runtimes: Sequence[str] = (),
    memory: str | float | None = None,
    **options: Unpack[OptionKeywords],
) -> Comparison | Ranking:
    """Which of several models is cheaper to train, with the probability of that; or where one model is cheapest.

    Several models are compared on the device, or with each of the `profiles` or `runtimes`. One model alone is ranked
    over these. Profiles may also follow the models. Models whose training may need more than `memory` ("4GB") are left
    out. The other keywords are those of `estimate`.
    """
    asked = Options(**options)
    given = [*profiles, *(m for m in models if isinstance(m, OBJECTS))]
    given += [asked.profile] if asked.profile is not None else []
    subjects = [resolve(m, inputs) for m in models if not isinstance(m, OBJECTS)]
    if memory is not None:
        subjects = _fitting(subjects, bytes_in(memory), asked)
    if runtimes and (given or asked.runtime):
        other = "profiles, which have their own" if given else "runtime"
        raise UsageError(f"runtimes does not go with {other}: leave out one of them")
    if not subjects or (len(subjects) == 1 and max(len(given), len(runtimes)) < 2):
        name = subjects[0].name if subjects else "nothing"
        raise UsageError(f"{name} alone is compared with nothing: name another model, two runtimes or two profiles")
    if given:
        estimators, names = _with_profiles(subjects, given, asked)
    else:
        estimators, names = _in_runtimes(subjects, runtimes, asked), []
    networks = [subject.network for subject in subjects]
    if len(networks) == 1:
        return rank(networks[0], estimators, asked.allocator, names)
    return compare_networks(networks, estimators, asked.allocator, names)


def _fitting(subjects: Sequence[ResolvedModel], limit_bytes: float, options: Options) -> list[ResolvedModel]:
    """The models that fit into memory with their whole interval; each other one is named."""
    kept = []
    for subject in subjects:
        setup = TrainingSetup(optimizer=options.optimizer or "sgd", dtype=options.dtype or "float32")
        found = StepMemory(subject, setup, options.allocator).usual
        if found is None or found.interval[1] <= limit_bytes:
            kept.append(subject)
            continue
        needs = f"{subject.name} may need {units.bytes(found.interval[1])} of memory, more than"
        options.say(f"{needs} {units.bytes(limit_bytes)}: left out")
    if len(kept) < min(2, len(subjects)):
        raise UsageError(f"{len(kept)} of {len(subjects)} models fit into {units.bytes(limit_bytes)}: give more memory")
    return kept


def _with_profiles(
    subjects: Sequence[ResolvedModel], given: Sequence[AnyProfile], options: Options
) -> tuple[list[Estimator], list[str]]:
    """An estimator of each profile, whichever device it is of, and the names of those that are files."""
    estimators = []
    for one in given:
        if isinstance(one, Estimator):
            estimators.append(one)
            continue
        known, file = _profile(one), isinstance(one, (str, Path))
        known = known.on_threads(options.threads or known.setup.threads) or known
        check_same_setup(known.setup, options, str(one) if file else "the profile")
        if "worker" not in known.device:  # a worker of others knows by itself what it can build
            for subject in subjects:
                if lacks := list(unsupported_layers(subject.network, known.setup.runtime)):
                    where = one if file else f"the profile of {known.setup.runtime}"
                    raise ModelError(f"{refusal(known.setup.runtime, lacks)} of {subject.name}: leave out {where}")
        estimators.append(estimator_for(known, options.watts_per_core))
    files = all(isinstance(one, (str, Path)) for one in given)
    return estimators, [Path(str(one)).stem for one in given] if files else []


def _profile(given: AnyProfile) -> Profile:
    if isinstance(given, Profile):
        return given
    return given.profile if isinstance(given, (Estimator, ProfilingResult)) else load_profile(given)


def _in_runtimes(subjects: Sequence[ResolvedModel], runtimes: Sequence[str], options: Options) -> list[Estimator]:
    """An estimator of each runtime of the device, from one profile that is certain of all models."""
    with options.opened() as options, options.opened_device() as opened:
        common = with_own_optimizer(options, *subjects)
        common = replace(common, optimizer=common.optimizer or TrainingSetup().optimizer)  # the same for all models
        settings = [replace(common, runtime=name) for name in runtimes or (options.runtime,)]
        if runtimes:  # before any time is spent on the first
            for subject in subjects:
                for setting in settings:
                    setup = setting.setup_on(opened)
                    if setting.extend and subject.trainable:
                        check_setup(opened, setup)
                    check_builds(subject.network, subject.name, setup.runtime, opened.capabilities(setup.runtime))
        return [[ensure_profile(subject, setting) for subject in subjects][-1].estimator for setting in settings]


def prune(
    model: Model,
    inputs: Any = None,
    budget: str | float | None = None,
    profile: AnyProfile | None = None,
    strategy: str = "energy",
    *,
    keep: Sequence[str] = (),
    confidence: float = 0.5,
    iterations: int | None = None,
    battery: str | None = None,
    memory: str | float | None = None,
    short_training: Callable[[nn.Module], float] | None = None,
    calibration: Sequence[Any] = (),
    check: bool | None = None,
    out: Path | str | None = None,
    **options: Unpack[DeviceKeywords],
) -> Pruned:
    """A copy of the model with fewer channels, whose training stays inside a budget; the model itself is not changed.

    `budget` is a share (0.5 or "50%"), joules of an iteration ("5mJ"), of a run of `iterations`, or of a battery.
    `short_training` takes a candidate of the random strategy and returns its loss after a few of your own steps.
    `calibration` are batches of your inputs, on which the energy_aware strategy compares outputs of layers.
    `check` trains original and result on the device for some seconds in turn, to see that the budget holds; by default
    where the device's own profile is used. `memory` is a second budget, such as "4GB": where the result may need more,
    it is pruned further. `out` saves the result as .json or .pt2. The other keywords are those of `estimate`.
    """
    from ampere.pruning.checking import opened_check, why_unchecked
    from ampere.pruning.pruning import prune as prune_model
    from ampere.pruning.saving import check_writable, save

    asked = replace(Options(**options), profile=profile)
    subject = resolve(model, inputs)
    loaded, joules = subject.loaded, joules_in(battery) if battery else None
    refuse_flax(loaded.model, "pruned")
    refuse_step(loaded, "pruned")
    limit = None if memory is None else bytes_in(memory)
    budget = _checked_budget(budget, loaded.model, iterations, joules, keep)
    if out:
        check_writable(Path(out))
    with asked.opened() as asked, asked.opened_device() as opened:
        known = ensure_profile(subject, asked)
        unmeasured = "as asked for" if check is False else ""
        if check is None and isinstance(profile, OBJECTS):
            unmeasured = "the profile was given: check=True measures"
        unmeasured = unmeasured or ("" if check else why_unchecked(opened, known.profile, known.network))
        at: AbstractContextManager[Check | None] = nullcontext()
        if not unmeasured:
            at = opened_check(loaded, opened, known.profile, asked.allocator, subject.network)
        prune_to = partial(
            prune_model,
            loaded,
            None,
            estimator=known.estimator,
            strategy=strategy,
            keep=keep,
            confidence=confidence,
            iterations=iterations,
            battery_joules=joules,
            allocator=asked.allocator,
            seed=asked.seed,
            short_training=short_training,
            calibration=calibration,
            on_progress=lambda done, total, text: asked.report("pruning", done, total, text),
        )
        if limit is not None:
            budget = _within_memory(prune_to, budget, limit, known)
        with at as checking:
            pruned = prune_to(budget, check=checking)
    if limit is not None:
        pruned = replace(pruned, memory=_memory_of(pruned, known).within(limit))
    written = save(pruned, Path(out)) if out else []
    return replace(pruned, unmeasured=unmeasured, written=tuple(written))


def _within_memory(
    prune_to: Callable[..., Pruned], budget: str | float, limit_bytes: float, known: ProfiledEstimate
) -> str | float:
    """The budget, made smaller until the pruned model fits into memory with its whole interval."""
    for _ in range(MEMORY_TRIES):
        found = prune_to(budget)
        needed = _memory_of(found, known).interval[1]
        if needed <= limit_bytes:
            return budget
        budget = f"{SMALLER * found.after.joules:.9g}J"
    raise UsageError(
        f"the pruned model may still need {units.bytes(needed)} of memory, more than {units.bytes(limit_bytes)}: "
        "give more memory, or a smaller batch"
    )


def _memory_of(pruned: Pruned, known: ProfiledEstimate) -> MemoryEstimate:
    subject = ResolvedModel(pruned.original.name, loaded=replace(pruned.original, model=pruned.model))
    return StepMemory(subject, known.profile.setup, pruned.after.allocator, runtime_bytes_in(known.profile)).at(None)


def _checked_budget(
    budget: str | float | None, model: nn.Module, iterations: int | None, battery: float | None, keep: Sequence[str]
) -> str | float:
    """Refuses what cannot be pruned before any time is spent on profiling."""
    from ampere.pruning.budget import joules_allowed
    from ampere.pruning.probing import check_layers
    from ampere.pruning.structure import need_torch_pruning

    if budget is None:
        raise UsageError("a budget is missing: give a share or joules, such as budget='50%' or budget='5mJ'")
    joules_allowed(budget, 1.0, iterations, battery)
    check_layers(model, keep)
    need_torch_pruning()
    return budget


def search(
    space: str,
    budget: str | float,
    *profiles: AnyProfile,
    optimizers: Sequence[str] = (),
    train: str | Train | None = None,
    vary: Mapping[str, Values] | None = None,
    batches: Sequence[int] = (),
    candidates: int | None = None,
    trials: int = 12,
    steps: int = 300,
    confidence: float = 0.9,
    iterations: int | None = None,
    battery: str | None = None,
    memory: str | float | None = None,
    input: str | None = None,
    mode: str = "capacity",
    power: float | None = None,
    on_trial: Callable[[Found], None] = lambda found: None,
    **options: Unpack[OptionKeywords],
) -> Found:
    """The best networks of a space inside an energy budget: many are compared by their estimates, a few are trained.

    `space` is a family, a general space, or `file.py:function` whose arguments `vary`. Each of the `optimizers` has a
    profile of its own, made where it is missing. `train(model, candidate)` returns an accuracy from 0 to 1; `trials=0`
    trains nothing. `on_trial` is called after each. `power` (watts) and `memory` ("4GB") are further limits. With
    `mode="hyperpower"` what was trained decides what is trained next, and what learns nothing is stopped early. The
    other keywords are those of `estimate`.
    """
    from ampere.searching.searching import allowed_joules, space_of
    from ampere.searching.searching import search as search_space
    from ampere.searching.training import of_user

    asked = Options(**options)
    space_of(space, vary or {}, batches, input, asked.seed)  # what makes no sense is refused before profiling
    allowed_joules(budget, 1.0, iterations, joules_in(battery) if battery else None)
    limit = None if memory is None else bytes_in(memory)
    run = of_user(train) if isinstance(train, str) and trials else train
    estimators = _by_optimizer(space, input, profiles, optimizers, asked)
    return search_space(
        space,
        budget,
        *estimators,
        train=run,
        vary=vary,
        batches=batches,
        candidates=candidates,
        trials=trials,
        steps=steps,
        confidence=confidence,
        iterations=iterations,
        battery=battery,
        memory_bytes=limit,
        allocator=asked.allocator,
        input=input,
        seed=asked.seed,
        mode=mode,
        power=power,
        on_progress=lambda done, total, text: asked.report(f"searching {space}", done, total, text),
        on_trial=on_trial,
    )


def _by_optimizer(
    space: str, input: str | None, profiles: Sequence[AnyProfile], optimizers: Sequence[str], options: Options
) -> list[Estimator]:
    """An estimator for each optimizer: of the profiles given, or of the device's own."""
    given = [*profiles, *([options.profile] if options.profile is not None else [])]
    if not given:
        subject = resolve(space, input)
        names = optimizers or (options.optimizer or "sgd",)
        with options.opened() as opened:
            return [ensure_profile(subject, replace(opened, optimizer=name)).estimator for name in names]
    with options.opened() as opened:
        known = [_estimator(one, opened) for one in given]
    there = {estimator.profile.setup.optimizer for estimator in known}
    for name in optimizers:
        if name not in there:
            raise UsageError(
                f"no profile given is of {name}, but of {', '.join(sorted(there))}: leave out --optimizers, "
                f"or make one with `ampere profile --optimizer {name}`"
            )
    return [estimator for estimator in known if estimator.profile.setup.optimizer in (optimizers or there)]


def _estimator(given: AnyProfile, options: Options) -> Estimator:
    if isinstance(given, Estimator):
        return given
    known = stored_profile(replace(options, profile=given, optimizer=None))
    assert known is not None  # a file that is named is there, or refused
    return estimator_for(known, options.watts_per_core)


def validate(
    model: Model,
    inputs: Any = None,
    *,
    methods: Sequence[str] | None = None,
    networks: int = 60,
    rounds: int = ROUNDS,
    others: Sequence[Profile] | None = None,
    baseline_samples: int = 0,
    **options: Unpack[OptionKeywords],
) -> Validation:
    """Really trains random networks like the model that were not profiled, and compares the estimates of every method.

    Where a user's own code can be run, the networks are the model itself and smaller ones that its own function builds
    from smaller arguments; else they are built from the description of its layers, with narrower widths.
    `methods` names those to compare; by default all that can learn from the usual profile. `others` are further
    profiles that they learn from; by default those that the named methods need, profiled for as long where they are
    missing. Methods that learn from isolated layers get at least `baseline_samples` measurements, however long that
    takes. The allocator is "tuned" unless another one is named. The other keywords are those of `estimate`.
    """
    inputs, given = profile_apart(inputs, options.get("profile"))
    asked = replace(Options(**options), profile=given, allocator=options.get("allocator", "tuned"))
    if networks < 1:
        raise UsageError(f"{networks} networks cannot be validated on: give 1 or more")
    if rounds < 1:
        raise UsageError(f"{rounds} rounds measure nothing: give 1 or more")
    if baseline_samples < 0:
        raise UsageError(f"baseline_samples is {baseline_samples}, but must be 0 or more: give a number such as 2000")
    subject = resolve(model, inputs)
    with asked.opened() as asked, asked.opened_device() as opened:
        profile = _to_validate(subject, asked)
        asked = replace(asked, threads=profile.setup.threads)  # those of a profile that was named
        check_setup(opened, profile.setup)
        check_same_meter(opened, profile.meter)
        every = list(others or ())
        if others is None:
            every = baseline_profiles(opened, subject, asked, methods or (), baseline_samples)
        source = built_by(opened, profile.setup.runtime, subject.source())
        allocator = opened.allocator(asked.allocator)
        own_code = _trains_own_code(opened, subject, profile)
        if own_code:
            tested = by_own_code(subject.loaded, source.original(), networks, Random(f"validate {asked.seed}"))
        else:
            tested = unseen(source, (profile, *every), networks, asked.seed)
        experiments = [e.under(allocator) for e in tested]
        task, left_out = f"training {len(experiments)} networks", dict[int, str]()
        with opened.fresh(watts_in(profile.meter.scope), asked.seed + 1) as workers:
            twice = partial(
                measure_twice,
                profile=profile,
                seed=asked.seed,
                on_progress=lambda done, total: asked.report(task, done, total, f"{done} of {total} blocks"),
                rounds=rounds,
                left_out=left_out,
            )
            pairs = twice(experiments, workers[allocator])
            papers = opened.is_real and any(known.method == IN_LOOPS for known in (profile, *every))
            loops = twice(experiments, InLoops(workers[allocator])) if papers else []
    found = compare_methods(subject.name, pairs, profile, allocator, every, methods, loops)
    if not found.rows:
        reason = next(iter(left_out.values()), "close other programs and try again")
        raise DeviceError(f"no network gave a usable figure: {reason}")
    return replace(found, left_out=tuple(left_out.values()), own_code=own_code)


def _trains_own_code(device: Device, subject: ResolvedModel, profile: Profile) -> bool:
    """Whether a user's own code is the truth, and not networks that are built from a description of its layers."""
    users = isinstance(subject.source(), ModelSource) and subject.own_code and not subject.is_flax
    return users and device.is_real and runs_own_code(device, profile.setup.runtime, flax=False)


def _to_validate(subject: ResolvedModel, options: Options) -> Profile:
    """A profile that was given may be of any method; the device's own must estimate layer by layer."""
    if isinstance(options.profile, Profile):
        return options.profile
    return ensure_profile(subject, options).profile


def report(
    *models: Model,
    inputs: Any = None,
    profiles: Sequence[AnyProfile] = (),
    validation: Path | str | None = None,
    iterations: int | None = None,
    epochs: int | None = None,
    samples: int | None = None,
    battery: str | None = None,
    out: Path | str | None = None,
    format: str = "html",
    group_by: str | None = None,
    **options: Unpack[OptionKeywords],
) -> Report:
    """What the device is, where the energy of each model goes, and how certain that is, as a report.

    It is about the first of the `profiles`, by default the device's own, made or extended for the models; further
    profiles are shown side by side. `validation` is a file of `ampere validate --json`. A run is `iterations` long, or
    `epochs` of so many `samples`. With `out` the report is written: one HTML file, or a folder of charts where `format`
    is svg or png. `group_by` is "block" or "layer". The other keywords are those of `estimate`.
    """
    from ampere.estimation.training_run import iterations_of_epochs
    from ampere.reporting import Run, make_report, read_validation, write_report

    asked = Options(**options)
    subjects = [resolve(model, inputs) for model in models]
    known = _reported(subjects, profiles, asked)
    networks, joules = [subject.network for subject in subjects], joules_in(battery) if battery else None
    runs = []
    for network in networks:
        count = iterations_of_epochs(epochs, samples, network.batch) if epochs and samples else iterations
        runs.append(Run(count, joules, battery or ""))
    if out is None:
        checked = read_validation(Path(validation)) if validation else None
        return make_report(
            known[0], networks, runs, checked, asked.allocator, asked.watts_per_core, known[1:], group_by=group_by
        )
    return write_report(
        known,
        networks,
        out,
        format=format,
        runs=runs,
        validation=validation,
        allocator=asked.allocator,
        watts_per_core=asked.watts_per_core,
        group_by=group_by,
    ).report


def _reported(subjects: Sequence[ResolvedModel], profiles: Sequence[AnyProfile], options: Options) -> list[Profile]:
    given = [*([options.profile] if options.profile is not None else []), *profiles]
    if given:
        return [_profile(one) for one in given]
    with options.opened() as options:
        if subjects:
            return [[ensure_profile(subject, options) for subject in subjects][-1].profile]
        stored = stored_profile(options)
    if stored is None:
        raise UsageError("there is no profile of this device yet: name a model, or give profiles=[...]")
    return [stored]
