"""Joules that a training loop may spend.

enter ---> does the job fit? warn --+
                                    v
train ---> step(): count, forecast --> room for another one? --yes--> train
                                    | no
                                    +--> warn; on_stop(budget), once; step() is False from now on

A forecast that comes to exceed the budget on the way is warned of once, as soon as it rests on a few readings.
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

FORMAT = 1
CLOSE = 50  # steps before the end
TELLING = 5  # readings; the first ones are dearer than what follows
Item = TypeVar("Item")


class Budget:
    """Follows what a training loop spends, and stops it before a budget of joules is used up.

    `battery` is the budget written with a unit, such as `15Wh`. `estimate` says what a step costs before the first one,
    and with `iterations` whether the whole job fits. `meter` is this machine's best, one of your own, or None: then
    steps are counted at their estimate. `reserve` joules are left for what comes after, such as a checkpoint.
    With `record=True` what the `network` cost an iteration is kept in `profile`, a file, or else this device's own.
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
            raise UsageError(f"a reserve of {reserve:g} J leaves nothing of {self.joules:g} J: keep less")
        if iterations is not None and iterations < 1:
            raise UsageError(f"{iterations} iterations are no job: give 1 or more, or leave it out")
        if meter is None and estimate is None:
            raise UsageError("without a meter joules are counted by an estimate: give estimate=ampere.estimate(...)")
        reader = choose_meter(watts_per_core) if meter == "best" else meter
        prior = Forecast(estimate.joules, estimate.stddev**2, worth=ESTIMATE_COUNTS) if estimate else Forecast()
        self.meter = Meter(**reader.describe()) if reader else Meter("estimate", False, "steps x their estimate")
        if record and reader is None:
            raise UsageError("record=True keeps what a meter read: leave out meter=None")
        self._recorder = RunRecorder(network, profile, self.meter) if record else None
        self._counter = Counter(reader, prior, self._heard)
        self.iterations, self.stopped, self._warned = iterations, False, False
        self._limit, self._on_stop = self.joules - reserve, on_stop

    @property
    def running(self) -> bool:
        """Between entering and leaving its block."""
        return self._counter.running

    @property
    def spent(self) -> float:
        """Joules until now, of this job and of those that it goes on from."""
        return self._counter.joules

    @property
    def left(self) -> float:
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
        """How many more will fit, or are wanted, whichever is less."""
        each = self.joules_per_step
        if not each:
            return None
        wanted = math.inf if self.iterations is None else max(0, self.iterations - self.steps_done)
        return int(min(self.left / each, wanted))

    @property
    def forecast_joules(self) -> float | None:
        """Of the whole job, where its iterations are known."""
        if self.joules_per_step is None or self.iterations is None:
            return None
        return self.spent + max(0, self.iterations - self.steps_done) * self.joules_per_step

    def metrics(self) -> dict[str, float]:
        """For a logger: joules of a step as last read, and of the whole."""
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

    def _heard(self, joules: float, seconds: float, steps: int) -> None:
        if self._recorder:
            self._recorder.readings.append(Reading(joules, seconds, steps))

    def _record(self, recorder: RunRecorder) -> None:
        """A training that is done must not fail for a note about it."""
        try:
            kept = recorder.keep()
        except AmpereError as error:
            warnings.warn(f"what the run cost is not recorded: {error}", stacklevel=3)
            return
        if not kept:
            warnings.warn("what the run cost is not recorded: it was too short to tell", stacklevel=3)

    def step(self) -> bool:
        """To be called after each training step: True while there is room for another one."""
        if not self._counter.running:
            raise UsageError("a budget counts only inside its block: write `with ampere.Budget(...) as budget:`")
        self._counter.step()
        if self._counter.forecast.readings >= TELLING:
            self._warn_if_it_does_not_fit()
        self._stop_if_full()
        return not self.stopped

    def steps(self, items: Iterable[Item]) -> Iterator[Item]:
        """Batches of a loader, as long as there is room for a step with them."""
        if self.stopped:
            return
        for item in items:
            yield item
            if not self.step():
                return

    def summary(self) -> str:
        """`812 steps spent 431 J of 500 J (cpu-time, modelled); 69.0 J left, about 130 steps`."""
        sort = "simulated" if self.meter.simulated else "measured" if self.meter.measured else "modelled"
        meter = f"{self.meter.name}, {sort}"
        said = f"{self.steps_done:,} steps spent {units.joules(self.spent)} of {units.joules(self.joules)} ({meter})"
        more = "" if self.steps_left is None else f", about {self.steps_left:,} steps"
        return f"{said}; {units.joules(self.left)} left{more}"

    def state_dict(self) -> dict[str, Any]:
        """Plain JSON, for a checkpoint: a job that goes on from there has spent what this one has."""
        return {"format": FORMAT, "meter": self.meter.name, **self._counter.to_json()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from what an earlier job has spent; the budget is for both."""
        try:
            if state["format"] != FORMAT:
                raise ValueError(f"its format is {state['format']}, not {FORMAT}")
            if state["meter"] != self.meter.name:
                raise ValueError(f"its joules are those of {state['meter']}, these of {self.meter.name}")
            self._counter.resume(state)
        except (KeyError, TypeError, ValueError) as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise UsageError(f"a budget cannot go on from this state ({what}): begin a new one") from None

    def _warn_if_it_does_not_fit(self) -> None:
        whole = self.forecast_joules
        if not self._warned and whole is not None and whole > self._limit:
            self._warned = True
            needs = f"{self.iterations:,} iterations need about {units.joules(whole)}"
            allowed = f"{units.joules(self._limit)} are allowed"
            warnings.warn(f"{needs}, {allowed}: about {self.steps_left:,} more will fit", stacklevel=3)

    def _stop_if_full(self) -> None:
        if self.stopped:
            return
        if not self._room_for(CLOSE):
            self._counter.read()  # from here on every step is looked at
        if not self._room_for(1):
            self.stopped = True
            if self.iterations is None or self.steps_done < self.iterations:
                warnings.warn(f"the budget ends the job here: {self.summary()}", stacklevel=3)
            self._on_stop(self)

    def _room_for(self, steps: int) -> bool:
        return self.spent + steps * self._counter.forecast.at_most <= self._limit


def _allowed(joules: float | None, battery: str | None) -> float:
    if (joules is None) == (battery is None):
        raise UsageError("a budget is either joules=500 or battery='15Wh': give one of them")
    allowed = joules_in(battery) if battery is not None else float(joules or 0.0)
    if not (math.isfinite(allowed) and allowed > 0):
        raise UsageError(f"a budget of {joules} J makes no sense: give a positive number")
    return allowed
