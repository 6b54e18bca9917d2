"""Joules that a training loop may spend.

enter ---> does the job fit? warn --+
                                    v
train ---> step(): count, forecast --> room for another one? --yes--> train
                                    | no
                                    +--> warn; on_stop(budget), once; step() is False from now on

    spent + left + reserve = budget        in every message

A job that comes to need more than the budget gets one warning, as soon as a few steps after the warm-up were read.
Nothing that a meter or another rank does ends the job: what cannot be read is estimated, and said.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar

from ampere.core import Meter, Network, units
from ampere.core.errors import (
    ACCELERATOR,
    AcceleratorError,
    AmpereError,
    MeterError,
    UsageError,
    WorkerError,
    first_line,
)
from ampere.core.setup import CPU
from ampere.core.units import parse_energy
from ampere.estimation.estimate import Estimate
from ampere.meters import DEFAULT_WATTS_PER_CORE, choose_meter, unusable_counters, use_card, watts_in

from .ranks import Ranks, job_of_ranks, ranks_of_this_job, this_machine
from .readings import CardMeter, Reader
from .recording import Reading, RunRecorder
from .spending import ESTIMATE_COUNTS, Counter, Forecast

FORMAT = 2
CLOSE = 50  # steps before the end
READINGS_TO_WARN = 5  # after the warm-up
Item = TypeVar("Item")


class Budget:
    """Follows what a training loop spends, and stops it before a budget of joules is used up.

    `battery` is the budget written with a unit, such as `15Wh`. `estimate` says what a step costs before the first one,
    and with `iterations` whether the whole job fits. `meter` is this machine's best, one of your own, or None: then
    every step counts as its estimate. Where joules are modelled, a busy core takes `watts_per_core`, by default as in
    the estimate. `on` is the processor that trains, such as "cuda", by default the estimate's: the best meter is then
    that of the card which this process uses. `reserve` joules of the budget are kept for what comes after: a
    checkpoint, say.
    With `record=True` what an iteration of `network` cost is stored in `profile`, a file, or else this device's own.
    The ranks of a distributed job share one budget: each makes it alike, and `steps_per_update` says how often each
    calls `step()` from one update of the weights to the next.
    """

    def __init__(
        self,
        joules: float | None = None,
        *,
        battery: str | None = None,
        estimate: Estimate | None = None,
        iterations: int | None = None,
        reserve: float = 0.0,
        meter: Reader | Literal["best"] | None = "best",
        watts_per_core: float | None = None,
        on: str | None = None,
        on_stop: Callable[[Budget], None] = lambda budget: None,
        record: bool = False,
        network: Network | None = None,
        profile: Path | str | None = None,
        steps_per_update: int = 1,
    ) -> None:
        self.joules = _allowed(joules, battery)
        if not 0 <= reserve < self.joules:
            raise UsageError(f"a reserve of {reserve:g} J leaves nothing of the {self.joules:g} J: reserve less")
        if iterations is not None and iterations < 1:
            raise UsageError(f"iterations must be 1 or more, not {iterations}: leave it out where it is not known")
        if steps_per_update < 1:
            raise UsageError(f"steps_per_update must be 1 or more, not {steps_per_update}")
        if meter is None and estimate is None:
            raise UsageError("without a meter joules are counted by an estimate: give estimate=ampere.estimate(...)")
        estimated = watts_in(estimate.meter.scope) if estimate and watts_per_core is None else None
        watts = watts_per_core or estimated or DEFAULT_WATTS_PER_CORE
        on = on or _processor(estimate)
        reader = meter if meter != "best" else _best_meter(watts) if on == CPU else _card_meter(on, watts)
        if reader is None and estimate is None:
            raise UsageError(f"no meter reads {on}: give estimate=ampere.estimate(...), by which steps are counted")
        prior = Forecast(estimate.joules, estimate.stddev**2, worth=ESTIMATE_COUNTS) if estimate else Forecast()
        self.meter = Meter(**reader.describe()) if reader else Meter("estimate", False, "steps x their estimate")
        if estimate and estimated and self.meter.scope == estimate.meter.scope:
            self.meter = estimate.meter  # which also says where its watts come from
        if record and reader is None:
            raise UsageError("record=True stores what a meter read: leave out meter=None")
        self._recorder = RunRecorder(network, profile, self.meter) if record else None
        self._metered = _metered(reader) if self.meter.measured else None
        self._counter = Counter(reader, prior, self._add_reading, self._meter_failed, watts)
        self.iterations, self.stopped, self._warned = iterations, False, False
        self.steps_per_update, self.meter_problem, self._met = steps_per_update, "", False
        self.reserve, self._limit, self._on_stop = reserve, self.joules - reserve, on_stop

    @property
    def running(self) -> bool:
        """Whether the program is inside its `with` block."""
        return self._counter.running

    @property
    def spent(self) -> float:
        """Joules until now, of this job and of those that it continues."""
        return self._counter.joules

    @property
    def left(self) -> float:
        """Joules that may still be spent; the reserve is not among them."""
        return max(0.0, self._limit - self.spent)

    @property
    def steps_done(self) -> int:
        return self._counter.steps

    @property
    def estimated_steps(self) -> int:
        """Steps that count as their estimate because the meter failed; `meter_problem` says why."""
        return self._counter.estimated_steps

    @property
    def joules_per_step(self) -> float | None:
        """Of the steps to come; None before the first where there is no estimate."""
        return self._counter.forecast.joules

    @property
    def steps_left(self) -> int | None:
        """How many more steps fit, at most as many as the job still has; None while the cost of a step is unknown."""
        each = self.joules_per_step
        if not each:
            return None
        wanted = math.inf if self.iterations is None else max(0, self.iterations - self.steps_done)
        fits = min(self.left / each, wanted)
        return int(fits) if math.isfinite(fits) else None

    @property
    def forecast_joules(self) -> float | None:
        """Joules of the whole job; None where its iterations are not known."""
        if self.joules_per_step is None or self.iterations is None:
            return None
        return self.spent + max(0, self.iterations - self.steps_done) * self.joules_per_step

    def metrics(self) -> dict[str, float]:
        """For a logger: joules of the newest step, spent, left and forecast for the whole job."""
        step, whole = self._counter.newest or self.joules_per_step, self.forecast_joules
        named = {
            "joules_per_step": step,
            "joules_spent": self.spent,
            "joules_left": self.left,
            "joules_forecast": whole,
        }
        return {f"ampere/{name}": value for name, value in named.items() if value is not None}

    def __enter__(self) -> Budget:
        if self._recorder:
            self._recorder.readings.clear()  # a block is a run
        self._meet_ranks()
        self._counter.start()
        self._warned = False
        self._warn_if_it_does_not_fit()
        self._stop_if_full()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._counter.stop()
        if self._recorder:
            self._recorder.end_note()
            if kind is None:
                self._record(self._recorder)

    def _add_reading(self, joules: float, seconds: float, steps: int) -> None:
        if self._recorder:
            self._recorder.readings.append(Reading(joules, seconds, steps))

    def _record(self, recorder: RunRecorder) -> None:
        """A training that is done must not fail for a note about it."""
        try:
            if self._ranks:
                raise UsageError("several ranks spent its joules, and a profile has those of one")
            if not recorder.keep(self.meter_problem):
                raise UsageError(f"{self.meter.name} failed" if self.estimated_steps else "it was too short")
        except Exception as error:
            reason = str(error) if isinstance(error, AmpereError) else first_line(error)
            _warn(f"the run is not recorded: {reason}")

    def _meter_failed(self, problem: str) -> None:
        if not self.meter_problem:
            self.meter_problem = problem
            _warn(f"{self.meter.name} failed ({problem}): the job goes on, and steps that it misses are estimated")

    # The ranks of a distributed job.

    @property
    def _ranks(self) -> Ranks | None:
        return self._counter.ranks

    def _meet_ranks(self) -> None:
        """Joins the other ranks, once, when all of them are there."""
        if self._met:
            return
        try:
            ranks = ranks_of_this_job(self.joules, self._metered)
        except Exception as problem:
            _warn(f"this rank follows its budget alone: the job has no store to share it by ({first_line(problem)})")
            ranks = None
        self._met = ranks is not None
        self._counter.share(ranks)

    def _speaks(self, of: str) -> bool:
        """Whether it is this rank that says something that concerns all."""
        return self._ranks is None or self._ranks.first(of)

    def _no_more_steps(self) -> bool:
        """Whether the step just made is the last: one decision, which all ranks follow after the same step."""
        ranks = self._ranks
        if ranks is None:
            return not self._room_for(1)
        end = ranks.end()
        # All know of the end after the next update, and nobody leaves before the one after it. What ranks spent since
        # the last update may not be counted yet.
        if end is None and not self._room_for(3 * self.steps_per_update + 1):
            end = ranks.agree_to_end(self.steps_done + 2 * self.steps_per_update)
        if end is None and ranks.lost:
            _warn(f"the other ranks cannot be reached ({ranks.lost}): this one follows its budget alone")
            self._counter.count_alone()
            return not self._room_for(1)
        return end is not None and self.steps_done >= end

    def step(self) -> bool:
        """Counts a step; call it after each training step. True while there is room for another one."""
        if not self._counter.running:
            raise UsageError("a budget counts only inside its block: write `with ampere.Budget(...) as budget:`")
        self._counter.step()
        if self._counter.forecast.readings >= READINGS_TO_WARN:
            self._warn_if_it_does_not_fit()
        self._stop_if_full()
        if self._recorder:
            self._recorder.note(self._progress)
        return not self.stopped

    def _progress(self) -> dict[str, Any]:
        named = {name.rpartition("/")[2]: value for name, value in self.metrics().items()}
        return {"steps": self.steps_done, "iterations": self.iterations, "joules_budget": self.joules, **named}

    def steps(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items of a loader, as long as there is room for a step with the next one."""
        if self.stopped:
            return
        for item in items:
            yield item
            if not self.step():
                return

    def summary(self) -> str:
        """`812 steps: 431.0 J spent + 59.0 J left + 10.0 J reserve = 500.0 J budget (cpu-time, modelled), ...`."""
        more = "" if self.steps_left is None else f"; room for about {units.counted(self.steps_left, 'more step')}"
        return f"{units.counted(self.steps_done, 'step')}: {self._balance()}{more}"

    def _balance(self) -> str:
        """Numbers that add up as they are printed, and where they come from."""
        scale, unit = units.joules_unit(self.joules)
        digits = 3 - len(f"{self.joules / scale:.0f}") + 1
        budget, spent = round(self.joules / scale, digits), round(self.spent / scale, digits)
        reserve = min(round(self.reserve / scale, digits), max(0.0, budget - spent))
        parts = [(spent, "spent"), (max(0.0, budget - spent - reserve), "left")]
        parts += [(reserve, "reserve")] if self.reserve else []
        total = " + ".join(f"{value:.{digits}f} {unit} {word}" for value, word in parts)
        over = f" and {spent - budget:.{digits}f} {unit} over it" if spent > budget else ""
        origin = "simulated" if self.meter.simulated else "measured" if self.meter.measured else "modelled"
        steps = self.estimated_steps
        estimated = f"; {units.counted(steps, 'step')} estimated, since it failed" if steps else ""
        ranks = f", {self._ranks.size} ranks" if self._ranks else ""
        return f"{total} = {budget:.{digits}f} {unit} budget{over} ({self.meter.name}, {origin}{ranks}{estimated})"

    def state_dict(self) -> dict[str, Any]:
        """Plain JSON for a checkpoint: a job that continues from it has spent what this one has."""
        counted = self._counter.to_json()
        return {"format": FORMAT, "meter": self.meter.name, "meter_problem": self.meter_problem, **counted}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues from what an earlier job has spent; the budget is for both."""
        try:
            if state["format"] != FORMAT:
                raise ValueError(f"its format is {state['format']}, not {FORMAT}")
            if state["meter"] != self.meter.name:
                raise ValueError(f"its joules are from {state['meter']}, those of this budget from {self.meter.name}")
            self._counter.resume(state)
            self.meter_problem = str(state.get("meter_problem", ""))
        except (KeyError, TypeError, ValueError) as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise UsageError(f"a budget cannot continue from this state ({what}): begin a new one") from None

    def _warn_if_it_does_not_fit(self) -> None:
        whole = self.forecast_joules
        if not self._warned and whole is not None and whole > self._limit:
            self._warned = True
            if self._speaks("forecast"):
                needs = f"{self.iterations:,} iterations need about {units.joules(whole)}"
                room = f"room for about {units.counted(self.steps_left or 0, 'more step')}"
                _warn(f"{needs}, but {self._balance()}: {room}")

    def _stop_if_full(self) -> None:
        if self.stopped:
            return
        if not self._room_for(CLOSE):
            self._counter.read()  # from here on every step is read
        if self._no_more_steps():
            self.stopped = True
            if (self.iterations is None or self.steps_done < self.iterations) and self._speaks("end"):
                _warn(self._why_stopped())
            self._on_stop(self)

    def _why_stopped(self) -> str:
        of = "" if self.iterations is None else f" of {self.iterations:,}"
        next_step = f"the next step may need {units.joules(self._counter.forecast.at_most())}"
        return f"the budget stops the job after {self.steps_done:,}{of} steps: {self._balance()}; {next_step}"

    def _room_for(self, steps: int) -> bool:
        return self.spent + self._counter.forecast.at_most(steps) <= self._limit


def _warn(message: str) -> None:
    """Warns. A program that makes errors of warnings is not ended by one of these."""
    try:
        warnings.warn(message, stacklevel=4)
    except Warning:
        logging.getLogger("ampere").warning("%s", message)


def _best_meter(watts_per_core: float) -> Reader:
    try:
        meter = choose_meter(watts_per_core)
    except WorkerError as problem:
        raise MeterError(str(problem)) from None
    for reason in unusable_counters():
        _warn(f"joules are modelled, not measured: {reason}")
    return meter


def _processor(estimate: Estimate | None) -> str:
    """What trains by the estimate; in a job of several ranks each has a card of its own."""
    on = estimate.setup.on if estimate else CPU
    return on.partition(":")[0] if job_of_ranks() else on


def _card_meter(on: str, watts: float) -> Reader | None:
    """The counter of the card that this process trains on; None, with a warning, where nothing counts its joules."""
    from ampere.runtimes.torch_accelerator import find_accelerator

    try:
        card = find_accelerator(on, in_use=True)
        if card is None:  # auto, and there is none
            return _best_meter(watts)
        use_card(card.uuid, shifted=False)
        meter = choose_meter(watts)
    except WorkerError as problem:
        raise (AcceleratorError if problem.type == ACCELERATOR else MeterError)(str(problem)) from None
    finally:
        use_card(None)
    if not meter.describe()["measured"]:
        _warn(f"no meter reads {card.name}: each step counts as its estimate")
        return None
    return CardMeter(meter, card.synchronize, card.uuid or card.name)


def _metered(reader: Reader | None) -> str | None:
    """What a counter counts, if other ranks may read it too; None where it is this rank's alone."""
    if getattr(reader, "per_rank", False):
        return None
    card = f" card {reader.card}" if isinstance(reader, CardMeter) else ""
    return f"machine {this_machine()}{card}"


def _allowed(joules: float | None, battery: str | None) -> float:
    if (joules is None) == (battery is None):
        raise UsageError("a budget is either joules=500 or battery='15Wh': give one of them")
    allowed = parse_energy(battery) if battery is not None else float(joules or 0.0)
    if not (math.isfinite(allowed) and allowed > 0):
        raise UsageError(f"a budget of {joules} J is not possible: give a positive number")
    return allowed
