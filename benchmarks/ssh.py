"""Profiling over ssh on loopback beside profiling here, in turn, in one run: time, blocks and estimates as ratios.

    python -m benchmarks.ssh [--rounds 3] [--seconds 10] [--out benchmarks/results/ssh.json]

Starts an OpenSSH server of its own, as the tests do. What is shown:
  blocks     the same blocks asked one after the other, here and there in turn: seconds there over seconds here
  profiles   whole runs with the same budget: wall seconds from the call to the file, and blocks measured in them
  estimates  of networks that nobody saw: means over the runs there against those here, beside how far two runs here
             are apart (repeatability)
"""

import argparse
import json
import tempfile
import time
from itertools import combinations
from pathlib import Path
from random import Random
from statistics import mean, median

from tests.sshd import server

import ampere
from ampere.core import Network
from ampere.devices import Device, Worker
from ampere.estimation.estimator import Estimator
from ampere.evaluation.validation import unseen
from ampere.models.spaces import SPACES
from ampere.profiling.sources import SpaceSource

FAMILY = "lenet5"
BLOCKS, NETWORKS = 60, 20
BLOCK = {"iterations": 6, "warmup": 2}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/ssh.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as there:
        blocks = compare_blocks(there.spec)
        print(f"{BLOCKS} blocks: {blocks['ratio']:.3f} times the seconds of here", flush=True)
        runs = [
            profiled(device, options.seconds, seed, Path(folder) / f"{seed}.json")
            for seed, device in enumerate(("local", there.spec) * options.rounds)
        ]
    found = {"family": FAMILY, "seconds": options.seconds, "blocks": blocks, **compare_runs(runs[::2], runs[1::2])}
    print(
        f"profiling: {found['wall_ratio']:.3f} times the wall seconds, {found['measured_ratio']:.3f} times the blocks; "
        f"estimates {found['difference']:.2%} apart, repeatability here {found['repeatability']:.2%}"
    )
    options.out.write_text(json.dumps(found, indent=1))


def compare_blocks(spec: str) -> dict[str, float]:
    """Two workers that run already, asked in turn, so that both see the same neighbours."""
    rng, source = Random(0), SpaceSource(SPACES[FAMILY])
    workloads = [source.sample(rng).workload for _ in range(BLOCKS)]
    with Device() as here, Device(spec) as there:
        devices = here.worker(), there.worker()
        for device in devices:
            timed(device, workloads[0])
        pairs = [[timed(device, workload) for device in devices] for workload in workloads]
    return {
        "here_seconds": sum(a for a, _ in pairs),
        "there_seconds": sum(b for _, b in pairs),
        "ratio": sum(b for _, b in pairs) / sum(a for a, _ in pairs),
        "median_difference_seconds": median(b - a for a, b in pairs),
    }


def timed(device: Worker, workload: object) -> float:
    began = time.monotonic()
    device.block(workload, **BLOCK)  # type: ignore[arg-type]
    return time.monotonic() - began


def profiled(device: str, seconds: float, seed: int, path: Path) -> dict[str, object]:
    began = time.monotonic()
    made = ampere.profile(FAMILY, seconds=seconds, out=path, seed=seed, device=device, threads=1)
    wall = time.monotonic() - began
    estimator = Estimator(made.profile)
    joules = [estimator.estimate(network, "tuned").joules for network in networks()]
    measured = len(made.profile.observations)
    print(f"  {device.partition(':')[0]}: {wall:.1f} s, {measured} blocks", flush=True)
    return {"wall_seconds": wall, "measured": measured, "joules": joules}


def networks() -> list[Network]:
    return [experiment.network for experiment in unseen(SpaceSource(SPACES[FAMILY]), (), NETWORKS, seed=7)]


def compare_runs(here: list[dict[str, object]], there: list[dict[str, object]]) -> dict[str, object]:
    def of(runs: list[dict[str, object]], name: str) -> float:
        return median(run[name] for run in runs)  # type: ignore[type-var, return-value]

    apart = [difference(a["joules"], b["joules"]) for a, b in combinations(here, 2)]
    means = [[mean(column) for column in zip(*(run["joules"] for run in runs), strict=True)] for runs in (here, there)]  # type: ignore[arg-type]
    return {
        "wall_ratio": of(there, "wall_seconds") / of(here, "wall_seconds"),
        "measured_ratio": of(there, "measured") / of(here, "measured"),
        "difference": difference(*means),
        "repeatability": mean(apart),
        "here": here,
        "there": there,
    }


def difference(first: object, second: object) -> float:
    """The mean over networks of how far two estimates are apart."""
    return mean(abs(b / a - 1) for a, b in zip(first, second, strict=True))  # type: ignore[call-overload]


if __name__ == "__main__":
    main()
