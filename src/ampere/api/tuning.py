"""What makes training a model cheaper without changing what is learnt, tried on its own code."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from ampere.core import Meter
from ampere.core.errors import UsageError
from ampere.devices import LOCAL, Device
from ampere.meters import DEFAULT_WATTS_PER_CORE, CpuTimeMeter, watts_in
from ampere.models.loading import refuse_step
from ampere.profiling.capabilities import check_setup, itself
from ampere.profiling.tuning import ALLOWABLE, Tuning, changes_for, pairs_of, try_changes

from .models import Model, resolve
from .options import Options, Progress
from .profiles import with_own_optimizer

SECONDS = 120.0


def tune(
    model: Model,
    *,
    seconds: float = SECONDS,
    allow: Sequence[str] = (),
    device: str | Device = LOCAL,
    optimizer: str | None = None,
    dtype: str | None = None,
    threads: int | None = None,
    watts_per_core: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    notice: Callable[[str], None] | None = None,
) -> Tuning:
    """Tries changes that may make training a model cheaper, on its own code, and says what each saves.

    Each change is tried in pairs of fresh processes, with it and without. What seems to save is tried a second time,
    and only what that confirms is `advice`. `seconds` is about how long. Changes that alter what is learnt, or compile
    for long, are tried where `allow` names them: `"bfloat16"`, `"compile"`, `"batch"`.
    """
    if unknown := [name for name in allow if name not in ALLOWABLE]:
        raise UsageError(f"{unknown[0]!r} is nothing to allow: choose from {', '.join(ALLOWABLE)}")
    options = Options(
        device=device, runtime="torch", optimizer=optimizer, dtype=dtype, threads=threads, seconds=seconds,
        watts_per_core=watts_per_core, progress=progress, notice=notice,
    )  # fmt: skip
    subject = resolve(model)
    if not subject.own_code or subject.is_flax:
        raise UsageError(f"{subject.name} has no code that another process can run: name it as file.py:function")
    refuse_step(subject.loaded, "tuned")
    with options.opened_device() as opened:
        if not opened.is_local:
            raise UsageError(f"changes are tried on this machine, not on {opened.spec}: leave out --device")
        options = with_own_optimizer(options, subject)
        setup = options.setup_on(opened)
        check_setup(opened, setup)
        experiment = itself(opened, setup.runtime, subject.source()).under(opened.allocator("system"))
        watts = options.watts_on(opened) or watts_in(opened.meter.scope) or DEFAULT_WATTS_PER_CORE
    changes = changes_for(experiment.network, setup, _cores(), allow)

    def report(elapsed: float, expected: float, text: str) -> None:
        options.report(f"tuning {subject.name}", elapsed, expected, text)

    tried, joules = try_changes(changes, pairs_of(experiment, setup, watts), seconds, report)
    meter = Meter(**CpuTimeMeter(watts).describe())  # of processes that no counter is read in
    return Tuning(subject.name, joules, setup, experiment.network.batch, meter, tuple(tried))


def _cores() -> int:
    """The cores that this process may use."""
    allowed: Any = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1
