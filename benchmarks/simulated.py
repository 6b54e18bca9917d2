"""Devices without hardware: estimates against what the device measures, and layer by layer against what it knows.

    python benchmarks/simulated.py [DEVICE...] [--families cnn5 lenet5 lstm] [--networks 60]
                                   [--out benchmarks/results/simulated.json]

Each device gets a profile of each family from nothing, within its usual budget of simulated seconds. Then networks that
were not profiled are "trained" on it, twice. `layers`: sum of |estimate - truth| over the layers and the constant of a
step, over the sum of truths, in percent, averaged over the networks; `worst`: the largest error among layers that are
at least a tenth of their network, median over networks.
"""

import argparse
import json
import tempfile
from pathlib import Path
from random import Random
from statistics import mean, median

import ampere
from ampere.devices.simulated import PARTS, SimulatedWorker
from ampere.models.loading import find_space
from ampere.profiling.sources import SpaceSource
from ampere.storage.profile import Profile

SHOWN = ("additive", "physics", "flops_intercept", "flops")
MATTERS = 0.1  # share of a network


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("devices", nargs="*", default=list(PARTS))
    parser.add_argument("--families", nargs="+", default=["cnn5"])
    parser.add_argument("--networks", type=int, default=60)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    print_row(["device", "family", "points", "seconds", *SHOWN, "layers", "worst", "repeat", "covers"])
    for family in options.families:
        for device in options.devices:
            rows.append(one(device, family, options))
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1))


def one(device: str, family: str, options: argparse.Namespace) -> dict[str, object]:
    spec, seed = f"simulated:{device}", options.seed
    with tempfile.TemporaryDirectory() as folder:
        made = ampere.profile(
            family, device=spec, seconds=options.seconds, out=Path(folder) / "profile.json", seed=seed
        )
    profile = made.profile
    found = ampere.validate(family, profile, device=spec, networks=options.networks, seed=seed)
    layers, worst = by_layer(device, family, profile, options.networks)
    record = {
        "device": device,
        "family": family,
        "points": len(profile.observations),
        "profiling_seconds": profile.profiling_seconds,
        "layers": layers,
        "worst": worst,
        **{key: value for key, value in found.to_json().items() if key not in ("rows", "profiling_seconds", "device")},
    }
    shown = [f"{100 * v:.1f}" for v in (*(found.mape[m] for m in SHOWN), layers, worst, found.repeatability_mape)]
    print_row(
        [
            device,
            family,
            len(profile.observations),
            f"{profile.profiling_seconds:.0f}",
            *shown,
            f"{found.coverage90:.0%}",
        ]
    )
    return record


def by_layer(device: str, family: str, profile: Profile, networks: int) -> tuple[float, float]:
    estimator, simulated = ampere.Estimator(profile), SimulatedWorker(device)
    source, rng = SpaceSource(find_space(family)), Random("by layer")
    apart, worst = [], []
    for _ in range(networks):
        network = source.sample(rng).network
        told, truth = estimator.estimate(network), simulated.truth(network, profile.setup)
        real = [*(cost.joules for cost in truth.layers), truth.step.joules]
        off = [abs(share.joules - joules) for share, joules in zip(told.layers, real, strict=True)]
        apart.append(sum(off) / sum(real))
        worst.append(max((o / r for o, r in zip(off, real, strict=True) if r > MATTERS * sum(real)), default=0.0))
    return mean(apart), median(worst)


def print_row(cells: list[object]) -> None:
    print(" ".join(f"{cell!s:>15}" if i < 1 else f"{cell!s:>9.9}" for i, cell in enumerate(cells)), flush=True)


if __name__ == "__main__":
    main()
