"""Profiling from the command line: with progress, and with a word about what is kept when it is stopped."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ampere.core.errors import AmpereError, DeviceError, Interrupted, ModelError

from .model_argument import name_of
from .options import how_of, setup_of
from .progress import of_profiling, reporting

if TYPE_CHECKING:
    from ampere.models.loading import LoadedModel
    from ampere.profiling.running import ProfilingResult


def run_profiling(
    model: str | LoadedModel, options: Namespace, out: Path | None = None, target: float = 0.0
) -> ProfilingResult:
    from ampere import api

    watts = getattr(options, "watts_per_core", None)
    how = how_of(options)
    ways = "".join(f" {way}" for way in how.values() if way not in ("additive", "yardstick"))
    ways += f" in {options.runtime}" if options.runtime else ""
    with reporting(f"profiling {name_of(model)}{ways}", options.quiet) as report:
        try:
            made = api.profile(
                model,
                seconds=options.seconds,
                target=target,
                out=out,
                setup=setup_of(options),
                watts_per_core=watts,
                seed=options.seed,
                foreign=options.foreign,
                device=options.device,
                **how,
                on_progress=of_profiling(report),
            )
        except KeyboardInterrupt:
            raise Interrupted(_kept(out, options)) from None
    if not made.profile.observations:
        raise _why_nothing(made, options)
    return made


def _why_nothing(made: ProfilingResult, options: Namespace) -> AmpereError:
    if made.refused:
        return ModelError(f"nothing could be trained; the first of {len(made.refused)} was {made.refused[0]}")
    return DeviceError(
        f"{seconds_asked(options):g} s were over before anything was measured: give more time, as in --seconds 30"
    )


def _kept(out: Path | None, options: Namespace) -> str:
    from ampere.storage.places import journal_path
    from ampere.storage.recording import observations_from

    journal = journal_path(out or default_place(options))
    first = next(observations_from(journal), None) if journal.exists() else None
    if first is None:
        return "stopped before anything was measured"
    if first.measurement.windows:
        return f"stopped; a log that comes later is of one whole run: delete {journal}, or name another with --out"
    return f"stopped; what was measured is kept in {journal}, the same command goes on from there"


def default_place(options: Namespace) -> Path:
    from ampere.devices import describe
    from ampere.meters import DEFAULT_WATTS_PER_CORE
    from ampere.storage.places import default_path

    device = describe(options.device, DEFAULT_WATTS_PER_CORE).identity
    return default_path(device, setup_of(options), **how_of(options))


def seconds_asked(options: Namespace) -> float:
    if options.seconds is not None:
        return float(options.seconds)
    from ampere.devices import describe
    from ampere.meters import DEFAULT_WATTS_PER_CORE
    from ampere.profiling.capabilities import known
    from ampere.profiling.meter_windows import steady_power
    from ampere.profiling.running import usual_seconds

    meter = describe(options.device, DEFAULT_WATTS_PER_CORE).meter
    compiles = known(options.device, setup_of(options).runtime).compiles
    return usual_seconds(meter, compiles, steady_power(meter, **how_of(options)))
