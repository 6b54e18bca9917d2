"""How accurate estimates are on a device, and the report of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from ampere.baselines.answers import IN_LOOPS
from ampere.core.errors import DeviceError, UsageError
from ampere.core.units import counted, parse_energy
from ampere.devices import Device, check_same_meter
from ampere.evaluation.validation import ROUNDS, InLoops, Validation, measure_twice, unseen
from ampere.evaluation.validation import compare as compare_methods
from ampere.meters import watts_in
from ampere.profiling.capabilities import built_by, check_setup, runs_own_code
from ampere.profiling.sources import ModelSource, by_own_code
from ampere.storage.profile import Profile

from .estimating import profile_apart
from .models import Model, ResolvedModel, resolve
from .options import AnyProfile, OptionKeywords, Options
from .profiles import baseline_profiles, ensure_profile
from .stored_profiles import given_profile, stored_profile

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ampere.reporting import Report


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
        task, left_out = f"training {counted(len(experiments), 'network')}", dict[int, str]()
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
    networks, joules = [subject.network for subject in subjects], parse_energy(battery) if battery else None
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
        return [given_profile(one) for one in given]
    with options.opened() as options:
        if subjects:
            return [[ensure_profile(subject, options) for subject in subjects][-1].profile]
        stored = stored_profile(options)
    if stored is None:
        raise UsageError("there is no profile of this device yet: name a model, or give profiles=[...]")
    return [stored]
