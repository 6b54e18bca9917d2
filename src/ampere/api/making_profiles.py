"""Profiling a model on an open device: how long, where the profile goes, and what is said meanwhile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ampere.core import TrainingSetup
from ampere.core.errors import AmpereError, DeviceError, Interrupted, ModelError
from ampere.core.units import counted, percent
from ampere.devices import Device
from ampere.estimation.learning import one_blas_thread
from ampere.profiling.attaching import deferred
from ampere.profiling.meter_windows import steady_power
from ampere.profiling.running import ProfilingResult, make_profile, usual_seconds
from ampere.profiling.strategies.strategy import Goal
from ampere.profiling.strategies.strategy import Progress as ProfilingProgress
from ampere.storage.places import default_path, journal_path
from ampere.storage.profile import Profile
from ampere.storage.recording import observations_from

from .models import ResolvedModel
from .options import Options

USUAL_METHOD = ("additive", "yardstick")


def run_profiling(
    device: Device,
    subject: ResolvedModel,
    options: Options,
    *,
    target: float = 0.0,
    samples: int = 0,
    out: Path | None = None,
    sources: Sequence[Profile] = (),
) -> ProfilingResult:
    """Profiles the model on an open device, with progress; a run that is stopped says what is kept.

    `sources` are profiles of devices like this one, which its estimates start from.
    """
    setup = options.setup_on(device)
    seconds = profiling_seconds(device, setup, options)
    unusual = [word for word in options.how if word not in USUAL_METHOD]
    task = " ".join([f"profiling {subject.name}", *unusual, *([f"in {options.runtime}"] if options.runtime else [])])
    path = out or default_path(device.identity, setup, *options.how)

    def report(p: ProfilingProgress) -> None:
        done, total = (p.elapsed, p.seconds) if p.share is None else (p.share, 1.0)
        options.report(task, done, total, _in_words(p))

    try:
        with one_blas_thread():
            made = make_profile(
                subject.source,
                setup,
                Goal(seconds, target, samples),
                device,
                path=path,
                watts_per_core=options.watts_per_core,
                seed=options.seed,
                allow_other_device=options.allow_other_device,
                method=options.method,
                timing=options.timing,
                iterations=options.iterations_per_measurement,
                on_progress=report,
                sources=tuple(replace(source, sources=(), runs=()) for source in sources),
            )
    except KeyboardInterrupt:
        raise Interrupted(_kept(path)) from None
    if not made.profile.observations:
        raise _nothing_measured(made, seconds)
    return made


def profiling_seconds(device: Device, setup: TrainingSetup, options: Options) -> float:
    """How long to profile: as long as the options say, or else as is usual there."""
    if options.own_end:
        return math.inf
    if options.seconds is not None:
        return options.seconds
    meter = device.meter
    return usual_seconds(meter, device.capabilities(setup.runtime).compiles, steady_power(meter, *options.how))


def _in_words(p: ProfilingProgress) -> str:
    error = "" if p.expected_error is None else f", expected error {percent(p.expected_error)}"
    compiling = f", {p.compile_seconds:.0f} s spent compiling" if p.compile_seconds else ""
    left = f"{p.elapsed:.0f} s" if p.share is not None else f"{max(0.0, p.seconds - p.elapsed):.0f} s left"
    return f"{left}, {counted(p.experiments, 'measurement')}{error}{compiling}"


def _nothing_measured(made: ProfilingResult, seconds: float) -> AmpereError:
    if made.refused:
        return ModelError(f"nothing could be trained; the first of {len(made.refused)} was {made.refused[0]}")
    more = max(30, 2 * seconds)
    return DeviceError(
        f"{seconds:g} s were over before anything was measured: give more time, as in --seconds {more:g}"
    )


def _kept(path: Path) -> str:
    journal = journal_path(path)
    first = next(observations_from(journal), None) if journal.exists() else None
    if first is None:
        return "stopped before anything was measured"
    if deferred(first.measurement):
        return f"stopped; a log that comes later is of one whole run: delete {journal}, or name another with --out"
    return f"stopped; what was measured is kept in {journal}, the same command goes on from there"
