"""An energy budget for Optuna: candidates that cost too much are never trained, and samplers learn to avoid them.

objective(trial):  build a model -> constraint.afford(trial, network) --too much--> pruned before it is trained
                                             | inside
                                             +--> train -> accuracy [, joules]
sampler:           learns what each trial would have cost above the budget, the pruned ones included
"""

from __future__ import annotations

import optuna

from ampere.api import Options, estimator_of, resolve
from ampere.core import Network
from ampere.core.errors import UsageError
from ampere.core.units import parse_energy
from ampere.devices import LOCAL, Device
from ampere.estimation.estimate import Estimate
from ampere.estimation.estimator import Estimator
from ampere.models.loading import LoadedModel
from ampere.pruning.budget import deviations, joules_allowed
from ampere.storage.profile import Profile

JOULES, STDDEV, EXCESS = "ampere_joules", "ampere_joules_stddev", "ampere_excess"

Model = str | LoadedModel | Network


class EnergyConstraint:
    """Joules of an iteration that a trial may cost, with a confidence.

    Samplers of Optuna 5 use it by themselves; those of Optuna 4 take it as `constraints_func`. `budget` is joules
    (`5mJ`), joules of a run of `iterations`, or a share (`50%`) of what `original` costs.
    """

    def __init__(
        self,
        budget: str | float,
        profile: Profile | Estimator | None = None,
        *,
        original: Model | None = None,
        confidence: float = 0.9,
        iterations: int | None = None,
        battery: str | None = None,
        allocator: str = "system",
        device: str | Device = LOCAL,
    ) -> None:
        asked = Options(profile=profile, device=device, allocator=allocator)
        self._estimator, self._allocator = estimator_of(asked), allocator
        self._deviations = deviations(confidence)
        now = self.estimate(original).joules if original is not None else None
        allowed = joules_allowed(budget, now or 1.0, iterations, parse_energy(battery) if battery else None)
        if now is None and battery is None and joules_allowed(budget, 2.0, iterations) != allowed:
            raise UsageError(f"a budget of {budget} needs a model that it is a share of: give original=...")
        self.budget_joules = allowed

    def estimate(self, model: Model) -> Estimate:
        return self._estimator.estimate(resolve(model).network, self._allocator)

    def afford(self, trial: optuna.Trial, model: Model) -> Estimate:
        """The estimate of an iteration, stored with the trial. A trial that costs too much ends here as pruned."""
        estimate = self.estimate(model)
        bound = estimate.joules + self._deviations * estimate.stddev
        excess = bound / self.budget_joules - 1
        for name, value in ((JOULES, estimate.joules), (STDDEV, estimate.stddev), (EXCESS, excess)):
            trial.set_user_attr(name, value)
        if hasattr(trial, "set_constraint"):
            trial.set_constraint("joules", excess)
        if excess > 0:
            raise optuna.TrialPruned(f"{bound:.3g} J an iteration, and {self.budget_joules:.3g} J are allowed")
        return estimate

    def __call__(self, trial: optuna.trial.FrozenTrial) -> tuple[float]:
        """The excess over the budget as a share of it; 0 or less is inside."""
        if EXCESS not in trial.user_attrs:
            raise UsageError("this trial was not estimated: begin the objective with constraint.afford(trial, network)")
        return (float(trial.user_attrs[EXCESS]),)
