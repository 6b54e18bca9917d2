"""A touch of a model's own code: trained for a few seconds, stored, and combined with what its layers say."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ampere.core.errors import AmpereError, BusyError, UsageError
from ampere.core.setup import CPU
from ampere.devices import Device, check_same_meter
from ampere.estimation.normalization import reference_of
from ampere.estimation.own_code import with_own_code
from ampere.meters import DEFAULT_WATTS_PER_CORE, watts_in
from ampere.profiling.capabilities import itself, runs_own_code
from ampere.profiling.experiment import Experiment
from ampere.profiling.measuring import MeasureProgress, rounds_of
from ampere.profiling.plain_processes import Effort
from ampere.storage.profile import Observation
from ampere.storage.recording import keep_apart

from .memory import StepMemory
from .models import ResolvedModel
from .options import Options

if TYPE_CHECKING:
    from .profiles import ProfiledEstimate

USUAL_SECONDS, MOST_SECONDS = 5.0, 600.0
PROCESSES = 3


def check_touch(seconds: float | None) -> None:
    if seconds is not None and not 0 <= seconds <= MOST_SECONDS:
        raise UsageError(f"touch is {seconds:g} s, but must be between 0 and {MOST_SECONDS:g}: leave it out for 5 s")


def touched(
    known: ProfiledEstimate, device: Device, subject: ResolvedModel, options: Options, touch: float | None
) -> ProfiledEstimate:
    """The estimate combined with `touch` seconds of training the model's own code.

    What was seen is stored in the device's own profile, but not in one that was given. Where nobody says how long, a
    user's model is trained once, where its code runs here.
    """
    seconds = _usual_seconds(known, device, subject, options) if touch is None else touch
    if not seconds:
        return known
    experiment = _itself(known, device, subject)
    if experiment is None:
        raise UsageError(f"the own code of {subject.name} cannot be trained on {device.spec}: leave out --touch")
    try:
        seen = _trained(known, device, subject, experiment, seconds, options)
    except AmpereError as error:
        if touch is not None:
            raise
        options.say(f"the estimate is by its layers alone, because its own code was not trained: {error}")
        return known
    profile, touches = known.profile, (*known.touches, *seen)
    if known.path and not options.profile:
        try:
            profile = keep_apart(known.path, seen, threads=known.profile.setup.threads)
        except BusyError as busy:
            options.say(f"what its own code showed is not stored: {busy}")
    memory = StepMemory(subject, profile.setup, options.allocator, profile, touches)
    layers = memory.estimate_with(known.estimator, options.allocator)
    estimate = with_own_code(known.estimator, layers, known.network, touches)
    return replace(known, profile=profile, estimate=estimate, step_memory=memory, touches=touches)


def _usual_seconds(known: ProfiledEstimate, device: Device, subject: ResolvedModel, options: Options) -> float:
    """How long a model's own code is trained where nobody says it: not at all where it was, or is not the user's."""
    users = device.is_local and not subject.is_family and _runs_own_code(known, device, subject)
    if not users or device.capabilities(known.profile.setup.runtime).compiles:  # each process would compile it
        return 0.0
    allowed = options.extend and not options.profile and options.timing == "yardstick" and not known.estimate.touch
    return USUAL_SECONDS if allowed else 0.0


def _runs_own_code(known: ProfiledEstimate, device: Device, subject: ResolvedModel) -> bool:
    runtime = known.profile.setup.runtime
    return subject.own_code and not subject.is_flax and runs_own_code(device, runtime, flax=False)


def _itself(known: ProfiledEstimate, device: Device, subject: ResolvedModel) -> Experiment | None:
    """The model by its own code, or, where it exists in this process only, by its operations; None where neither
    can be trained."""
    setup = known.profile.setup
    here = device.is_local and (setup.runtime, setup.on, setup.dtype) == ("torch", CPU, "float32")
    if not (_runs_own_code(known, device, subject) or (here and subject.trainable and not subject.is_flax)):
        return None
    experiment = itself(device, setup.runtime, subject.source()).under(known.estimate.allocator)
    if not experiment.workload.keys() & {"factory", "program"}:
        return None
    return replace(experiment, network=known.network, purpose="touch")


def _trained(
    known: ProfiledEstimate,
    device: Device,
    subject: ResolvedModel,
    experiment: Experiment,
    seconds: float,
    options: Options,
) -> list[Observation]:
    """An observation of each process that trained the model itself."""
    profile = known.profile
    check_same_meter(device, profile.meter)
    watts = watts_in(profile.meter.scope) or DEFAULT_WATTS_PER_CORE

    def report(p: MeasureProgress) -> None:
        options.report(f"training {subject.name} itself", min(p.elapsed, seconds), seconds, f"process {p.round}")

    effort = Effort(seconds, fewest=1, most=PROCESSES, ends_sharply=True)
    reference, guess = reference_of(profile), known.estimate.seconds
    return rounds_of(experiment, profile.setup, effort, device, watts, reference, report, guess)[0]
