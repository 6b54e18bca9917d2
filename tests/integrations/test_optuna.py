"""Trials that cost too much are never trained, and the sampler learns that."""

import pytest
from tests.searching.test_searching import profile

from ampere.core.errors import UsageError
from ampere.devices.workloads import traced
from ampere.estimation.estimator import Estimator

optuna = pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'ampere-energy[search]'")
optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.fixture(scope="module")
def estimator():
    return Estimator(profile())


def network(trial):
    widths = [trial.suggest_int(f"width{i}", 1, largest) for i, largest in enumerate((32, 64, 128, 256))]
    return traced("ampere.models.cnn5:build", {"channels": widths, "batch": 10})


def study_of(constraint, trials=40):
    trained = []

    def objective(trial):
        estimate = constraint.afford(trial, network(trial))
        trained.append(estimate)
        return sum(trial.params.values())

    options = {} if hasattr(optuna.Trial, "set_constraint") else {"constraints_func": constraint}
    sampler = optuna.samplers.TPESampler(seed=0, n_startup_trials=10, **options)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials=trials)
    return study, trained


def test_only_what_is_inside_is_trained(estimator):
    from ampere.integrations.optuna import EnergyConstraint

    constraint = EnergyConstraint("40%", estimator, original="cnn5")
    study, trained = study_of(constraint)
    states = [trial.state.name for trial in study.trials]
    assert states.count("PRUNED") == 40 - len(trained) > 0
    assert all(e.joules + 1.28 * e.stddev <= constraint.budget_joules for e in trained)
    assert study.best_trial.user_attrs["ampere_joules"] <= constraint.budget_joules


def test_the_sampler_learns_what_is_inside(estimator):
    from ampere.integrations.optuna import EnergyConstraint

    study, _ = study_of(EnergyConstraint("40%", estimator, original="cnn5"), trials=60)
    inside = [trial.state.name == "COMPLETE" for trial in study.trials]
    assert sum(inside[-20:]) > sum(inside[:20])


@pytest.mark.parametrize(
    ("budget", "options", "says"),
    [("40%", {}, "give original"), ("much", {}, "not a positive amount"), (0.5, {"confidence": 0.2}, "from 50% to")],
)
def test_what_makes_no_sense_is_refused(estimator, budget, options, says):
    from ampere.integrations.optuna import EnergyConstraint

    with pytest.raises(UsageError, match=says):
        EnergyConstraint(budget, estimator, **options)


def test_a_trial_that_was_never_estimated_is_refused(estimator):
    from ampere.integrations.optuna import EnergyConstraint

    constraint = EnergyConstraint("5mJ", estimator)
    assert constraint(optuna.trial.create_trial(value=1.0, user_attrs={"ampere_excess": -0.5})) == (-0.5,)
    assert constraint.budget_joules == pytest.approx(5e-3)
    with pytest.raises(UsageError, match=r"constraint\.afford"):
        constraint(optuna.trial.create_trial(value=1.0))


def test_a_misspelt_allocator_is_refused(estimator):
    from ampere.integrations.optuna import EnergyConstraint

    with pytest.raises(UsageError, match="allocator 'sytem' is none of"):
        EnergyConstraint("5mJ", estimator, allocator="sytem")
