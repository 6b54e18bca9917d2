"""A whole training run: its length, what it does between the steps, and what it is asked about.

RunPlan (what the user says) --> parts timed once, where the model's code runs here; assumed elsewhere --> TrainingRun
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields

from ampere.core.errors import UsageError
from ampere.core.units import counted, parse_energy, parse_power
from ampere.estimation.estimate import Estimate
from ampere.estimation.running_costs import Tariff, parse_facility_factor, parse_grids, parse_price
from ampere.estimation.training_run import Battery, RunPart, TrainingRun, training_run
from ampere.meters import watts_in
from ampere.profiling.capabilities import itself
from ampere.profiling.overheads import InSteps, Timed, can_time_parts, time_loading, time_parts
from ampere.storage.profile import Profile, same_device

from .models import ResolvedModel
from .options import Options
from .profiles import ProfiledEstimate

TIMED_SECONDS = 2.0
EVALUATED_SHARE = 0.2  # of the training set, where nobody says
LOADING_STDDEV = 0.1  # relative: it is timed once, as fast as the machine is then
LEAST_LOADING = 0.03  # of a step's seconds, from which on it is timed between steps
LENGTH = ("iterations", "epochs", "samples")
# What parts cost where they cannot be timed: a forward pass is about a third of a step.
ASSUMED = {"evaluation": InSteps(1 / 3, 1 / 3, 0.08), "checkpoint": InSteps(5.0, 5.0, 5.0)}
_EVERY = re.compile(r"(?P<number>[0-9][0-9_,]*)?\s*(?P<unit>epochs?|iterations?|it|steps?)?")


@dataclass(frozen=True)
class Every:
    """How often something is done during a run."""

    number: int
    epochs: bool

    def times(self, iterations: int, epoch: int | None) -> int:
        """How often in a run, whose epochs are so many iterations long."""
        if self.epochs and epoch is None:
            raise UsageError(
                "a run of --iterations has no epochs: give --epochs and --samples, or a number of iterations"
            )
        every = self.number * (epoch or 1) if self.epochs else self.number
        if every > iterations:
            raise UsageError(
                f"the run has {counted(iterations, 'iteration')}, and what is done every {every:,} would never "
                "be: write a smaller number, or leave it out"
            )
        return iterations // every


def parse_every(text: str | int, by_epochs: bool) -> Every:
    """`500`, `500 iterations`, `epoch` or `2epochs`; a bare number is in the unit of the run's length."""
    match = _EVERY.fullmatch(str(text).strip())
    number = int(re.sub("[_,]", "", match["number"])) if match and match["number"] else 1
    if match is None or not (match["number"] or match["unit"]) or number < 1:
        raise UsageError(f"{text!r} does not say how often: write 1epoch, or a number of iterations such as 500")
    return Every(number, match["unit"].startswith("epoch") if match["unit"] else by_epochs)


@dataclass(frozen=True)
class RunPlan:
    """The arguments of `estimate` that speak of a whole run, as people write them."""

    iterations: int | None = None
    epochs: int | None = None
    samples: int | None = None
    evaluate_every: str | int | None = None
    evaluation_samples: int | None = None
    data: str | None = None
    accumulate: int = 1
    checkpoint_every: str | int | None = None
    price: str | float | None = None
    grid: str | float | Sequence[str | float] | None = None
    pue: float | None = None
    battery: str | None = None
    idle: str | float | None = None

    def __post_init__(self) -> None:
        if self.iterations and (self.epochs or self.samples):
            raise UsageError("--iterations and --epochs both give the length of the run: give one of them")
        if self.samples and not self.epochs:
            raise UsageError("the number of iterations is not known: give --epochs as well")
        if self.epochs and not self.samples and not self.data:
            missing = "--samples, the number of examples in an epoch"
            raise UsageError(f"the number of iterations is not known: give {missing} as well")
        for name in (*LENGTH, "evaluation_samples", "accumulate"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"{name} is {value}, but must be 1 or more")
        of_a_run = [f for f in fields(self) if f.name not in (*LENGTH, "battery", "idle")]
        named = [f.name for f in of_a_run if getattr(self, f.name) != f.default]
        if named and not self.asked:
            flag = f"--{named[0].replace('_', '-')}"
            raise UsageError(f"{flag} is about a whole run: give --epochs and --samples, or --iterations, as well")
        if self.evaluation_samples and self.evaluate_every is None:
            raise UsageError("--evaluation-samples is used with --evaluate-every: say how often, as 1epoch")
        if self.idle is not None and not self.asked and not self.battery:
            raise UsageError("--idle is used with --battery or a whole run: give --battery 15Wh, or --iterations")
        for every in (self.evaluate_every, self.checkpoint_every):
            if every is not None:
                asked = parse_every(every, bool(self.epochs))
                if self.iterations:
                    asked.times(self.iterations, None)
        self.tariff, self.full_battery  # noqa: B018  refused before anything is measured

    @property
    def asked(self) -> bool:
        """Whether a whole run is asked about, and not only an iteration."""
        return bool(self.iterations or self.epochs)

    @property
    def is_timed(self) -> bool:
        """Whether it has parts that are timed where they can be."""
        return any((self.data, self.evaluate_every, self.accumulate > 1, self.checkpoint_every))

    @property
    def watts_idle(self) -> float | None:
        return None if self.idle is None else parse_power(str(self.idle))

    @property
    def full_battery(self) -> Battery | None:
        return Battery(parse_energy(self.battery), self.battery, self.watts_idle) if self.battery else None

    @property
    def tariff(self) -> Tariff:
        price = None if self.price is None else parse_price(self.price)
        grids = () if self.grid is None else parse_grids(self.grid)
        return Tariff(price, grids, 1.0 if self.pue is None else parse_facility_factor(self.pue))


