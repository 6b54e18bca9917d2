"""Slow meters: seconds of profiling until the error is small, with power from few readings and with energy alone.

    python benchmarks/slow_meters.py [--meters battery board] [--ways power energy] [--seeds 0 1 2] [--networks 60]
                                     [--out benchmarks/results/slow_meters.json]

Everything is simulated: two devices of docs/explanation/simulated-devices.md with slower gauges than they have there.

    battery    the Android phone by a gauge that tells its power once a second, in steps of 5 mW
    board      Jetson TX2 by a sensor that tells its power ten times a second, in steps of 40 mW

The rival reads the energy of every block: in 60 samples split into three windows, as Ampere reads counters of joules,
or in one window of 60, 30, 15 or 8 samples between two of the yardstick. It is given the best of all these.

`error` is the mean absolute percentage error against what the device knows that a step costs, on networks that were not
profiled; `covers` the share of them inside the 90 % interval. `reached` are the simulated seconds from which on
the error stays below a goal, on a straight line between budgets (both on logarithms). With --out, rows that are in the
file already are not measured again.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

import numpy as np

import ampere
from ampere.devices.simulated import PARTS, SimulatedWorker
from ampere.devices.simulated import device as simulated_device
from ampere.devices.simulated.parts import Counter
from ampere.estimation.normalization import costs_of
from ampere.models.loading import find_space
from ampere.profiling import meter_windows as slowness
from ampere.profiling.meter_windows import SLOW_SECONDS
from ampere.profiling.sources import SpaceSource

COUNTERS = {
    "battery": ("phone-android", Counter("simulated 1 Hz battery gauge", "whole phone", 1.0, 0.005, 0.02)),
    "board": ("tx2", Counter("simulated 10 Hz board sensor", "module input", 0.1, 0.04, 0.15)),
}
BUDGETS = {"battery": (30, 40, 55, 75, 110, 160), "board": (12, 17, 24, 34, 48, 70, 100)}  # of power, seconds
BLOCKS = (4, 6, 9, 13, 19, 28, 40, 60, 90)  # of energy
WINDOWS = [(60, 3), (60, 1), (30, 1), (15, 1), (8, 1)]  # of energy: samples in a window, windows in a block
GOALS = (0.05, 0.04, 0.03, 0.025)
Way = tuple[str, int, int]  # its name, samples in a window, windows of the target in a block


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--meters", nargs="+", default=list(COUNTERS))
    parser.add_argument("--ways", nargs="+", default=["power", "energy"])
    parser.add_argument("--family", default="cnn5")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--networks", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long, to be continued")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    ends, rows = time.monotonic() + options.seconds, []
    if options.out and options.out.exists():
        rows = json.loads(options.out.read_text())["rows"]
    print_row(["meter", "way", "asked", "readings", "seconds", "error", "covers"])
    for meter in options.meters:
        for way, budget in asked(meter, options.ways):
            known = [r for r in rows if (r["meter"], r["way"], r["asked"]) == (meter, " ".join(map(str, way)), budget)]
            if time.monotonic() > ends and not known:
                return
            rows += [] if known else [one(meter, way, budget, options)]
            save(rows, [], options)
    reached = [compared(rows, meter, goal) for meter in options.meters for goal in GOALS]
    for row in reached:
        print(f"{row['meter']}, error below {row['goal']:.1%}: " + ", ".join(f"{k} {row[k]}" for k in list(row)[2:]))
    save(rows, reached, options)


def save(rows: list[dict[str, Any]], reached: list[dict[str, Any]], options: argparse.Namespace) -> None:
    if options.out:
        options.out.write_text(json.dumps({"seeds": options.seeds, "rows": rows, "reached": reached}, indent=1))


def asked(meter: str, ways: list[str]) -> Iterator[tuple[Way, float]]:
    """Every way with every budget; of energy, as many seconds as so many blocks take, and its yardstick."""
    if "power" in ways:
        yield from ((("power", 60, 3), float(budget)) for budget in BUDGETS[meter])
    if "energy" in ways:
        for samples, pairs in WINDOWS:
            window = samples * COUNTERS[meter][1].update_seconds
            for blocks in BLOCKS if samples < 60 else BLOCKS[:-2]:
                yield ("energy", samples, pairs), round(2 * window + blocks * 2.05 * window, 1)


def one(meter: str, way: Way, budget: float, options: argparse.Namespace) -> dict[str, Any]:
    name, samples, pairs = way
    part, counter = COUNTERS[meter]
    device = f"{part}-{meter}"
    PARTS[device] = replace(PARTS[part], name=device, counter=replace(counter, samples=samples))
    simulated_device.PAIRS, slowness.SLOW_SECONDS = pairs, SLOW_SECONDS if name == "power" else float("inf")
    errors, covers, spent, readings = [], [], [], []
    for seed in options.seeds:
        with tempfile.TemporaryDirectory() as folder:
            made = ampere.profile(
                options.family, device=f"simulated:{device}", seconds=budget, out=Path(folder) / "p.json", seed=seed
            )
        error, covered = against_truth(made.profile, device, options)
        errors.append(error)
        covers.append(covered)
        spent.append(made.profile.profiling_seconds)
        readings.append(sum(len(cost.joules_rounds) for cost in costs_of(made.profile)))
    row = {
        "meter": meter,
        "way": " ".join(map(str, way)),
        "asked": budget,
        "readings": mean(readings),
        "seconds": mean(spent),
        "error": mean(errors),
        "errors": errors,
        "covers": mean(covers),
    }
    shown = [f"{mean(readings):.0f}", f"{mean(spent):.0f}", f"{mean(errors):.1%}", f"{mean(covers):.0%}"]
    print_row([meter, row["way"], f"{budget:.0f}", *shown])
    return row


def against_truth(profile: ampere.Profile, device: str, options: argparse.Namespace) -> tuple[float, float]:
    estimator, simulated = ampere.Estimator(profile), SimulatedWorker(device)
    source, rng = SpaceSource(find_space(options.family)), Random("not profiled")
    told = [estimator.estimate(source.sample(rng).network) for _ in range(options.networks)]
    rng = Random("not profiled")
    truth = [simulated.truth(source.sample(rng).network, profile.setup).total.joules for _ in range(options.networks)]
    inside = [low <= joules <= high for (low, high), joules in zip((e.interval for e in told), truth, strict=True)]
    return float(np.mean([abs(e.joules / t - 1) for e, t in zip(told, truth, strict=True)])), float(np.mean(inside))


def compared(rows: list[dict[str, Any]], meter: str, goal: float) -> dict[str, Any]:
    found = {
        way: reached_at([r for r in rows if (r["meter"], r["way"]) == (meter, way)], goal) for way in ways_of(rows)
    }
    power, usual = found.get("power 60 3"), found.get("energy 60 3")
    rivals = {way: seconds for way, seconds in found.items() if way.startswith("energy") and seconds}
    best = min(rivals, key=lambda way: rivals[way], default=None)
    return {
        "meter": meter,
        "goal": goal,
        "power": power,
        "usual": usual,
        "best": rivals.get(best or ""),
        "best_way": best,
        "times_usual": round(usual / power, 1) if power and usual else None,
        "times_best": round(rivals[best] / power, 1) if power and best else None,
    }


def ways_of(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["way"] for row in rows))


def reached_at(rows: list[dict[str, Any]], goal: float) -> float | None:
    """From where on no larger budget errs more; None where the largest still does."""
    rows = sorted(rows, key=lambda row: row["seconds"])
    if not rows:
        return None
    late = [i for i, row in enumerate(rows) if row["error"] > goal]
    if late and late[-1] == len(rows) - 1:
        return None
    if not late:
        return float(rows[0]["seconds"])
    before, after = rows[late[-1]], rows[late[-1] + 1]
    share = np.log(before["error"] / goal) / np.log(before["error"] / after["error"])
    return float(np.exp((1 - share) * np.log(before["seconds"]) + share * np.log(after["seconds"])))


def print_row(cells: list[object]) -> None:
    print(" ".join(f"{cell!s:>12}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
