"""What one model costs: estimated, profiled, measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ampere.core.errors import ModelError, UsageError
from ampere.core.units import counted
from ampere.devices import LOCAL, Device, check_same_meter
from ampere.devices.core_watts import of_profile
from ampere.estimation.estimate import Estimate
from ampere.estimation.estimator import Estimator, estimator_for
from ampere.estimation.mixture import mixed
from ampere.meters import DEFAULT_WATTS_PER_CORE, watts_in
from ampere.profiling.capabilities import check_setup, itself, runs_own_code
from ampere.profiling.measuring import MeasuredStep, MeasureProgress, measure_experiment
from ampere.profiling.overheads import Timed, time_evaluating, time_loading
from ampere.profiling.running import ProfilingResult
from ampere.storage.profile import Profile

from .making_profiles import profiling_seconds, run_profiling
from .memory import StepMemory
from .models import Model, ResolvedModel, VariedModel, WholeDevice, resolve
from .options import AnyProfile, Options, Progress
from .profiles import at_current_speed, ensure_profile, with_own_optimizer
from .run import RunPlan, whole_run
from .stored_profiles import already_profiled, profile_like, stored_profile

OVERHEADS_AT_MOST = 3.0  # seconds of timing each
DEVICE_SECONDS = 120.0  # of profiling a whole device, where nobody says it


def device(
    spec: str = LOCAL,
    *,
    on: str | None = None,
    meter: str | None = None,
    watts_per_core: float | None = None,
    compile_limit: float | None = None,
    seed: int = 0,
) -> Device:
    """A device to use for many calls; close it, or use it in a `with` block.

    `spec` is `local`, `ssh://user@host`, `tcp://host:port`, `simulated:NAME` or `replayed:FILE`. `on` is the processor
    that trains there: `cpu`, `cuda`, `cuda:1`, `mps`, `xpu`, or `auto` for what PyTorch reports. `meter` and
    `compile_limit` (seconds) default to AMPERE_METER and AMPERE_COMPILE_LIMIT; `seed` is for simulated devices.
    """
    return Device(spec, on=on, meter=meter, watts_per_core=watts_per_core, compile_limit=compile_limit, seed=seed)


def estimate(
    model: Model,
    inputs: Any = None,
    *,
    profile: AnyProfile | None = None,
    device: str | Device = LOCAL,
    runtime: str | None = None,
    optimizer: str | None = None,
    dtype: str | None = None,
    threads: int | None = None,
    on: str | None = None,
    method: str = "additive",
    timing: str = "yardstick",
    seconds: float | None = None,
    meter: str | None = None,
    watts_per_core: float | None = None,
    compile_limit: float | None = None,
    allocator: str = "system",
    current_speed: bool = False,
    allow_other_device: bool = False,
    extend: bool = True,
    touch: float | None = None,
    iterations: int | None = None,
    epochs: int | None = None,
    samples: int | None = None,
    evaluate_every: str | int | None = None,
    evaluation_samples: int | None = None,
    data: str | None = None,
    accumulate: int = 1,
    checkpoint_every: str | int | None = None,
    price: str | float | None = None,
    grid: str | float | Sequence[str | float] | None = None,
    pue: float | None = None,
    battery: str | None = None,
    idle: str | float | None = None,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
    notice: Callable[[str], None] | None = None,
) -> Estimate:
    """What one training iteration of a model will cost, by layer, with its standard deviation.

    The device's own profile is used; it is made or extended first where it is not certain enough of the model, for
    `seconds`, unless `extend` is False. A `profile` that is given is used as it is. Code of the user's own that runs
    here is trained itself for a few seconds, once; `touch` of the result says what that showed.

    Args:
        model: a family (`"lenet5"`), `"file.py:function"`, a network file, a module with `inputs`, a function that
            builds one or does a whole training step, or what `load_model` and `trace` return.
        inputs: example inputs of a module, or their shape as in `"10x1x28x28"`; the batch comes first. Batches of
            several shapes are `"3*8x32 | 1*8x64"`, or pairs of a shape and its weight: the average is estimated.
        profile: a file, or what `ampere.profile` made.
        device: where it will be trained; a name, or what `ampere.device` opened.
        on: the processor that trains there: `"cpu"` (the default), `"cuda"`, `"cuda:1"`, `"mps"`, `"xpu"` or `"auto"`.
        seconds: how long to profile where that is needed; by default 15, and more for a slow counter or a compiler.
        allocator: `"system"` for a plain training loop, `"tuned"` for one whose allocator keeps its memory.
        current_speed: for the device as fast as it is now, instead of as it was when profiled.
        touch: seconds of training the model's own code; by default 5 where it runs here, 0 for never. A module in
            memory is trained by its operations, where this is given.
        iterations: the length of the whole run, or `epochs` of so many `samples`; `estimate.run` is its cost.
        evaluate_every: `"1epoch"` or a number of iterations, of `evaluation_samples` each; likewise `checkpoint_every`.
        data: `"file.py:function"` that returns the batches, or a data set: timed once.
        accumulate: batches from one update of the weights to the next.
        price: what a kilowatt-hour costs, as `"0.30/kWh"`.
        grid: `"400g/kWh"`, a country's code, or several; `pue` is the factor of the facility.
        battery: what a full battery holds, as `"15Wh"`; `idle` is what the device draws anyway, as `"8W"`.
        progress: called with a Progress while it profiles.
        notice: called with one line for each thing to know, such as why the device is profiled.
    """
    inputs, profile = profile_apart(inputs, profile)
    options = Options(
        profile=profile, device=device, runtime=runtime, optimizer=optimizer, dtype=dtype, threads=threads, on=on,
        method=method, timing=timing, seconds=seconds, meter=meter, watts_per_core=watts_per_core,
        compile_limit=compile_limit, allocator=allocator, allow_other_device=allow_other_device, extend=extend,
        seed=seed, progress=progress, notice=notice,
    )  # fmt: skip
    plan = RunPlan(
        iterations, epochs, samples, evaluate_every, evaluation_samples, data, accumulate, checkpoint_every, price,
        grid, pue, battery, idle,
    )  # fmt: skip
    subject = resolve(model, inputs)
    with options.opened() as options:
        known = ensure_profile(subject, options, touch=touch)
        known = at_current_speed(known, options) if current_speed else known
        return replace(known.estimate, run=whole_run(known, plan, subject, options))


def profile(
    model: Model | None = None,
    inputs: Any = None,
    *,
    seconds: float | None = None,
    own_end: bool = False,
    iterations_per_measurement: int | None = None,
    target: float = 0.0,
    once: bool = False,
    out: Path | str | None = None,
    like: Sequence[str | Path | Profile] = (),
    device: str | Device = LOCAL,
    runtime: str | None = None,
    optimizer: str | None = None,
    dtype: str | None = None,
    threads: int | None = None,
    on: str | None = None,
    method: str = "additive",
    timing: str = "yardstick",
    meter: str | None = None,
    watts_per_core: float | None = None,
    compile_limit: float | None = None,
    allow_other_device: bool = False,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
    notice: Callable[[str], None] | None = None,
) -> ProfilingResult:
    """Trains small networks like the model on a device, and stores what was learnt.

    Without a model the whole device is profiled, for any model: networks of every sort, and large layers alone, for
    two minutes. A profile that is there is extended; a run that was stopped goes on where it was. `seconds` are the
    device's own, simulated ones where it is simulated. `target` is an expected error to stop at, such as 0.03. With
    `once` nothing is trained where the profile knows the model, or the device, already. `out` is the profile's file;
    by default it is the device's own. A live module is profiled from the layers of its trace.
    With `own_end` the paper's method (`method="sequential"`) profiles until its own rule ends it.
    `iterations_per_measurement` are 500 in the paper; by default a measurement is as short as it can be. `like` are
    profiles of similar devices (files, devices, or names in the catalogue): estimates start from what these know, and
    need few measurements of their own.
    """
    if not 0 <= target < 1:
        raise UsageError(f"a target error of {target:g} makes no sense: give something like 3%")
    options = Options(
        device=device, runtime=runtime, optimizer=optimizer, dtype=dtype, threads=threads, on=on, method=method,
        timing=timing, seconds=seconds, meter=meter, watts_per_core=watts_per_core, compile_limit=compile_limit,
        allow_other_device=allow_other_device, seed=seed, progress=progress, notice=notice, own_end=own_end,
        iterations_per_measurement=iterations_per_measurement,
    )  # fmt: skip
    subject = WholeDevice() if model is None else resolve(model, inputs)
    if not subject.trainable:
        raise UsageError(f"{subject.name} is a network, which cannot be trained: name the model itself")
    with options.opened_device() as opened:
        watts = options.watts_on(opened)
        if watts is not None and watts_in(opened.meter.scope) is None:
            raise UsageError(f"joules of {opened.spec} come from a counter: leave out --watts-per-core")
        asked = replace(with_own_optimizer(options, subject), watts_per_core=watts)
        if model is None and seconds is None and not own_end:
            usual = profiling_seconds(opened, asked.setup_on(opened), asked)
            asked = replace(asked, seconds=max(DEVICE_SECONDS, usual))
        if once and (known := already_profiled(opened, subject, asked, out)):
            return known
        if like and method != "additive":
            raise UsageError(f"--method {method} cannot start from other devices: leave out --like, or --method")
        sources = [profile_like(name, asked.setup_on(opened)) for name in like]
        return run_profiling(opened, subject, asked, target=target, out=Path(out) if out else None, sources=sources)


def measure(
    model: Model,
    inputs: Any = None,
    *,
    seconds: float = 10.0,
    data: str | None = None,
    evaluation: bool = False,
    profile: AnyProfile | None = None,
    device: str | Device = LOCAL,
    runtime: str | None = None,
    optimizer: str | None = None,
    dtype: str | None = None,
    threads: int | None = None,
    on: str | None = None,
    meter: str | None = None,
    watts_per_core: float | None = None,
    compile_limit: float | None = None,
    allocator: str = "system",
    allow_other_device: bool = False,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
    notice: Callable[[str], None] | None = None,
) -> MeasuredStep:
    """What an iteration really costs: the model is trained on made-up data, in processes of its own.

    By its own code where the device can run that. A live module is trained from the description of its layers instead,
    and so is a model on another machine; `own_code` of the result says which. The estimate of a stored profile is
    returned with it, where there is one. `data` names a function (`"file.py:function"`) that returns what a training
    loop iterates over, or a data set (`"mnist:FOLDER"`, `"digits"`); with `evaluation` forward passes are timed too.
    """
    inputs, profile = profile_apart(inputs, profile)
    options = Options(
        profile=profile, device=device, runtime=runtime, optimizer=optimizer, dtype=dtype, threads=threads, on=on,
        seconds=seconds, meter=meter, watts_per_core=watts_per_core, compile_limit=compile_limit, allocator=allocator,
        allow_other_device=allow_other_device, extend=False, seed=seed, progress=progress, notice=notice,
    )  # fmt: skip
    subject = resolve(model, inputs)
    if evaluation and subject.is_step:
        raise UsageError(f"{subject.name} does a whole training step and nothing else: leave out --evaluation")
    with options.opened() as options, options.opened_device() as opened:
        options = with_own_optimizer(options, subject)
        if isinstance(subject, VariedModel):
            return _measured_over(opened, subject, options, seconds, data, evaluation)
        return _measured(opened, subject, options, seconds, data, evaluation)


def _measured_over(
    device: Device, subject: VariedModel, options: Options, seconds: float, data: str | None, evaluation: bool
) -> MeasuredStep:
    """An average iteration: each shape of batch is measured for its part of the seconds."""
    if data or evaluation:
        raise UsageError("data and evaluation are timed with batches of one shape: leave them out")
    each = seconds / len(subject.parts)
    found = [_measured(device, part, options, each, None, False) for _, part in subject.parts]
    shares = [share for share, _ in subject.parts]
    spreads = [step.spread for step in found if step.spread is not None]
    estimates = [step.estimate for step in found if step.estimate is not None]

    def mean(name: str) -> float:
        return sum(share * float(getattr(step, name)) for share, step in zip(shares, found, strict=True))

    return replace(
        found[shares.index(max(shares))],
        joules=mean("joules"),
        seconds=mean("seconds"),
        busy_seconds=mean("busy_seconds"),
        spread=max(spreads, default=None),
        rounds=min(step.rounds for step in found),
        iterations=sum(step.iterations for step in found),
        flags=tuple(dict.fromkeys(flag for step in found for flag in step.flags)),
        estimate=mixed(estimates, shares) if len(estimates) == len(found) else None,
    )


def _measured(
    device: Device, subject: ResolvedModel, options: Options, seconds: float, data: str | None, evaluation: bool
) -> MeasuredStep:
    setup, profile = options.setup_on(device), stored_profile(options)
    if profile:
        check_same_meter(device, profile.meter)
        setup = replace(setup, threads=options.threads or profile.setup.threads)
    check_setup(device, setup)
    if not device.is_local and (data or evaluation):
        raise UsageError(f"data and evaluation are timed on this machine, not on {device.spec}: leave them out")
    if evaluation and setup.runtime != "torch":
        raise UsageError(f"evaluation is timed with torch only, not with {setup.runtime}: leave one of them out")
    modelled = watts_in(profile.meter.scope) if profile else None
    named = options.watts_on(device)
    cores = None if named else of_profile(device.identity, profile.meter if profile else device.meter)
    watts = named or (cores.watts if cores else modelled or DEFAULT_WATTS_PER_CORE)
    experiment = itself(device, setup.runtime, subject.source()).under(device.allocator(options.allocator))
    if left_out := len(subject.network.layers) - len(experiment.network.layers):
        raise ModelError(
            f"{counted(left_out, 'layer is known by its', 'layers are known by their')} own code only, and a live "
            f"module cannot be built in another process: name {subject.name} as file.py:function"
        )
    overheads, each = list[Timed](), min(OVERHEADS_AT_MOST, seconds)
    if data:
        options.say(f"timing {data} ...")
        overheads.append(time_loading(data, subject.network.batch, each, watts))
    if evaluation:
        options.say("timing evaluation ...")
        overheads.append(time_evaluating(subject.name, experiment.workload, setup, each, watts))

    def report(p: MeasureProgress) -> None:
        options.report(f"training {subject.name}", p.elapsed, p.seconds, f"round {p.round}")

    found = measure_experiment(experiment, setup, seconds, device, watts, profile, report)
    found = replace(found, meter=cores.meter(found.meter)) if cores else found
    beside = None
    if profile:
        estimator = estimator_for(profile, named if modelled else None)
        beside = StepMemory(subject, setup, options.allocator, profile).estimate_with(estimator, options.allocator)
    own_code = subject.own_code and runs_own_code(device, setup.runtime, subject.is_flax)
    name, batch = subject.network.name or subject.name, subject.network.batch
    cpu = str(device.identity.get("cpu", device.identity["id"]))
    return MeasuredStep.of(found, name, setup, batch, cpu, own_code, beside, tuple(overheads))


def profile_apart(inputs: Any, profile: AnyProfile | None) -> tuple[Any, AnyProfile | None]:
    """A profile may also follow the model: `estimate(network, "profile.json")`."""
    names_file = isinstance(inputs, Path) or (isinstance(inputs, str) and not inputs[:1].isdigit())
    if profile is None and (names_file or isinstance(inputs, (Profile, Estimator, ProfilingResult))):
        return None, inputs
    return inputs, profile
