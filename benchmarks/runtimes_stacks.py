"""Where additivity bends: the same layer stacked, in runtimes that run layers one by one and in those that fuse them.

    python benchmarks/runtimes_stacks.py [--runtimes torch torch-compile jax] [--minutes 3]
                                         [--folder benchmarks/results/runtimes] [--plot docs/images/fusion.png]

Stacks of one to eight layers, a convolution with a batch norm and a ReLU, are really trained in shuffled rounds. Drawn
is what a step of each costs, and what Ampere says of every depth after seeing stacks of one, two and three layers only,
and after seeing one of six as well. One file a runtime; those that are there
already are not measured again.
"""

import argparse
import json
import time
from pathlib import Path
from random import Random

from ampere.core import Layer, Measurement, Meter, Network, TrailingOp, TrainingSetup
from ampere.core.measurement import Window
from ampere.core.network import with_loss
from ampere.devices import Device
from ampere.estimation.estimator import Estimator
from ampere.estimation.normalization import Reference, normalized
from ampere.profiling.experiment import Experiment
from ampere.storage.profile import Observation, Profile

BATCH, CHANNELS, SIZE, DEEPEST, ROUNDS, WATTS = 10, 24, 20, 8, 7, 5.0
SHOWN = ((1, 2, 3), (1, 2, 3, 6))  # depths that estimates are made from
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
    for runtime, told in found.items():
        costs = told["milliseconds"]
        lines = {"measured": costs, **{f"from {shown}": estimated(runtime, costs, shown) for shown in SHOWN}}
        for name, line in lines.items():
            print(f"{runtime:14}{name:20}", *(f"{ms:6.2f}" for ms in line), "ms")
    draw(found, options.plot)


def place(folder: Path, runtime: str) -> Path:
    return folder / f"stacks-{runtime}.json"


def stack(depth: int) -> Network:
    values = float(BATCH * CHANNELS * SIZE * SIZE)
    both = {"batch": BATCH, "bias": True}
    spread = {name: (n, n) for name, n in (("kernel", 3), ("stride", 1), ("padding", 1), ("dilation", 1))}
    conv = Layer("conv", {**both, **spread, "size_in": (SIZE, SIZE), "groups": 1}, CHANNELS, CHANNELS)
    relu = (TrailingOp("elementwise", values, values),)
    norm = Layer("norm_batch", {**both, "size": (SIZE, SIZE)}, CHANNELS, CHANNELS, relu)
    return Network((conv, norm) * depth, BATCH, f"{depth} of them")


def measured(runtime: str) -> dict[str, object]:
    """Milliseconds of CPU time at the yardstick's nominal speed, by depth."""
    setup = TrainingSetup(runtime)
    seen: list[Observation] = []
    with Device(watts_per_core=WATTS) as device:
        worker = device.worker()
        nominal = worker.yardstick(0.5, 1, runtime).busy_seconds
        rng, order = Random(0), list(range(1, DEEPEST + 1))
        for _ in range(ROUNDS):
            rng.shuffle(order)
            for depth in order:
                network = stack(depth)
                experiment = Experiment(
                    Network(with_loss(network.layers), BATCH), {"layers": network.to_json()}, "network"
                )
                found = worker.block(experiment.workload, setup, iterations=10, warmup=3)
                seen.append(experiment.observed(found))
    costs = sorted(normalized(seen, Reference(nominal)), key=lambda cost: len(cost.network.layers))
    return {
        "milliseconds": [1000 * cost.busy_seconds for cost in costs],
        "spread": [cost.spread for cost in costs],
        "compile_seconds": sum(cost.compile_seconds for cost in costs),
    }


def estimated(runtime: str, milliseconds: list[float], shown: tuple[int, ...]) -> list[float]:
    """What Ampere says of every depth after seeing only some of them."""
    with Device(watts_per_core=WATTS) as device:
        described = device.described
    unit = 1e-3  # any yardstick will do: all these figures refer to the same
    networks = [Network(with_loss(stack(depth).layers), BATCH) for depth in range(1, DEEPEST + 1)]
    known = [Observation(networks[d - 1], figure(milliseconds[d - 1], unit, described.meter), "network") for d in shown]
    estimator = Estimator(Profile(described.identity, TrainingSetup(runtime), described.meter, unit, tuple(known)))
    return [1000 * estimator.estimate(network, "tuned").joules / WATTS for network in networks]


def figure(milliseconds: float, unit: float, meter: Meter) -> Measurement:
    """A block of 70 steps that take so long, paired with a yardstick that takes `unit` seconds."""
    seconds, yardstick = milliseconds / 1000, Window(1, unit, unit, WATTS * unit)
    return Measurement((Window(70, 70 * seconds, 70 * seconds, 70 * WATTS * seconds),), (yardstick, yardstick), meter)


def draw(found: dict[str, dict[str, list[float]]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for runtime, told in found.items():
        costs = told["milliseconds"]
        depths, colour = list(range(1, len(costs) + 1)), COLOURS.get(runtime, "black")
        left.plot(depths, costs, "o", color=colour, label=runtime)
        for shown, style in zip(SHOWN, (":", "-"), strict=True):
            said = estimated(runtime, costs, shown)
            left.plot(depths, said, style, color=colour, linewidth=1.2)
            off = [100 * (told / cost - 1) for told, cost in zip(said, costs, strict=True)]
            right.plot(depths, off, style, color=colour, linewidth=1.6)
    left.set(
        xlabel="convolutions with norm and ReLU in the stack", ylabel="CPU time of a training step in ms", ylim=(0, 20)
    )
    left.set_title("measured (dots) and estimated (lines)", fontsize=11)
    left.legend(frameon=False)
    right.axhline(0, color="0.8", linewidth=1, zorder=0)
    right.set(xlabel="convolutions with norm and ReLU in the stack", ylabel="estimate over measurement, %")
    right.set_title("after 1, 2, 3 layers (dotted), and also 6 (solid)", fontsize=11)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
