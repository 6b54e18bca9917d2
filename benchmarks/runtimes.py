"""Runtimes side by side: families x runtimes, ours beside FLOPs with an intercept and the paper's method.

    python benchmarks/runtimes.py [--families cnn5 har] [--runtimes torch jax] [--minutes 3]
                                  [--folder benchmarks/results/runtimes]

A cell is a family in a runtime: a profile of ours, one of the paper's method made in as many seconds, and then unseen
random networks of the family that are really trained, twice. At last the family's original in every runtime, beside
PyTorch's yardstick, so that runtimes can be compared. Each part is a file in the folder; a run does what is missing
until its minutes are over, and the same command goes on from there. The table is printed at the end of every run, and
what it is made of is kept in one file beside the folder.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import ampere
from ampere.core import TrainingSetup
from ampere.core.errors import AmpereError
from ampere.devices import Device
from ampere.models import SPACES
from ampere.profiling.capabilities import built_by
from ampere.profiling.sources import SpaceSource
from ampere.storage.profile import Profile

FAMILIES = ("lenet5", "cnn5", "har", "lstm", "transformer", "resnet")
RUNTIMES = ("torch", "torch-compile", "jax", "mnn")
LARGE = ("transformer", "resnet")  # many layers: a step takes longer, and much longer to compile
# Seconds of a profile: of small families, of large ones. Those who compile spend most of theirs on it.
SECONDS = {"torch": (15.0, 25.0), "mnn": (15.0, 25.0), "jax": (150.0, 150.0), "torch-compile": (150.0, 300.0)}
# One network of resnet compiles for half a minute; those of lenet5 cost nearly the same.
LONGER = {("resnet", "torch-compile"): 840.0, ("lenet5", "torch"): 45.0, ("lenet5", "mnn"): 45.0}
COMPILE_LIMIT = 600.0  # seconds
COMPILING = {"torch": (0.0, 0.0), "mnn": (0.0, 0.0), "jax": (2.0, 8.0), "torch-compile": (10.0, 75.0)}  # a network
NETWORKS = {"torch": 20, "mnn": 20, "jax": 16, "torch-compile": 12}
# Rounds of each of the two measurements. The networks of lenet5 cost nearly the same: to tell them apart takes more.
ROUNDS = {"lenet5": 15}
USUAL_ROUNDS = 5
BLOCK_SECONDS = 0.25
METHODS = ("additive", "sequential", "flops_intercept")
WATTS = 5.0
ROUNDS_SIDE_BY_SIDE = 5

Part = tuple[str, float, Callable[[Path], Any]]  # its name, the seconds it takes at most, and what does it


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--families", nargs="+", default=FAMILIES)
    parser.add_argument("--runtimes", nargs="+", default=RUNTIMES)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/results/runtimes"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    ends = time.monotonic() + 60 * options.minutes
    for name, seconds, do in missing(options):
        if time.monotonic() + seconds > ends:
            print(f"{name} would take about {seconds:.0f} s: run this again", flush=True)
            break
        began = time.monotonic()
        do(options.folder)
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    table(options)


def missing(options: argparse.Namespace) -> Iterator[Part]:
    parts = [part for family in options.families for runtime in options.runtimes for part in cell(family, runtime)]
    if set(options.runtimes) >= set(RUNTIMES):
        parts += [side_by_side(family, tuple(options.runtimes)) for family in options.families]
    return (part for part in parts if not (options.folder / f"{part[0]}.json").exists())


def cell(family: str, runtime: str) -> Iterator[Part]:
    if unbuildable(family, runtime):
        return
    name, seconds = f"{family}-{runtime}", profiling_seconds(family, runtime)
    for method in ("additive", "sequential"):
        yield f"{name}-{method}", 1.1 * seconds, partial(profile, family=family, runtime=runtime, method=method)
    yield f"{name}-validation", validation_seconds(family, runtime), lambda folder: validate(folder, family, runtime)


def unbuildable(family: str, runtime: str) -> str:
    try:
        built_by(Device(), runtime, SpaceSource(SPACES[family]))
    except AmpereError as problem:
        return str(problem)
    return ""


def profiling_seconds(family: str, runtime: str) -> float:
    return LONGER.get((family, runtime), SECONDS[runtime][family in LARGE])


def validation_seconds(family: str, runtime: str) -> float:
    rounds = 2 * ROUNDS.get(family, USUAL_ROUNDS)
    return NETWORKS[runtime] * (rounds * BLOCK_SECONDS + COMPILING[runtime][family in LARGE])


def profile(folder: Path, family: str, runtime: str, method: str) -> None:
    path, seconds = folder / f"{family}-{runtime}-{method}.json", profiling_seconds(family, runtime)
    ampere.profile(
        family, seconds=seconds, out=path, runtime=runtime, method=method, compile_limit=COMPILE_LIMIT, threads=1
    )


def validate(folder: Path, family: str, runtime: str) -> None:
    ours, paper = (Profile.load(folder / f"{family}-{runtime}-{m}.json") for m in ("additive", "sequential"))
    rounds = ROUNDS.get(family, USUAL_ROUNDS)
    with Device(compile_limit=COMPILE_LIMIT) as device:
        found = ampere.validate(
            family, ours, others=[paper], methods=METHODS, networks=NETWORKS[runtime], rounds=rounds, device=device
        )
    keep(folder / f"{family}-{runtime}-validation.json", {**found.to_json(), "compile_seconds": compile_seconds(ours)})


def compile_seconds(profile: Profile) -> float:
    return sum(o.measurement.compile_seconds for o in profile.observations)


def side_by_side(family: str, runtimes: tuple[str, ...]) -> Part:
    able = [runtime for runtime in runtimes if not unbuildable(family, runtime)]
    return f"{family}-side-by-side", 60.0, lambda folder: compare(folder, family, able)


def compare(folder: Path, family: str, runtimes: list[str]) -> None:
    """The original in every runtime in turn, each in a worker of its own, between windows of PyTorch's yardstick."""
    source = SpaceSource(SPACES[family])
    ratios: dict[str, list[float]] = {runtime: [] for runtime in runtimes}
    nominal: list[float] = []
    with ExitStack() as workers:
        opened = [Device(watts_per_core=WATTS, compile_limit=COMPILE_LIMIT) for _ in ("yardstick", *runtimes)]
        beside, *devices = (workers.enter_context(device).worker() for device in opened)
        for _ in range(ROUNDS_SIDE_BY_SIDE):
            for runtime, device in zip(runtimes, devices, strict=True):
                workload = built_by(opened[0], runtime, source).original().workload
                before = beside.yardstick(0.15).busy_seconds
                block = device.block(workload, TrainingSetup(runtime), iterations=10, warmup=3)
                after = beside.yardstick(0.15).busy_seconds
                ratios[runtime].append(2 * block.busy_seconds / (before + after))
                nominal.append((before + after) / 2)
    millijoules = {r: 1000 * WATTS * median(nominal) * median(found) for r, found in ratios.items()}
    keep(folder / f"{family}-side-by-side.json", {"ratios": ratios, "millijoules": millijoules})


