"""How fast estimates are: in bulk, one by one, from a cold start, and as a command whose profile is there.

python benchmarks/speed.py [--out benchmarks/results/speed.json]
python benchmarks/speed.py --only warm [--home FOLDER]      commands alone, with a profile that is there
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
from ampere.estimation.additive import Additive
from ampere.estimation.estimator import Estimator
from ampere.estimation.lookup_table import LookupTable, template

CNN5 = [32, 64, 128, 256]
MODEL = f"{Path(__file__).resolve().parents[1]}/examples/first_model.py:build"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/speed.json"))
    parser.add_argument("--only", choices=("warm",), help="only the commands whose profile is there")
    parser.add_argument("--home", type=Path, help="the AMPERE_HOME with that profile (default: a new one is made)")
    parser.add_argument("--seconds", type=int, default=120, help="of a new profile")
    parser.add_argument(
        "--times", type=int, default=7, help="that a command is run; the fastest and the median are shown"
    )
    options = parser.parse_args()
    figures = json.loads(options.out.read_text()) if options.only and options.out.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        if not options.only:
            cnn = ampere.profile("cnn5", seconds=15, out=Path(folder) / "cnn5.json").profile
            resnet = ampere.profile("resnet", seconds=15, out=Path(folder) / "resnet.json").profile
            figures |= {**bulk(cnn), **single(resnet), **cold()}
        home = options.home or Path(folder) / "home"
        if options.home is None:
            _ampere(home, "profile", "--once", "--seconds", str(options.seconds))
        figures |= warm(home, Path(folder), options.times)
    for name, value in figures.items():
        print(f"{name:<65} {value:,.4g}")
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(figures, indent=1))


def warm(home: Path, folder: Path, times: int) -> dict[str, float]:
    """Commands that were run before, in turn with Python's import of PyTorch, which nothing of ours makes faster."""
    _ampere(home, "trace", MODEL, "--out", str(folder / "network.json"))
    runs: dict[str, Callable[[], object]] = {
        "importing PyTorch": lambda: subprocess.run([sys.executable, "-c", "import torch"], check=True),
        "`ampere estimate file.py:build --touch 0`": lambda: _ampere(home, "estimate", MODEL, "--touch", "0"),
        "`ampere estimate` of a traced file": lambda: _ampere(home, "estimate", str(folder / "network.json")),
        "`ampere estimate --help`": lambda: _ampere(home, "estimate", "--help"),
    }
    took: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(times + 1):
        for name, run in runs.items():
            seconds = best(run, 1)
            took[name] += [seconds] if turn else []  # the first fits the profile, and compiles files
    fastest = {f"seconds of {name}, fastest": min(each) for name, each in took.items()}
    return fastest | {f"seconds of {name}, median": float(np.median(each)) for name, each in took.items()}


def _ampere(home: Path, *words: str) -> None:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "OMP_NUM_THREADS")}
    command = [sys.executable, "-m", "ampere", *words]
    subprocess.run(command, env={**environment, "AMPERE_HOME": str(home)}, stdout=subprocess.DEVNULL, check=True)


def bulk(profile: ampere.Profile) -> dict[str, float]:
    model = Estimator(profile).model
    assert isinstance(model, Additive)
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
