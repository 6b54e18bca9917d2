"""Where additivity bends: the same layer stacked, in runtimes that run layers one by one and in those that fuse them.

    python benchmarks/runtimes_stacks.py [--runtimes torch torch-compile jax] [--minutes 3]
                                         [--folder benchmarks/results/runtimes] [--plot docs/images/fusion.png]

Stacks of one to eight layers, a convolution with a batch norm and a ReLU, are really trained in shuffled rounds. Drawn
is what each further layer adds, over what a layer costs on average, and what Ampere says of it after seeing stacks of
one, two and three only. One file a runtime; those that are there already are not measured again.
"""

import argparse
import json
import time
from itertools import pairwise
from pathlib import Path
from random import Random

from ampere.devices import describe, opened
from ampere.estimation import Estimator
from ampere.network import Layer, Network, TailOp, TrainingSetup
from ampere.network.variant import with_loss
from ampere.profiles.profile import Observation, Profile
from ampere.profiling.experiment import Experiment
from ampere.profiling.merging import merged
from ampere.profiling.observing import observation

BATCH, CHANNELS, SIZE, DEEPEST, SHOWN_TO_US, ROUNDS, WATTS = 10, 24, 20, 8, 3, 7, 5.0
COLOURS = {"torch": "#33617f", "torch-compile": "#c8553d", "jax": "#588157", "mnn": "#8a6fa8"}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtimes", nargs="+", default=["torch", "torch-compile", "jax"])
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/results/runtimes"))
    parser.add_argument("--plot", type=Path, default=Path("docs/images/fusion.png"))
    options = parser.parse_args()
    ends = time.monotonic() + 60 * options.minutes
    for runtime in options.runtimes:
        if not place(options.folder, runtime).exists() and time.monotonic() + 75 < ends:
            place(options.folder, runtime).write_text(json.dumps(measured(runtime), indent=1))
    found = {
        r: json.loads(place(options.folder, r).read_text())
        for r in options.runtimes
        if place(options.folder, r).exists()
    }
    for runtime, stack in found.items():
        print(
            runtime,
            *(f"{ms:.2f}" for ms in stack["milliseconds"]),
            "ms; estimated",
            *(f"{ms:.2f}" for ms in stack["estimated"]),
        )
    draw(found, options.plot)


def place(folder: Path, runtime: str) -> Path:
    return folder / f"stacks-{runtime}.json"


def stack(depth: int) -> Network:
    values = float(BATCH * CHANNELS * SIZE * SIZE)
    both = {"batch": BATCH, "bias": True}
    spread = {name: (n, n) for name, n in (("kernel", 3), ("stride", 1), ("padding", 1), ("dilation", 1))}
    conv = Layer("conv", {**both, **spread, "size_in": (SIZE, SIZE), "groups": 1}, CHANNELS, CHANNELS)
    relu = (TailOp("elementwise", values, values),)
    norm = Layer("norm_batch", {**both, "size": (SIZE, SIZE)}, CHANNELS, CHANNELS, relu)
    return Network((conv, norm) * depth, BATCH, f"{depth} of them")


def measured(runtime: str) -> dict[str, object]:
    """Milliseconds of CPU time at the yardstick's nominal speed, by depth."""
    setup, described = TrainingSetup(runtime), describe("local", WATTS)
    seen: list[Observation] = []
    with opened("local", WATTS) as devices:
        device = devices["tuned"]
        nominal = device.yardstick(0.5, 1, runtime).cpu_seconds
        rng, order = Random(0), list(range(1, DEEPEST + 1))
        for _ in range(ROUNDS):
            rng.shuffle(order)
            for depth in order:
                network = stack(depth)
                experiment = Experiment(
                    Network(with_loss(network.layers), BATCH), {"layers": network.to_json()}, "network"
                )
                block = device.block(experiment.subject, setup, iterations=10, warmup=3)
                found = observation(experiment, block, described.meter, nominal)
                seen += [] if found is None else [found]
    together = sorted(merged(seen), key=lambda o: len(o.network.layers))
    known = tuple(o for o in together if len(o.network.layers) <= 2 * SHOWN_TO_US)
    estimator = Estimator(Profile(described.identity, setup, described.meter, nominal, known))
    said = [estimator.estimate(o.network, "tuned") for o in together]
    return {
        "milliseconds": [1000 * o.measurement.cpu_seconds for o in together],
        "spread": [o.measurement.spread for o in together],
        "estimated": [1000 * e.joules / WATTS for e in said],
        "stddev": [1000 * e.stddev / WATTS for e in said],
        "compile_seconds": sum(o.measurement.conditions.get("compile_seconds", 0.0) for o in together),
    }


def draw(found: dict[str, dict[str, list[float]]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for runtime, stack in found.items():
        costs, said = stack["milliseconds"], stack["estimated"]
        depths, colour = list(range(1, len(costs) + 1)), COLOURS.get(runtime, "black")
        left.plot(depths, costs, "o", color=colour, label=runtime)
        left.plot(depths, said, "-", color=colour, linewidth=1)
        each = (costs[-1] - costs[0]) / (len(costs) - 1)
        added = [(b - a) / each for a, b in pairwise(costs)]
        right.plot(depths[1:], [100 * a for a in added], "o-", color=colour, linewidth=1)
    left.set(xlabel="layers in the stack", ylabel="CPU time of a training step in ms", ylim=(0, None))
    left.set_title("dots: measured; lines: estimated from 1 to 3 layers", fontsize=10)
    left.legend(frameon=False)
    right.axhline(100, color="0.7", linewidth=1, zorder=0)
    right.set(xlabel="layers in the stack", ylabel="% of what a layer adds on average")
    right.set_title("what each further layer adds", fontsize=10)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