def keep(path: Path, record: dict[str, Any]) -> None:
    """Whole or not at all."""
    path.with_suffix(".part").write_text(json.dumps(record, indent=1))
    path.with_suffix(".part").replace(path)


def table(options: argparse.Namespace) -> None:
    heads = ("family", "runtime", "networks", "profiled", "compiling", "ours", "paper's", "FLOPs+c", "of it", "repeat")
    show([*heads, "mJ a step"])
    for family in options.families:
        for runtime in options.runtimes:
            show(row(options.folder, family, runtime))
    kept = ("*-validation.json", "*-side-by-side.json", "stacks-*.json")
    parts = [path for pattern in kept for path in sorted(options.folder.glob(pattern))]
    keep(options.folder.with_suffix(".json"), {path.stem: json.loads(path.read_text()) for path in parts})


def row(folder: Path, family: str, runtime: str) -> list[str]:
    told, beside = (read(folder / f"{family}-{name}.json") for name in (f"{runtime}-validation", "side-by-side"))
    if told is None:
        reason = "cannot be built" if unbuildable(family, runtime) else "not measured"
        return [family, runtime, reason]
    mape, joules = told["mape"], (beside or {"millijoules": {}})["millijoules"].get(runtime)
    return [
        family,
        runtime,
        str(told["networks"] if isinstance(told["networks"], int) else len(told["rows"])),
        f"{told['profiling_seconds']:.0f} s",
        f"{told['compile_seconds']:.0f} s" if told["compile_seconds"] else "-",
        *(f"{mape[method]:.1%}" for method in METHODS),
        f"{mape['additive'] / mape['flops_intercept']:.2f}",
        f"{told['repeatability_mape']:.1%}",
        "-" if joules is None else f"{joules:.1f}",
    ]


def read(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text()) if path.exists() else None


def show(cells: list[str]) -> None:
    widths = (11, 13, *([9] * len(cells)))
    print("  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=False)).rstrip(), flush=True)


if __name__ == "__main__":
    main()
