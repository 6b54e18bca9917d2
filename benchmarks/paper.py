"""The paper's method at its best, beside ours, on unseen networks of every family.

    python benchmarks/paper.py [FAMILY...] [--seeds 3] [--networks 60] [--ways own_end,equal_seconds,...]
                               [--device local] [--folder benchmarks/results/paper]

Each family and seed gets our profile within its time budget, and profiles of the paper's method made in these ways:

    own_end             paired with the yardstick (reference step), until its own rule ends it
    equal_seconds       paired with the yardstick, in as many seconds as ours
    clock_own_end       by the wall clock, short measurements, until its own rule ends it
    clock_equal_seconds by the wall clock, short measurements, in as many seconds as ours
    published           by the wall clock, 500 batches a measurement, until its own rule ends it: as published

Then unseen random networks are really trained, each twice, and that in two ways: step by step next to the yardstick, as
`ampere validate` does and our profile learns it, and in loops with a yardstick that settles, as the paper's variants
are trained here. Right after a large network the yardstick takes longer, so the first figure is lower. Every method is
compared with both (`paired`, `loops`); the one that its profile was measured in is marked with a star.

Every profile and every record is kept in the folder as soon as it is there, so that a second call goes on where the
first was stopped. `error` is the mean absolute percentage error; `factor` is the median of estimate over measurement,
and `scatter` the error without that common factor. At the end stands the mean over seeds, with its standard error.
"""

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does

import ampere
from ampere.devices import Device
from ampere.evaluation.validation import InLoops, Pair, compare, measure_twice, unseen
from ampere.meters import watts_in
from ampere.models.loading import find_space
from ampere.profiling.sources import SpaceSource
from ampere.storage.profile import Profile

SECONDS = {"lenet5": 15, "cnn5": 15, "har": 15, "lstm": 15, "transformer": 25, "resnet": 25}  # as in accuracy.py
PUBLISHED_BATCHES = 500
WAYS: dict[str, Callable[[float], dict[str, Any]]] = {
    "own_end": lambda seconds: {"own_end": True},
    "equal_seconds": lambda seconds: {"seconds": seconds},
    "clock_own_end": lambda seconds: {"own_end": True, "timing": "wallclock"},
    "clock_equal_seconds": lambda seconds: {"seconds": seconds, "timing": "wallclock"},
    "published": lambda seconds: {
        "own_end": True,
        "timing": "wallclock",
        "iterations_per_measurement": PUBLISHED_BATCHES,
    },
}
BESIDE = ("additive", "physics", "flops_intercept", "flops")

Record = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="*", default=[*SECONDS])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--networks", type=int, default=60)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--device", default="local")
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/results/paper"))
    options = parser.parse_args()
    ways = options.ways.split(",")
    options.folder.mkdir(parents=True, exist_ok=True)
    records = []
    print_row(["family", "seed", "way", "trained", "error", "factor", "scatter", "points", "seconds", "ended by"])
    for seed in range(options.seeds):
        for family in options.families:
            place = options.folder / f"{family}-{seed}.json"
            if not place.exists() or not {*ways} <= {*json.loads(place.read_text())["ways"]}:
                place.write_text(json.dumps(one(family, seed, ways, options), indent=1))
            records.append(json.loads(place.read_text()))
            show(records[-1])
    summary = summarised(records)
    (options.folder / "summary.json").write_text(json.dumps(summary, indent=1))
    show_summary(summary)


def one(family: str, seed: int, ways: list[str], options: argparse.Namespace) -> Record:
    """The errors of all ways on the same networks."""
    with ampere.device(options.device, seed=seed) as device:
        ours = made(device, family, seed, "additive", options.folder, seconds=SECONDS[family])
        papers = {
            way: made(device, family, seed, way, options.folder, method="sequential", **WAYS[way](SECONDS[family]))
            for way in ways
        }
        both = trained(device, family, [ours, *papers.values()], seed, options.networks)
    found = {
        (way, how): compare(family, pairs, ours, "tuned", [profile])
        for way, profile in papers.items()
        for how, pairs in both.items()
    }
    first = next(iter(found.values()))

    def errors(way: str, name: str) -> Record:
        return {how: figures(found[way, how].rows, name) for how in both}

    return {
        "family": family,
        "seed": seed,
        "networks": len(first.rows),
        "device": first.device,
        "meter": first.meter.to_json(),
        "repeatability": {how: found[ways[0], how].repeatability_mape for how in both},
        "beside": {name: {**errors(ways[0], name), **spent(ours), "own": "paired"} for name in BESIDE},
        "ways": {way: {**errors(way, name_of(papers[way])), **spent(papers[way]), "own": "loops"} for way in ways},
    }