def whole_run(known: ProfiledEstimate, plan: RunPlan, subject: ResolvedModel, options: Options) -> TrainingRun | None:
    """The run by its parts; None where only an iteration is asked about. What can be timed is, once."""
    if not plan.asked:
        return None
    estimate, batch = known.estimate, known.network.batch
    is_here = plan.is_timed and _is_here(known.profile, options)
    loaded = _loading(plan, estimate, options, is_here)
    epoch = _epoch(plan, batch, loaded)
    iterations = plan.iterations or (plan.epochs or 1) * (epoch or 1)
    costs = _in_steps(known, plan, subject, options, is_here, loaded)
    parts = []
    if loaded:
        parts.append(_loading_part(loaded, iterations, estimate, costs.get("loading")))
    if plan.evaluate_every is not None:
        times = parse_every(plan.evaluate_every, bool(plan.epochs)).times(iterations, epoch)
        samples, assumed = _evaluated_samples(plan, batch, epoch or iterations)
        count = times * -(-samples // batch)
        parts.append(_part("evaluation", count, costs["evaluation"], estimate, assumed))
    if plan.checkpoint_every is not None:
        times = parse_every(plan.checkpoint_every, bool(plan.epochs)).times(iterations, epoch)
        parts.append(_part("checkpoints", times, costs["checkpoint"], estimate))
    return training_run(
        estimate,
        iterations,
        plan.full_battery,
        parts=parts,
        step_share=_step_share(plan, costs),
        step_source=_step_source(plan, costs),
        watts_idle=plan.watts_idle,
        tariff=plan.tariff,
    )


def _is_here(profile: Profile, options: Options) -> bool:
    """Whether the estimate is of this machine, where parts can be timed."""
    with options.opened_device() as device:
        return device.is_local and same_device(profile.device, device.identity)


# Loading, timed with the user's own loader.


def _loading(plan: RunPlan, estimate: Estimate, options: Options, is_here: bool) -> Timed | None:
    if plan.data is None:
        return None
    if not is_here:
        raise UsageError("--data is timed on this machine, and the estimate is of another device: leave it out")
    options.say(f"timing {plan.data} ...")
    loaded = time_loading(plan.data, estimate.batch, TIMED_SECONDS, _watts(estimate))
    shape = loaded.shape
    if shape and estimate.batch not in shape[:2]:  # the batch comes first, or second behind time
        raise UsageError(
            f"{plan.data} gives batches of {shape[0]:,}, but the model is estimated with batches of "
            f"{estimate.batch:,}: give --batch {shape[0]}, or change the loader"
        )
    return loaded


def _epoch(plan: RunPlan, batch: int, loaded: Timed | None) -> int | None:
    """Iterations of an epoch; None where the run's length is given in iterations."""
    length = loaded.epoch_batches if loaded else None
    if not plan.epochs:
        return None
    if plan.samples is None:
        if length is None:
            raise UsageError(f"{plan.data} does not say how long it is: give --samples, the examples in an epoch")
        return length
    wanted = -(-plan.samples // batch)
    if length is not None and length < plan.samples // batch:
        raise UsageError(
            f"{plan.data} ends after {counted(length, 'batch', 'batches')}, but an epoch of {plan.samples:,} samples "
            f"has {wanted:,}: give --samples {length * batch}, or a loader that goes on"
        )
    return wanted


def _loading_part(loaded: Timed, iterations: int, estimate: Estimate, in_steps: InSteps | None) -> RunPart:
    if in_steps is not None and in_steps.joules > 0:
        return _part("loading", iterations, in_steps, estimate, ", between steps")
    waited = max(0.0, loaded.seconds - estimate.seconds) if loaded.overlaps else loaded.seconds
    joules = loaded.joules * iterations
    overlapping = ", in processes of the loader's own while others train" if loaded.overlaps else ""
    timed = f"timed over {counted(loaded.batches, 'batch', 'batches')}{overlapping}"
    source = f"{timed}, modelled as CPU seconds x {_watts(estimate):.3g} W"
    return RunPart("loading", iterations, joules, LOADING_STDDEV * joules, waited * iterations, source)


def _watts(estimate: Estimate) -> float:
    """Watts of a busy core: as joules are modelled, or as they were measured while training."""
    return watts_in(estimate.meter.scope) or estimate.joules / estimate.seconds / estimate.setup.threads


# Parts that run the model, in training steps.


def _in_steps(
    known: ProfiledEstimate,
    plan: RunPlan,
    subject: ResolvedModel,
    options: Options,
    is_here: bool,
    loaded: Timed | None,
) -> dict[str, InSteps]:
    wanted, setup = dict[str, int](), known.profile.setup
    # A loader that takes less than the noise of steps, or loads while others train, is timed by itself.
    if loaded and not loaded.overlaps and loaded.cpu_seconds > LEAST_LOADING * known.estimate.seconds:
        wanted |= {"loading": 1} if can_time_parts(setup) else {}
    if plan.evaluate_every is not None:
        wanted["evaluation"] = 1
    if plan.accumulate > 1:
        wanted["accumulation"] = plan.accumulate
    if plan.checkpoint_every is not None:
        wanted["checkpoint"] = 1
    if not wanted:
        return {}
    if not (is_here and setup.runtime == "torch" and subject.own_code and not (subject.is_flax or subject.is_step)):
        assumed = {name: cost for name, cost in ASSUMED.items() if name in wanted}
        if assumed:
            options.say(f"{' and '.join(assumed)} cannot be timed there: assumed from what is usual")
        return assumed
    options.say(f"timing {' and '.join(wanted)} ...")
    with options.opened_device() as device:
        workload = itself(device, setup.runtime, subject.source()).workload
    return time_parts(subject.name, workload, setup, wanted, TIMED_SECONDS, plan.data, known.network.batch)


def _step_share(plan: RunPlan, costs: dict[str, InSteps]) -> float:
    return costs["accumulation"].joules / plan.accumulate if "accumulation" in costs else 1.0


def _step_source(plan: RunPlan, costs: dict[str, InSteps]) -> str:
    if plan.accumulate == 1:
        return "estimated"
    if "accumulation" not in costs:
        return "estimated, with an update of the weights at each: what accumulation saves is not known there"
    return f"estimated; an update every {plan.accumulate} batches, x {_step_share(plan, costs):.3g} timed"


def _part(name: str, count: int, cost: InSteps, estimate: Estimate, note: str = "") -> RunPart:
    joules = cost.joules * estimate.joules * count
    relative = estimate.stddev / estimate.joules + cost.stddev / cost.joules
    each = f"{cost.joules:.3g} training steps each, {'assumed' if cost in ASSUMED.values() else 'timed'}"
    seconds = cost.seconds * estimate.seconds * count
    return RunPart(name, count, joules, relative * joules, seconds, f"{each}{note}")


def _evaluated_samples(plan: RunPlan, batch: int, epoch: int) -> tuple[int, str]:
    """How many samples an evaluation has, and a note where that is assumed."""
    if plan.evaluation_samples:
        return plan.evaluation_samples, ""
    samples = max(batch, round(EVALUATED_SHARE * (plan.samples or epoch * batch)))
    return samples, f"; {samples:,} samples are assumed: --evaluation-samples"
