"""A budget guard: where it stops, what it costs, how runs correct estimates. And how fast a space is screened.

python benchmarks/budget.py [--out benchmarks/results/budget.json]
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from random import Random
from statistics import median

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core, as the figures say

import ampere
from ampere.budget import spending as counting
from ampere.core import Meter
from ampere.devices.simulated import SimulatedWorker
from ampere.estimation.estimator import Estimator
from ampere.models.spaces import SPACES
from ampere.profiling.sources import SpaceSource

DEVICE = "xavier"
RUNS, BLOCKS, BLOCK_SECONDS = 100, 30, 0.2
DRIFT, DRIFTING_RUNS = 0.25, 30


class SimulatedBattery:
    """Drained by simulated steps; what it reads is what was really taken."""

    def __init__(self, about: Meter) -> None:
        self.about, self.drained, self._mark = about, 0.0, 0.0

    def describe(self) -> dict[str, object]:
        return self.about.to_json()

    def start(self) -> None:
        self._mark = self.drained

    def stop(self) -> float:
        return self.drained - self._mark


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/budget.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "cnn5.json"
        profile = ampere.profile("cnn5", device=f"simulated:{DEVICE}", out=place).profile
        figures = {**screening(profile), **overhead(), **stopping(profile), **drifting(place)}
    for name, value in figures.items():
        print(f"{name:<62} {value:,.4g}")
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(figures, indent=1))


def screening(profile: ampere.Profile) -> dict[str, float]:
    """Drawing, tracing, tables, estimates, choosing with deviations: all but reading the profile."""
    estimator = Estimator(profile)
    found = [ampere.search("cnn5", "50%", estimator, trials=0, seed=seed) for seed in range(3)]
    return {
        "measurements in the cnn5 profile": len(profile.observations),
        "cnn5 candidates screened": found[0].screened,
        "seconds to screen them and choose 12, median of 3": median(f.screening_seconds for f in found),
    }


def overhead() -> dict[str, float]:
    """Blocks with and without the guard in turn, in one process: the median of their ratios, less one."""
    return {f"overhead of the guard, share of a {name} step": _overhead(name) for name in ("lenet5", "cnn5")}


def _overhead(name: str) -> float:
    import torch

    loaded = ampere.load_model(name)
    optimizer = torch.optim.SGD(loaded.model.parameters(), lr=1e-3)
    labels = torch.zeros(10, dtype=torch.long)

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(loaded.model(*loaded.inputs), labels).backward()
        optimizer.step()

    began = time.process_time()
    for _ in range(50):
        step()
    steps = max(5, round(BLOCK_SECONDS / ((time.process_time() - began) / 50)))
    ratios = []
    with ampere.Budget(1e9) as budget:

        def guarded_step() -> None:
            step()
            budget.step()

        for _ in range(BLOCKS):
            plain, guarded = _block(step, steps), _block(guarded_step, steps)
            after = _block(step, steps)
            ratios.append(2 * guarded / (plain + after))
    return median(ratios) - 1


def _block(step, steps: int) -> float:  # type: ignore[no-untyped-def]
    began = time.process_time()
    for _ in range(steps):
        step()
    return time.process_time() - began


def stopping(profile: ampere.Profile) -> dict[str, float]:
    """Random networks, budgets, noise and warming; exhaustion is the first step that would exceed the budget."""
    counting.READINGS_APART = 0  # simulated steps take no time; real ones take longer than many readings
    estimator, source, rng = Estimator(profile), SpaceSource(SPACES["cnn5"]), Random(0)
    truth, about = SimulatedWorker(DEVICE).truth, Meter("simulated battery", False, simulated=True)
    early = []
    for _ in range(RUNS):
        network = source.sample(rng).network
        joules, warming, noise = truth(network).total.joules, rng.uniform(0, 3e-4), rng.uniform(0, 0.03)
        battery, spent = SimulatedBattery(about), []
        with ampere.Budget(
            rng.uniform(100, 900) * joules, estimate=estimator.estimate(network), meter=battery
        ) as budget:
            for number in budget.steps(range(100_000)):
                spent.append(
                    joules * (1 + warming * number) * max(0.5, rng.gauss(1, noise)) * (2 if number == 0 else 1)
                )
                battery.drained += spent[-1]
        left, more = budget.joules - sum(spent), 0
        while left >= 0 and more < 10:  # how many more steps would have fitted
            left -= joules * (1 + warming * (len(spent) + more)) * max(0.5, rng.gauss(1, noise))
            more += left >= 0
        early.append(more if sum(spent) <= budget.joules else -1)
    return {
        "jobs on a simulated battery": RUNS,
        "stopped within one step of exhaustion, never after it": sum(e in (0, 1) for e in early),
        "stopped at the very last step that fits": early.count(0),
        "went over": early.count(-1),
    }


def drifting(place: Path) -> dict[str, float]:
    """A device that becomes a quarter dearer over the runs. Each network is estimated before it is run."""
    source, rng, device = SpaceSource(SPACES["cnn5"]), Random(1), SimulatedWorker(DEVICE)
    fresh, about = Estimator(ampere.Profile.load(place)), Meter(**device.hello()["meter"])
    with_runs, without = [], []
    for number in range(DRIFTING_RUNS):
        network = source.sample(rng).network
        true = device.truth(network).total.joules * (1 + DRIFT * number / (DRIFTING_RUNS - 1))
        known = Estimator(ampere.Profile.load(place))
        with_runs.append(abs(known.estimate(network).joules / true - 1))
        without.append(abs(fresh.estimate(network).joules / true - 1))
        battery = SimulatedBattery(about)
        with ampere.Budget(1e9, meter=battery, record=True, network=network, profile=place) as budget:
            for _ in range(100):
                battery.drained += true * rng.gauss(1, 0.02)
                budget.step()
    third = DRIFTING_RUNS // 3
    return {
        "drift over the runs": DRIFT,
        "runs": DRIFTING_RUNS,
        "MAPE of the last third, runs not recorded": sum(without[-third:]) / third,
        "MAPE of the last third, runs recorded": sum(with_runs[-third:]) / third,
        "MAPE of the first third, runs not recorded": sum(without[:third]) / third,
        "MAPE of the first third, runs recorded": sum(with_runs[:third]) / third,
    }


if __name__ == "__main__":
    main()
