"""Which of several models, devices or runtimes is cheapest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.comparison import Comparison, Ranking, rank
from ampere.comparison import compare as compare_networks
from ampere.core import TrainingSetup, units
from ampere.core.errors import ModelError, UsageError
from ampere.estimation.estimator import Estimator, estimator_for
from ampere.profiling.capabilities import check_builds, check_setup
from ampere.runtimes.table import refusal

from .memory import StepMemory, bytes_in
from .models import Model, ResolvedModel, resolve
from .options import PROFILE_OBJECTS, AnyProfile, OptionKeywords, Options
from .profiles import ensure_profile, unsupported_layers, with_own_optimizer
from .stored_profiles import check_same_setup, given_profile

if TYPE_CHECKING:
    from typing_extensions import Unpack


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
    given = [*profiles, *(m for m in models if isinstance(m, PROFILE_OBJECTS))]
    given += [asked.profile] if asked.profile is not None else []
    subjects = [resolve(m, inputs) for m in models if not isinstance(m, PROFILE_OBJECTS)]
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
        known, file = given_profile(one), isinstance(one, (str, Path))
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
