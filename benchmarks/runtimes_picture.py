"""The table of runtimes as a picture: how far estimates are off in each, and what the same network costs in each.

python benchmarks/runtimes_picture.py [--results benchmarks/results/runtimes.json] [--plot docs/images/runtimes.png]
"""

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes
from runtimes_stacks import COLOURS

from runtimes import FAMILIES, RUNTIMES

WIDTH = 0.2  # of a bar, where a family is 1
TICKS = (0.5, 1, 2, 5, 10, 20, 50, 100)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--results", type=Path, default=Path("benchmarks/results/runtimes.json"))
    parser.add_argument("--plot", type=Path, default=Path("docs/images/runtimes.png"))
    options = parser.parse_args()
    found = json.loads(options.results.read_text())
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for place, runtime in enumerate(RUNTIMES):
        errors(left, place, runtime, found)
        costs(right, place, runtime, found)
    left.set(ylabel="mean error on unseen networks, %", yscale="log", ylim=(0.3, 130))
    left.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
    left.minorticks_off()
    left.set_title("Ampere (bars), FLOPs with a constant (lines), the paper's (x)", fontsize=11)
    right.set(ylabel="modelled mJ a training step")
    right.set_title("the same network, beside one yardstick", fontsize=11)
    right.legend(frameon=False)
    for axes in (left, right):
        axes.set_xticks([family + 1.5 * WIDTH for family in range(len(FAMILIES))], FAMILIES)
        axes.tick_params(axis="x", length=0)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(options.plot, dpi=150)


def errors(axes: Axes, place: int, runtime: str, found: dict[str, Any]) -> None:
    for at, family in places(place):
        mape = found.get(f"{family}-{runtime}-validation", {}).get("mape")
        if mape is None:
            axes.text(at, 0.33, "cannot", rotation=90, ha="center", va="bottom", fontsize=7, color="0.5")
            continue
        axes.bar(at, 100 * mape["additive"], WIDTH, color=COLOURS[runtime])
        axes.hlines(100 * mape["flops_intercept"], at - WIDTH / 2, at + WIDTH / 2, color=COLOURS[runtime], linewidth=2)
        axes.plot(at, 100 * mape["sequential"], "x", color=COLOURS[runtime], markersize=5)


def costs(axes: Axes, place: int, runtime: str, found: dict[str, Any]) -> None:
    told = [found.get(f"{family}-side-by-side", {}).get("millijoules", {}).get(runtime) for family in FAMILIES]
    bars = [(at, cost) for (at, _), cost in zip(places(place), told, strict=True) if cost is not None]
    axes.bar([at for at, _ in bars], [cost for _, cost in bars], WIDTH, color=COLOURS[runtime], label=runtime)


def places(place: int) -> list[tuple[float, str]]:
    return [(index + place * WIDTH, family) for index, family in enumerate(FAMILIES)]


if __name__ == "__main__":
    main()
