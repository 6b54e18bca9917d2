"""Which job runs on which device of a fleet: estimates of every job on every device, and the plan that they lead to."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ampere.core import Network, TrainingSetup, work
from ampere.core.errors import AmpereError, UsageError
from ampere.estimation.estimator import Estimator
from ampere.estimation.training_run import iterations_of_epochs
from ampere.fleet.files import FleetDevice, Job, Read, read_fleet, read_jobs, start_of
from ampere.fleet.problem import DeviceLimits, JobLimits, Problem, joule_rates
from ampere.fleet.reports import reported, with_reports
from ampere.fleet.scheduling import Plan, plan
from ampere.models.loading import load_model

from .fleets import FleetStore, fleet_profile
from .memory import StepMemory
from .models import ResolvedModel, resolve

T = TypeVar("T")
TRAINING_FACTOR = 3.0  # FLOPs of a step over those of its forward pass


@dataclass(frozen=True)
class FleetPlan:
    """A plan, when it begins, and what was left out of it."""

    plan: Plan
    start: datetime
    problems: tuple[str, ...]  # one line for each entry or device that could not be used


def schedule(
    jobs: Path | str | Sequence[Job],
    devices: Path | str | Sequence[FleetDevice],
    *,
    objective: str = "joules",
    confidence: float = 0.95,
    seconds: float = 30.0,
    start: datetime | None = None,
    reports: Path | str | None = None,
    seed: int = 0,
    notice: Callable[[str], None] | None = None,
) -> FleetPlan:
    """Which job runs on which device of a fleet, and when.

    `jobs` and `devices` are TOML files, or what these hold. Every device needs a profile: its own, or the file that the
    fleet names. `objective` is "joules", "money", "carbon" or "completion". Batteries and deadlines hold with the
    probability `confidence`. The plan is found within about `seconds`. `reports` is a JSON file of what jobs have
    spent so far: what has ended is not planned again, and devices that were more expensive than estimated stay so.
    """
    say = notice or (lambda text: None)
    begin = start or (start_of(Path(jobs), datetime.now()) if isinstance(jobs, (str, Path)) else datetime.now())
    job_list, problems = _read(jobs, lambda path: read_jobs(path, begin))
    fleet, more = _read(devices, read_fleet)
    problems += more
    networks, left = _networks(_with_data(job_list, fleet, problems), problems)
    store = FleetStore.of(devices) if isinstance(devices, (str, Path)) else None
    estimators, fleet = _estimators(fleet, store, problems)
    usable = bool(left and fleet)
    for line in problems if usable else problems[1:]:
        say(line)
    if not usable:
        raise UsageError(problems[0] if problems else "there is nothing to schedule")
    problem = _problem(left, networks, fleet, estimators, objective, confidence, begin)
    if reports is not None:
        problem = with_reports(problem, reported(Path(reports)))
    found = plan(problem, seconds, seed=seed)
    return FleetPlan(found, begin, tuple(problems))


def _read(given: Path | str | Sequence[T], read: Callable[[Path], Read[T]]) -> tuple[list[T], list[str]]:
    if not isinstance(given, (str, Path)):
        return list(given), []
    found = read(Path(given))
    return list(found.entries), list(found.problems)


def _with_data(jobs: Sequence[Job], fleet: Sequence[FleetDevice], problems: list[str]) -> list[Job]:
    """The jobs whose data a device of the fleet has, or may have."""
    known = {word for device in fleet for word in (device.name, *device.labels)}
    for job in jobs:
        if unknown := sorted({*job.only_on} - known):
            problems.append(f"job {job.name!r}: no device has the name or label {', '.join(unknown)} of its data")
    return [job for job in jobs if not job.only_on or {*job.only_on} & known]


def _networks(jobs: Sequence[Job], problems: list[str]) -> tuple[dict[str, ResolvedModel], list[Job]]:
    """The model of each job; jobs with equal models share one. A model that cannot be built is named."""
    known: dict[str, ResolvedModel | AmpereError] = {}
    found, left = {}, []
    for job in jobs:
        key = repr((job.model, job.input, job.batch, sorted(job.arguments.items())))
        if key not in known:
            try:
                plain = not job.input and not job.batch and not job.arguments
                built = resolve(
                    job.model if plain else load_model(job.model, job.input, batch=job.batch, arguments=job.arguments)
                )
                known[key] = built if built.network.layers else UsageError("the model has no layers")
            except AmpereError as problem:
                known[key] = problem
        model = known[key]
        if isinstance(model, AmpereError):
            problems.append(f"job {job.name!r}: {_in_words_of_a_job(str(model))}")
        else:
            found[job.name] = model
            left.append(job)
    while lost := [job for job in left if not {*job.after} <= found.keys()]:
        problems += [f"job {job.name!r} waits for one that is left out" for job in lost]
        left = [job for job in left if job not in lost]
        found = {job.name: found[job.name] for job in left}
    return found, left


def _in_words_of_a_job(problem: str) -> str:
    """What the command line has flags for, a job has keys for."""
    problem = re.sub(r"--arg (\w+)=VALUE", r"\1 = VALUE under [job.arguments]", problem)
    return re.sub(r"--input (\d\S*\d)", r'input = "\1"', problem).replace("--input", "input")


def _estimators(
    fleet: Sequence[FleetDevice], store: FleetStore | None, problems: list[str]
) -> tuple[dict[str, Estimator], list[FleetDevice]]:
    """The estimator of each device that has a profile; devices that cannot be used are named.

    Devices of one address and profile share an estimator: a fleet may have a thousand of a kind.
    """
    found: dict[str, Estimator] = {}
    known: dict[tuple[object, ...], Estimator | AmpereError] = {}
    for device in fleet:
        own = store.path(device) if store is not None and store.path(device).exists() else device.profile
        setup = (device.runtime, device.optimizer, device.dtype, device.threads, device.on)
        key = (device.address, str(own), device.meter, device.seed, *setup)
        if key not in known:
            try:
                known[key] = Estimator(fleet_profile(device, store)[0])
            except AmpereError as problem:
                known[key] = problem
        estimator = known[key]
        if isinstance(estimator, AmpereError):
            problems.append(f"device {device.name!r} is left out: {estimator}")
        else:
            found[device.name] = estimator
    return found, [device for device in fleet if device.name in found]


def _problem(
    jobs: Sequence[Job],
    models: dict[str, ResolvedModel],
    fleet: Sequence[FleetDevice],
    estimators: dict[str, Estimator],
    objective: str,
    confidence: float,
    start: datetime,
) -> Problem:
    steps, notes = _steps(jobs, models, fleet, estimators)
    counts = np.array([iterations(job, models[job.name].network) for job in jobs], dtype=float)
    joules, stddev, seconds = (counts[:, None] * steps[:, :, part] for part in range(3))
    limits = tuple(_limits(device, objective, start) for device in fleet)
    memory = {id(model): _memory(model) for model in models.values()}
    return Problem(
        tuple(_job_limits(job, models[job.name], fleet, memory) for job in jobs),
        limits, joules, stddev, seconds, objective, confidence, notes,
    )  # fmt: skip


def _steps(
    jobs: Sequence[Job],
    models: dict[str, ResolvedModel],
    fleet: Sequence[FleetDevice],
    estimators: dict[str, Estimator],
) -> tuple[NDArray[np.float64], dict[tuple[str, str], str]]:
    """Joules, standard deviation and seconds of an iteration, [jobs, devices, 3]; nan and a note where none is known.

    Each model is estimated once for all devices that share an estimator.
    """
    different = list({id(model): model for model in models.values()}.values())
    kinds = list(dict.fromkeys((estimators[device.name], device.condition) for device in fleet))
    table, failed = np.full((len(different), len(kinds), 3), np.nan), dict[tuple[int, int], str]()
    for m, model in enumerate(different):
        for k, (estimator, condition) in enumerate(kinds):
            found = _step(estimator, model.network, condition)
            if isinstance(found, str):
                failed[m, k] = found
            else:
                table[m, k] = found
    number = {id(model): m for m, model in enumerate(different)}
    of_job = np.array([number[id(models[job.name])] for job in jobs])
    of_device = np.array([kinds.index((estimators[device.name], device.condition)) for device in fleet])
    notes = {
        (job.name, device.name): failed[of_job[j], of_device[d]]
        for j, job in enumerate(jobs if failed else ())
        for d, device in enumerate(fleet)
        if (of_job[j], of_device[d]) in failed
    }
    return table[of_job][:, of_device], notes


def _step(estimator: Estimator, network: Network, condition: float) -> tuple[float, float, float] | str:
    """Joules, standard deviation and seconds of one iteration; or why there is no estimate."""
    try:
        found = estimator.estimate(network, condition=None if condition == 1.0 else condition)
    except AmpereError as problem:
        return str(problem)
    return found.joules, found.stddev, found.seconds


def iterations(job: Job, network: Network) -> int:
    """How many iterations a job takes."""
    return job.iterations or iterations_of_epochs(job.epochs or 0, job.samples or 0, network.batch)


def _limits(device: FleetDevice, objective: str, start: datetime) -> DeviceLimits:
    prices = device.price if objective == "money" else device.carbon
    if objective in ("money", "carbon") and not prices:
        word = "price" if objective == "money" else "carbon"
        raise UsageError(
            f"device {device.name!r} has no {word}: add `{word} = ...` (for a kilowatt-hour) to the fleet file"
        )
    rates = joule_rates(device.rates(prices, start)) if objective in ("money", "carbon") else ((0.0, 1.0),)
    return DeviceLimits(
        device.name,
        device.battery_joules,
        device.memory_bytes,
        device.windows(start),
        rates,
        device.watts_idle,
    )


def _memory(model: ResolvedModel) -> float:
    """Bytes that training it may take; 0 where that is not known."""
    found = StepMemory(model, TrainingSetup()).usual
    return 0.0 if found is None else float(found.interval[1])


def _job_limits(job: Job, model: ResolvedModel, fleet: Sequence[FleetDevice], memory: dict[int, float]) -> JobLimits:
    there = frozenset[str]()
    if job.only_on:
        having = [d.name for d in fleet if {d.name, *d.labels} & {*job.only_on}]
        there = frozenset(having or job.only_on)  # where nobody has it, the plan says so
    flops = TRAINING_FACTOR * sum(work(layer).flops for layer in model.network.layers) * iterations(job, model.network)
    needed = memory[id(model)] if job.memory_bytes is None else job.memory_bytes
    return JobLimits(job.name, job.deadline, job.release, needed, there, flops, job.after)
