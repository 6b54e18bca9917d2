"""A budget for the Hugging Face Trainer: `EnergyBudget(ampere.Budget(battery="15Wh")).watch(trainer)`.

A step is an optimizer step, with all batches that it accumulates. Joules are written with the trainer's loggers, as
often as it logs. When the budget stops the job, the trainer saves a checkpoint if it saves any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback

from ampere.budget import Budget


class EnergyBudget(TrainerCallback):  # type: ignore[misc]
    """Counts what a training spends, and ends it as the Trainer does before the budget is used up."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._entered = False
        self._log: Callable[[dict[str, float]], None] = lambda metrics: None

    def watch(self, trainer: Any) -> EnergyBudget:
        """Adds this callback to a trainer, and logs there. Without it, the callback only keeps the budget."""
        trainer.add_callback(self)
        self._log = trainer.log
        return self

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._leave(RuntimeError("the attempt before this one failed, which the Trainer does not report"))
        self._entered = not self.budget.running
        if self._entered:
            self.budget.__enter__()
        control.should_training_stop = control.should_training_stop or self.budget.stopped

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not self.budget.step():
            control.should_training_stop = True
            control.should_save = str(getattr(args.save_strategy, "value", args.save_strategy)) != "no"
        self._log_if_due(control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._log_if_due(control)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._leave()

    def _log_if_due(self, control: Any) -> None:
        if control.should_log:
            self._log(self.budget.metrics())
            control.should_log = True  # logging resets it, and the Trainer still has its loss to log

    def _leave(self, failure: BaseException | None = None) -> None:
        if self._entered:
            self._entered = False
            self.budget.__exit__(type(failure) if failure else None, failure, None)
