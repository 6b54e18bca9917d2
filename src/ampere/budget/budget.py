"""Joules that a training loop may spend.

enter ---> does the job fit? warn --+
                                    v
train ---> step(): count, forecast --> room for another one? --yes--> train
                                    | no
                                    +--> warn; on_stop(budget), once; step() is False from now on

    spent + left + reserve = budget        in every message

A job that comes to need more than the budget gets one warning, as soon as a few steps after the warm-up were read.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar

from ampere.core import Meter, Network, units
from ampere.core.errors import AmpereError, UsageError
from ampere.estimation.estimate import Estimate, joules_in
from ampere.meters import DEFAULT_WATTS_PER_CORE, choose_meter

from .recording import Reading, RunRecorder
from .spending import ESTIMATE_COUNTS, Counter, Forecast, Reader

FORMAT = 2
CLOSE = 50  # steps before the end
READINGS_TO_WARN = 5  # after the warm-up
Item = TypeVar("Item")


class Budget:
    """Follows what a training loop spends, and stops it before a budget of joules is used up.

    `battery` is the budget written with a unit, such as `15Wh`. `estimate` says what a step costs before the first one,
    and with `iterations` whether the whole job fits. `meter` is this machine's best, one of your own, or None: then
    every step counts as its estimate. `reserve` joules of the budget are kept for what comes after: a checkpoint, say.
    With `record=True` what an iteration of `network` cost is stored in `profile`, a file, or else this device's own.
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
        watts_per_core: float = DEFAULT_WATTS_PER_CORE,
        on_stop: Callable[[Budget], None] = lambda budget: None,
        record: bool = False,
        network: Network | None = None,
        profile: Path | str | None = None,
    ) -> None:
        self.joules = _allowed(joules, battery)
        if not 0 <= reserve < self.joules:
            raise UsageError(f"a reserve of {reserve:g} J leaves nothing of the {self.joules:g} J: reserve less")
        if iterations is not None and iterations < 1:
            raise UsageError(f"iterations must be 1 or more, not {iterations}: leave it out where it is not known")
        if meter is None and estimate is None:
            raise UsageError("without a meter joules are counted by an estimate: give estimate=ampere.estimate(...)")
        reader = choose_meter(watts_per_core) if meter == "best" else meter
        prior = Forecast(estimate.joules, estimate.stddev**2, worth=ESTIMATE_COUNTS) if estimate else Forecast()
        self.meter = Meter(**reader.describe()) if reader else Meter("estimate", False, "steps x their estimate")
        if record and reader is None:
            raise UsageError("record=True stores what a meter read: leave out meter=None")
        self._recorder = RunRecorder(network, profile, self.meter) if record else None
        self._counter = Counter(reader, prior, self._add_reading)
        self.iterations, self.stopped, self._warned = iterations, False, False
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
        return int(min(self.left / each, wanted))

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
        self._counter.start()
        self._warned = False
        self._warn_if_it_does_not_fit()
        self._stop_if_full()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._counter.stop()
        if self._recorder and kind is None:
            self._record(self._recorder)

    def _add_reading(self, joules: float, seconds: float, steps: int) -> None:
        if self._recorder:
            self._recorder.readings.append(Reading(joules, seconds, steps))

    def _record(self, recorder: RunRecorder) -> None:
        """A training that is done must not fail for a note about it."""
        try:
            kept = recorder.keep()
        except AmpereError as error:
            warnings.warn(f"the run is not recorded: {error}", stacklevel=3)
            return
        if not kept:
            warnings.warn("the run is not recorded: it was too short", stacklevel=3)

    def step(self) -> bool:
        """Counts a step; call it after each training step. True while there is room for another one."""
        if not self._counter.running:
            raise UsageError("a budget counts only inside its block: write `with ampere.Budget(...) as budget:`")
        self._counter.step()
        if self._counter.forecast.readings >= READINGS_TO_WARN:
            self._warn_if_it_does_not_fit()
        self._stop_if_full()
        return not self.stopped

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
        more = "" if self.steps_left is None else f"; room for about {self.steps_left:,} more steps"
        return f"{self.steps_done:,} steps: {self._balance()}{more}"

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
        return f"{total} = {budget:.{digits}f} {unit} budget{over} ({self.meter.name}, {origin})"

    def state_dict(self) -> dict[str, Any]:
        """Plain JSON for a checkpoint: a job that continues from it has spent what this one has."""
        return {"format": FORMAT, "meter": self.meter.name, **self._counter.to_json()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues from what an earlier job has spent; the budget is for both."""
        try:
            if state["format"] != FORMAT:
                raise ValueError(f"its format is {state['format']}, not {FORMAT}")
            if state["meter"] != self.meter.name:
                raise ValueError(f"its joules are from {state['meter']}, those of this budget from {self.meter.name}")
            self._counter.resume(state)
        except (KeyError, TypeError, ValueError) as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise UsageError(f"a budget cannot continue from this state ({what}): begin a new one") from None

    def _warn_if_it_does_not_fit(self) -> None:
        whole = self.forecast_joules
        if not self._warned and whole is not None and whole > self._limit:
            self._warned = True
            needs = f"{self.iterations:,} iterations need about {units.joules(whole)}"
            warnings.warn(f"{needs}, but {self._balance()}: about {self.steps_left:,} more steps fit", stacklevel=3)

    def _stop_if_full(self) -> None:
        if self.stopped:
            return
        if not self._room_for(CLOSE):
            self._counter.read()  # from here on every step is read
        if not self._room_for(1):
            self.stopped = True
            if self.iterations is None or self.steps_done < self.iterations:
                warnings.warn(self._why_stopped(), stacklevel=3)
            self._on_stop(self)

    def _why_stopped(self) -> str:
        of = "" if self.iterations is None else f" of {self.iterations:,}"
        next_step = f"the next step may need {units.joules(self._counter.forecast.at_most)}"
        return f"the budget stops the job after {self.steps_done:,}{of} steps: {self._balance()}; {next_step}"

    def _room_for(self, steps: int) -> bool:
        return self.spent + steps * self._counter.forecast.at_most <= self._limit


def _allowed(joules: float | None, battery: str | None) -> float:
    if (joules is None) == (battery is None):
        raise UsageError("a budget is either joules=500 or battery='15Wh': give one of them")
    allowed = joules_in(battery) if battery is not None else float(joules or 0.0)
    if not (math.isfinite(allowed) and allowed > 0):
        raise UsageError(f"a budget of {joules} J is not possible: give a positive number")
    return allowed
