"""How fast estimates are: in bulk, one by one, and from a cold start.

python benchmarks/speed.py [--out benchmarks/results/speed.json]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core, as the figures say

import numpy as np

import ampere
from ampere.devices.workloads import traced
from ampere.estimation.estimate import Estimator
from ampere.estimation.lookup_table import LookupTable, template

CNN5 = [32, 64, 128, 256]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/speed.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cnn = ampere.profile("cnn5", seconds=15, out=Path(folder) / "cnn5.json").profile
        resnet = ampere.profile("resnet", seconds=15, out=Path(folder) / "resnet.json").profile
    figures = {**bulk(cnn), **single(resnet), **cold()}
    for name, value in figures.items():
        print(f"{name:<45} {value:,.4g}")
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(figures, indent=1))


def bulk(profile: ampere.Profile) -> dict[str, float]:
    model = Estimator(profile).model
    opened = template(CNN5, lambda widths: traced("ampere.models.cnn5:build", {"channels": widths, "batch": 10}))
    rng = np.random.default_rng(0)
    widths = np.stack([rng.integers(1, w + 1, 1_000_000) for w in CNN5], axis=1)
    began = time.perf_counter()
    ready = LookupTable(model, opened, system=True)
    return {
        "measurements in the cnn5 profile": len(model.data),
        "seconds to make the tables": time.perf_counter() - began,
        "estimates a second": 1e6 / best(lambda: ready.seconds(widths)),
        "estimates with deviations a second": 1e5 / best(lambda: ready.seconds_and_stddevs(widths[:100_000])),
    }


def single(profile: ampere.Profile) -> dict[str, float]:
    estimator = Estimator(profile)
    arguments = {"blocks": [3, 4, 3, 2], "widths": [16, 32, 64, 128], "bottleneck": False, "batch": 8}
    network = traced("ampere.models.resnet:build", arguments)
    estimator.estimate(network)
    return {
        "layers": len(network.layers),
        "seconds of one estimate, warm": best(lambda: estimator.estimate(network), 50),
    }


def cold() -> dict[str, float]:
    helping = best(lambda: subprocess.run([sys.executable, "-m", "ampere", "--help"], capture_output=True, check=True))
    # Not ru_maxrss: a child keeps the peak of the process that it was forked from.
    code = "import ampere.api; print([x.split()[1] for x in open('/proc/self/status') if x.startswith('VmHWM')][0])"
    used = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    return {"seconds of `ampere --help`": helping, "MB of the host without torch": float(used) / 1024}


def best(run: Callable[[], object], times: int = 5) -> float:
    took = []
    for _ in range(times):
        began = time.perf_counter()
        run()
        took.append(time.perf_counter() - began)
    return min(took)


if __name__ == "__main__":
    main()
