"""Does a model cost the same by each of several profiles of this machine, made one after the other?

    python benchmarks/ten_profiles.py                          ten profiles of the whole device, 120 s each: 20 minutes
    python benchmarks/ten_profiles.py --profiles 3 --seconds 15 --models cnn5 resnet --out /tmp/three.json

Each profile is made from nothing, by a worker of its own. Printed are each model's joules over the profiles: their
mean, their standard deviation, and how often another profile's figure lies in the 90 % interval. The yardstick's
reference of each profile is what all its joules scale with. A run that was stopped goes on with the profiles that its
file does not have yet.
"""

import argparse
import json
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import Any

import ampere
from ampere.api.models import resolve

RESULTS = Path(__file__).parent / "results" / "ten_profiles.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profiles", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--models", nargs="+", default=["cnn5", "resnet", "transformer", "lstm"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    networks = {name: resolve(name).network for name in options.models}
    asked = {"seconds": options.seconds, "threads": options.threads, "models": options.models}
    rows = _earlier(options.out, asked)[: options.profiles]
    for number in range(len(rows), options.profiles):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "profile.json"
            made = ampere.profile(seconds=options.seconds, out=path, seed=number, threads=options.threads)
        rows.append(_row(made.profile, networks))
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({**asked, "profiles": rows}, indent=1))
        yardstick, count = 1e3 * rows[-1]["yardstick_seconds"], rows[-1]["measurements"]
        print(f"{number + 1}: yardstick {yardstick:.3f} ms, {count} measurements", flush=True)
    if len(rows) < 2:
        return
    for name in networks:
        _print(name, [row["models"][name] for row in rows])
    yardsticks = [row["yardstick_seconds"] for row in rows]
    print(f"{'yardstick':20} spread {stdev(yardsticks) / mean(yardsticks):.1%}")


def _earlier(path: Path, asked: dict[str, Any]) -> list[dict[str, Any]]:
    """The profiles of a run with the same options that was stopped, or that is shown again."""
    stored = json.loads(path.read_text()) if path.exists() else {}
    return list(stored["profiles"]) if all(stored.get(name) == value for name, value in asked.items()) else []


def _row(profile: ampere.Profile, networks: dict[str, ampere.Network]) -> dict[str, Any]:
    estimator = ampere.Estimator(profile)
    found = {name: estimator.estimate(network) for name, network in networks.items()}
    models = {name: {"joules": one.joules, "interval": list(one.interval)} for name, one in found.items()}
    measurements = len(profile.observations)
    return {"yardstick_seconds": profile.yardstick_seconds, "measurements": measurements, "models": models}


def _print(name: str, found: list[dict[str, Any]]) -> None:
    joules = [one["joules"] for one in found]
    pairs = [(a["interval"], b["joules"]) for a in found for b in found if a is not b]
    inside = mean(low <= other <= high for (low, high), other in pairs)
    spread = stdev(joules) / mean(joules)
    print(f"{name:20} {1e3 * mean(joules):.2f} mJ, spread {spread:.1%}, others in the 90 % interval {inside:.0%}")


if __name__ == "__main__":
    main()
