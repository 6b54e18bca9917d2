"""Search for accuracy with Optuna; candidates that cost too many joules are never trained.

The device is simulated, so that this runs anywhere. Replace it by "local" for this machine.
Needs: pip install 'ampere-energy[torch,search]'
"""

import optuna
import torch
from torch import nn

import ampere
from ampere.integrations.optuna import EnergyConstraint

TRIALS, WIDEST = 6, (32, 64, 128, 256)


def train(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    """The share that is right after one pass; use your own training here."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in zip(images.split(10), labels.split(10), strict=True):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float((model(images).argmax(1) == labels).float().mean())


def main() -> None:
    profile = ampere.profile("cnn5", device="simulated:server", seconds=30).profile
    constraint = EnergyConstraint("60%", profile, original="cnn5", confidence=0.9)
    images, labels = torch.randn(50, 1, 28, 28), torch.randint(10, (50,))

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        channels = [trial.suggest_int(f"conv{i}", 1, widest) for i, widest in enumerate(WIDEST)]
        loaded = ampere.load_model("cnn5", channels=channels)
        joules = constraint.afford(trial, ampere.trace(loaded.model, loaded.inputs)).joules
        return train(loaded.model, images, labels), joules

    study = optuna.create_study(directions=["maximize", "minimize"], sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials=TRIALS)
    pruned = sum(trial.state == optuna.trial.TrialState.PRUNED for trial in study.trials)
    print(f"{len(study.trials)} trials, {pruned} too expensive to be trained")
    for trial in study.best_trials:
        accuracy, joules = trial.values
        print(f"{accuracy:.0%} correct with {joules:.3g} J per iteration: {trial.params}")


if __name__ == "__main__":
    main()
