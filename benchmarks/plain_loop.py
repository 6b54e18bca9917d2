"""Estimates against a plain training loop in a fresh process with default settings, scaled by the yardstick only.

    python benchmarks/plain_loop.py [FAMILY...] [--networks 30] [--out benchmarks/results/plain_loop.json]

The loop is written here as a user would write it and knows nothing of Ampere's measuring: a model, an optimiser,
forward, backward, step. Before and after it the same process times the yardstick, which tells how fast the
machine is at that moment.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean, median

import ampere
from ampere.estimation.estimator import Estimator
from ampere.estimation.fitting import drift_share_in
from ampere.estimation.normalization import costs_of, reference_of
from ampere.evaluation.validation import unseen
from ampere.models.spaces import SPACES
from ampere.profiling.sources import SpaceSource

SECONDS = {"cnn5": 15, "resnet": 25}

LOOP = """
import importlib, json, sys, time
import torch
from torch.nn.functional import cross_entropy
from ampere.runtimes.torch_runtime import TorchRuntime

torch.set_num_threads(1)
workload = json.loads(sys.argv[1])
module, _, function = workload["factory"].rpartition(":")
model, inputs = getattr(importlib.import_module(module), function)(**workload["arguments"])
labels = torch.randint(0, 10, (len(inputs),))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

def step():
    optimizer.zero_grad()
    cross_entropy(model(inputs), labels).backward()
    optimizer.step()

def seconds_each(run, times):
    for _ in range(3):
        run()
    began = time.process_time()
    for _ in range(times):
        run()
    return (time.process_time() - began) / times

yardstick = TorchRuntime().yardstick().step
seconds_each(step, 5)
windows, before = [], seconds_each(yardstick, 10)
for _ in range(6):
    cost = seconds_each(step, 20)
    after = seconds_each(yardstick, 10)
    windows.append((2 * cost / (before + after), (before + after) / 2))
    before = after
print(json.dumps(sorted(windows)[len(windows) // 2]))
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="*", default=list(SECONDS))
    parser.add_argument("--networks", type=int, default=30)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/plain_loop.json"))
    options = parser.parse_args()
    results = []
    for family in options.families:
        with tempfile.TemporaryDirectory() as folder:
            made = ampere.profile(family, seconds=SECONDS[family], out=Path(folder) / "profile.json", threads=1)
        rows = compare(family, made.profile, options.networks, options.processes)
        results.append({"family": family, "profiling_seconds": made.profile.profiling_seconds, "rows": rows})
        print(
            f"{family}: system {mape(rows, 'system'):.1%}, quiet {mape(rows, 'tuned'):.1%}, "
            f"process to process {mean(row['spread'] for row in rows):.1%}, "
            f"bias {median(row['system'] / row['actual'] for row in rows):.3f}",
            flush=True,
        )
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(results, indent=1))


def compare(family: str, profile: ampere.Profile, networks: int, processes: int) -> list[dict[str, float]]:
    estimator, rows = Estimator(profile), []
    reference = reference_of(profile)
    sharing, nominal = drift_share_in(costs_of(profile), reference).part, reference.loop_seconds
    for experiment in unseen(SpaceSource(SPACES[family]), (profile,), networks, seed=20):
        windows = [plain_loop(experiment.workload) for _ in range(processes)]
        costs = [ratio * nominal * (yardstick / nominal) ** (1 - sharing) for ratio, yardstick in windows]
        estimates = {a: estimator.model.answer(experiment.network, a == "system").seconds for a in ("system", "tuned")}
        rows.append({"actual": mean(costs), "spread": (max(costs) - min(costs)) / mean(costs), **estimates})
    return rows


def plain_loop(workload: object) -> tuple[float, float]:
    """Cost of a step in yardstick steps, and the seconds of a yardstick step: the median window of one process."""
    answer = subprocess.run([sys.executable, "-c", LOOP, json.dumps(workload)], capture_output=True, check=True)
    ratio, yardstick = json.loads(answer.stdout)
    return ratio, yardstick


def mape(rows: list[dict[str, float]], key: str) -> float:
    return mean(abs(row[key] / row["actual"] - 1) for row in rows)


if __name__ == "__main__":
    main()
