"""A budget for Lightning: `Trainer(callbacks=[EnergyBudget(ampere.Budget(battery="15Wh"))])`.

A step is a batch. Joules are written with the trainer's loggers, as often as it logs. What was spent is stored in
its checkpoints, so that a job that continues has spent it.
"""

from __future__ import annotations

from typing import Any

from lightning.pytorch import Callback

from ampere.budget import Budget


class EnergyBudget(Callback):  # type: ignore[misc]
    """Counts what a fit spends, and ends it as Lightning does before the budget is used up."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._entered, self._logged = False, 0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._logged = trainer.global_step
        self._entered = not self.budget.running
        self.budget.steps_per_update = max(1, trainer.accumulate_grad_batches)
        if self._entered:
            self.budget.__enter__()
        if self.budget.stopped:
            trainer.should_stop = True

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if not self.budget.step():
            trainer.should_stop = True
        every = trainer.log_every_n_steps  # 0 where a trainer logs nothing
        if trainer.global_step > self._logged and every and trainer.global_step % every == 0:
            self._logged = trainer.global_step  # which stays the same while batches are accumulated
            for logger in trainer.loggers:
                logger.log_metrics(self.budget.metrics(), step=trainer.global_step)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._leave()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._leave(exception)

    def state_dict(self) -> dict[str, Any]:
        return self.budget.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.budget.load_state_dict(state_dict)

    def _leave(self, failure: BaseException | None = None) -> None:
        if self._entered:
            self._entered = False
            self.budget.__exit__(type(failure) if failure else None, failure, None)
