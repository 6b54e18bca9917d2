"""Slow meters: seconds of profiling until the error is small, with power from few windows and with energy alone.

    python benchmarks/slow_meters.py [--meters battery board] [--seeds 0 1 2] [--networks 60]
                                     [--out benchmarks/results/slow_meters.json]

Everything is simulated: two devices of docs/SIMULATED-DEVICES.md with slower counters than they have there.

    battery    the Android phone by a gauge that tells its power once a second, in steps of 5 mW: windows of a minute
    board      Jetson TX2 by a sensor that tells its power ten times a second, in steps of 40 mW: windows of 6 s

`error` is the mean absolute percentage error against what the device knows that a step costs, on networks that were not
profiled; `covers` the share of them inside the 90 % interval. `reached` are the simulated seconds from which on
the error stays below a goal, on a straight line between budgets (both on logarithms).
"""

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

import numpy as np

import ampere
from ampere.devices.simulated import PARTS, SimulatedDevice
from ampere.devices.simulated.part import Counter
from ampere.models.loading import find_space
from ampere.profiling.campaigns import additive
from ampere.profiling.sources import SpaceSource

COUNTERS = {
    "battery": ("phone-android", Counter("simulated 1 Hz battery gauge", "whole phone", 1.0, 0.005, 0.02)),
    "board": ("tx2", Counter("simulated 10 Hz board sensor", "module input", 0.1, 0.04, 0.15)),
}
WAYS = {"power": additive.SLOW_SECONDS, "energy": float("inf")}  # from which window on power is learnt by itself
BLOCKS = {"power": (2, 3, 4, 6, 8, 12), "energy": (4, 6, 9, 12, 18, 24, 48, 96)}  # long windows, at least
BLOCK_WINDOWS = 2.05  # a block of a long window: its target, its yardstick, and getting ready
SHORT_SECONDS = 17.0  # short blocks come first, and the yardstick
GOALS = (0.05, 0.04, 0.03, 0.025)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--meters", nargs="+", default=list(COUNTERS))
    parser.add_argument("--family", default="cnn5")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--networks", type=int, default=60)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    print_row(["meter", "way", "windows", "seconds", "error", "covers"])
    for meter in options.meters:
        device = with_counter(*COUNTERS[meter], meter)
        for way, blocks in BLOCKS.items():
            rows += [one(meter, device, way, count, options) for count in blocks]
    reached = [compared(rows, meter, goal) for meter in options.meters for goal in GOALS]
    for row in reached:
        at = {way: "never" if row[way] is None else f"{row[way]:.0f} s" for way in WAYS}
        told = f"power {at['power']}, energy {at['energy']}, {row['times']}"
        print(f"{row['meter']}, error below {row['goal']:.1%}: {told}")
    if options.out:
        options.out.write_text(json.dumps({"seeds": options.seeds, "rows": rows, "reached": reached}, indent=1))


def with_counter(name: str, counter: Counter, meter: str) -> str:
    part = replace(PARTS[name], name=f"{name}-{meter}", counter=counter)
    PARTS[part.name] = part
    return part.name


def one(meter: str, device: str, way: str, blocks: int, options: argparse.Namespace) -> dict[str, Any]:
    window = PARTS[device].counter.window_seconds
    budget = 2 * window + blocks * BLOCK_WINDOWS * window + (SHORT_SECONDS if way == "power" else 0.0)
    additive.SLOW_SECONDS = WAYS[way]
    errors, covers, spent, windows = [], [], [], []
    for seed in options.seeds:
        with tempfile.TemporaryDirectory() as folder:
            made = ampere.profile(
                options.family, device=f"simulated:{device}", seconds=budget, out=Path(folder) / "p.json", seed=seed
            )
        error, covered = against_truth(made.profile, device, options)
        errors.append(error)
        covers.append(covered)
        spent.append(made.profile.profiling_seconds)
        windows.append(sum(len(o.measurement.joules_rounds) for o in made.profile.observations))
    row = {
        "meter": meter,
        "way": way,
        "windows": mean(windows),
        "seconds": mean(spent),
        "error": mean(errors),
        "errors": errors,
        "covers": mean(covers),
    }
    print_row([meter, way, f"{mean(windows):.0f}", f"{mean(spent):.0f}", f"{mean(errors):.1%}", f"{mean(covers):.0%}"])
    return row


def against_truth(profile: ampere.Profile, device: str, options: argparse.Namespace) -> tuple[float, float]:
    estimator, simulated = ampere.Estimator(profile), SimulatedDevice(device)
    source, rng = SpaceSource(find_space(options.family)), Random("not profiled")
    told = [estimator.estimate(source.sample(rng).network) for _ in range(options.networks)]
    rng = Random("not profiled")
    truth = [simulated.truth(source.sample(rng).network, profile.setup).total.joules for _ in range(options.networks)]
    inside = [low <= joules <= high for (low, high), joules in zip((e.interval90 for e in told), truth, strict=True)]
    return float(np.mean([abs(e.joules / t - 1) for e, t in zip(told, truth, strict=True)])), float(np.mean(inside))


def compared(rows: list[dict[str, Any]], meter: str, goal: float) -> dict[str, Any]:
    at = {way: reached_at([r for r in rows if (r["meter"], r["way"]) == (meter, way)], goal) for way in WAYS}
    times = None if None in at.values() else f"{at['energy'] / at['power']:.1f} times"
    return {"meter": meter, "goal": goal, **at, "times": times}


def reached_at(rows: list[dict[str, Any]], goal: float) -> float | None:
    """From where on no larger budget errs more; None where the largest still does."""
    rows = sorted(rows, key=lambda row: row["seconds"])
    late = [i for i, row in enumerate(rows) if row["error"] > goal]
    if late and late[-1] == len(rows) - 1:
        return None
    if not late:
        return float(rows[0]["seconds"])
    before, after = rows[late[-1]], rows[late[-1] + 1]
    share = np.log(before["error"] / goal) / np.log(before["error"] / after["error"])
    return float(np.exp((1 - share) * np.log(before["seconds"]) + share * np.log(after["seconds"])))


def print_row(cells: list[object]) -> None:
    print(" ".join(f"{cell!s:>9}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