def made(device: Device, family: str, seed: int, way: str, folder: Path, **how: Any) -> Profile:
    """The profile made in this way: the one that is kept, or a new one; one that was stopped is continued."""
    path = folder / "profiles" / f"{family}-{seed}-{way}.json"
    path.parent.mkdir(exist_ok=True)
    return (
        Profile.load(path)
        if path.exists()
        else ampere.profile(family, device=device, out=path, seed=seed, threads=1, **how).profile
    )


def trained(device: Device, family: str, profiles: list[Profile], seed: int, networks: int) -> dict[str, list[Pair]]:
    """Unseen networks, measured twice in both ways by a worker that is started afterwards."""
    ours = profiles[0]
    experiments = unseen(SpaceSource(find_space(family)), profiles, networks, seed)
    with device.fresh(watts_in(ours.meter.scope), seed + 1) as workers:
        worker = workers["tuned"]
        return {
            "paired": measure_twice(experiments, worker, ours, seed, lambda done, total: None),
            "loops": measure_twice(experiments, InLoops(worker), ours, seed, lambda done, total: None),
        }


def name_of(profile: Profile) -> str:
    return "sequential" if profile.timing == "yardstick" else "sequential_wallclock"


def figures(rows: Any, name: str) -> Record:
    ratios = [row.estimates[name] / row.actual for row in rows]
    factor = median(ratios)
    return {
        "error": mean(abs(ratio - 1) for ratio in ratios),
        "factor": factor,
        "scatter": mean(abs(ratio / factor - 1) for ratio in ratios),
    }


def spent(profile: Profile) -> Record:
    return {
        "points": len(profile.observations),
        "profiling_seconds": profile.profiling_seconds,
        "profiling_joules": profile.profiling_joules,
        "ended_by": profile.ended_by or "time",
        "kinds_ended": dict(profile.ended),
    }


def summarised(records: list[Record]) -> list[Record]:
    """For each family: the mean of each figure over seeds, with its standard error, which one seed does not have."""
    found = []
    for family in dict.fromkeys(record["family"] for record in records):
        of = [record for record in records if record["family"] == family]
        rows = [{**record["beside"], **record["ways"]} for record in of]
        names = [name for name in rows[0] if all(name in row for row in rows)]
        seconds = {name: with_bar([row[name]["profiling_seconds"] for row in rows]) for name in names}
        summary: Record = {"family": family, "seeds": len(of), "seconds": seconds}
        for how in ("paired", "loops"):
            summary[how] = {
                figure: {name: with_bar([row[name][how][figure] for row in rows]) for name in names}
                for figure in ("error", "scatter")
            }
            summary[how]["repeatability"] = with_bar([record["repeatability"][how] for record in of])
        found.append(summary)
    return found


def with_bar(values: list[float]) -> list[float | None]:
    return [mean(values), stdev(values) / len(values) ** 0.5 if len(values) > 1 else None]


def show(record: Record) -> None:
    first = [record["family"], str(record["seed"])]
    for name, row in {**record["beside"], **record["ways"]}.items():
        for how in ("paired", "loops"):
            figures = row[how]
            shown = [f"{figures['error']:.1%}", f"{figures['factor']:.3f}", f"{figures['scatter']:.1%}"]
            mark = "*" if how == row["own"] else ""
            taken = [str(row["points"]), f"{row['profiling_seconds']:.1f}", row["ended_by"]]
            print_row([*first, name, how + mark, *shown, *taken])


def show_summary(summary: list[Record]) -> None:
    for how in ("paired", "loops"):
        print_row([f"{how}: family", *summary[0][how]["error"], "repeatability"])
        for row in summary:
            bars = [*row[how]["error"].values(), row[how]["repeatability"]]
            print_row([row["family"], *(f"{m:.1%}" + (f" ±{100 * s:.1f}" if s is not None else "") for m, s in bars)])


def print_row(cells: list[str]) -> None:
    print(" | ".join(f"{cell:>15}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
