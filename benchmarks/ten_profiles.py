"""Does a model cost the same by each of several profiles of this machine, made one after the other?

    python benchmarks/ten_profiles.py                          ten profiles of the whole device, 120 s each: 20 minutes
    python benchmarks/ten_profiles.py --profiles 3 --seconds 15 --models cnn5 resnet

Each profile is made from nothing, by a worker of its own. Printed are each model's joules over the profiles: their
mean, their standard deviation, and how often another profile's figure lies in the 90 % interval. The yardstick's
reference of each profile is what all its joules scale with.
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
    options = parser.parse_args()
    networks = {name: resolve(name).network for name in options.models}
    rows: list[dict[str, Any]] = []
    for number in range(options.profiles):
        with TemporaryDirectory() as folder:
            made = ampere.profile(seconds=options.seconds, out=Path(folder) / "profile.json", seed=number)
        rows.append(_row(made.profile, networks))
        print(f"{number + 1}: yardstick {1e3 * rows[-1]['yardstick_seconds']:.3f} ms", flush=True)
    for name in networks:
        _print(name, [row["models"][name] for row in rows])
    yardsticks = [row["yardstick_seconds"] for row in rows]
    print(f"{'yardstick':20} spread {stdev(yardsticks) / mean(yardsticks):.1%}")
    RESULTS.write_text(json.dumps(rows, indent=1))


def _row(profile: ampere.Profile, networks: dict[str, ampere.Network]) -> dict[str, Any]:
    estimator = ampere.Estimator(profile)
    found = {name: estimator.estimate(network) for name, network in networks.items()}
    models = {name: {"joules": one.joules, "interval": list(one.interval)} for name, one in found.items()}
    return {"yardstick_seconds": profile.yardstick_seconds, "models": models}


def _print(name: str, found: list[dict[str, Any]]) -> None:
    joules = [one["joules"] for one in found]
    pairs = [(a["interval"], b["joules"]) for a in found for b in found if a is not b]
    inside = mean(low <= other <= high for (low, high), other in pairs)
    spread = stdev(joules) / mean(joules)
    print(f"{name:20} {1e3 * mean(joules):.2f} mJ, spread {spread:.1%}, others in the 90 % interval {inside:.0%}")


if __name__ == "__main__":
    main()
