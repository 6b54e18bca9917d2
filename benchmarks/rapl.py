"""Real joules: single layers that others measured with RAPL on two CPUs, learnt from a few rows, the rest estimated.

    python benchmarks/rapl.py [--data FOLDER] [--seeds 10] [--out benchmarks/results/rapl.json]

FOLDER holds `<cpu>-<kind>.csv` of willowec/characterizing-pytorch-power (MIT): PyTorch layers with bias, without
padding, mean squared error as the loss, SGD. A row's joules are forward, backward and update together. Rows whose
counter wrapped (no positive energy) are left out. The folder is taken from --data, $AMPERE_RAPL_DATA, or
../shared/data beside the clone.
"""

import argparse
import csv
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small matrices: threads only wait for each other

import numpy as np

from ampere.baselines import METHODS
from ampere.estimation import Z90
from ampere.network import Layer, Network, TailOp, work
from ampere.surrogate.additive import Additive, Data
from ampere.surrogate.features import layer_position
from ampere.surrogate.learning import calibrated, learn

CPUS = ("raptorlake", "broadwell-ep")
ROWS = (20, 50, 100, 200)
TRANSFERRED_ROWS, SOURCE_ROWS = (0, 5, 20), 200
TICK_MICROSECONDS, WINDOWS_A_ROW = 1000.0, 50  # of the counter; five batches, ten times, each read alone
UNKNOWN_NOISE = 1e-6  # rows come without repeats: their noise is for the surrogate to find
RIVALS = ("physics x GP", "boosting", "physics", "FLOPs + const")


def main() -> None:
    beside = Path(__file__).resolve().parents[2] / "shared" / "data" / "rapl-training-layers"
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("AMPERE_RAPL_DATA", beside)))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/rapl.json"))
    options = parser.parse_args()
    if not (options.data / "raptorlake-conv.csv").is_file():
        print("skipped: the RAPL rows are not there; name their folder with --data or AMPERE_RAPL_DATA")
        return
    data = {(cpu, kind): load(options.data, cpu, kind) for cpu in CPUS for kind in LAYERS}
    print_row("MAPE on the rest", ["rows", "ours", "covers", *RIVALS])
    learnt = [compare(*key, rows, data[key], options.seeds) for key in data for rows in ROWS]
    errors = {f"{cpu} {kind}": counter_error(options.data, cpu, kind) for cpu, kind in data}
    for name, error in errors.items():
        print_row(name, [f"{error:.1%} is the counter's own"])
    print_row("from another CPU", ["rows", "ours", "alone"])
    moved = [
        transfer(kind, rows, data[a, kind], data[b, kind], b, options.seeds)
        for kind in LAYERS
        for a, b in (CPUS, CPUS[::-1])
        for rows in TRANSFERRED_ROWS
    ]
    options.out.parent.mkdir(exist_ok=True)
    record = {"seeds": options.seeds, "counter_error": errors, "learnt": learnt, "transferred": moved}
    options.out.write_text(json.dumps(record, indent=1))


def conv(row: dict[str, str]) -> Layer:
    batch, side, k, stride = (int(row[name]) for name in ("batch_size", "side_len", "k_size", "stride"))
    config = {"batch": batch, "size_in": (side, side), "kernel": (k, k), "stride": (stride, stride)}
    config |= {"padding": (0, 0), "dilation": (1, 1), "groups": 1, "bias": True}
    out = int(row["out_chan"])
    return with_loss(Layer("conv", config, int(row["in_chan"]), out), batch * out * ((side - k) // stride + 1) ** 2)


def linear(row: dict[str, str]) -> Layer:
    batch, out = int(row["batch_size"]), int(row["out_size"])
    return with_loss(Layer("linear", {"lead": (batch,), "bias": True}, int(row["in_size"]), out), batch * out)


def with_loss(layer: Layer, values: int) -> Layer:
    """Its output and the labels are read by the loss; nothing before it wants a gradient."""
    loss = TailOp("reduce", 2.0 * values, 1.0)
    return Layer(layer.kind, layer.config, layer.channels_in, layer.channels_out, (loss,), input_grad=False)


LAYERS: dict[str, Callable[[dict[str, str]], Layer]] = {"conv": conv, "linear": linear}


def load(folder: Path, cpu: str, kind: str) -> Data:
    with open(folder / f"{cpu}-{kind}.csv") as file:
        rows = [row for row in csv.DictReader(file) if min(float(row["for_energy"]), float(row["back_energy"])) > 0]
    networks = tuple(Network((LAYERS[kind](row),), int(row["batch_size"])) for row in rows)
    joules = np.array([float(row["for_energy"]) + float(row["back_energy"]) for row in rows]) * 1e-6
    return Data(networks, joules, np.full(len(rows), UNKNOWN_NOISE), np.zeros(len(rows)))


def counter_error(folder: Path, cpu: str, kind: str) -> float:
    """Mean relative error that the counter alone leaves, were the truth known.

    A window of t ticks sees floor(t) of them or one more, so its variance is f (1 - f) with f = t - floor(t);
    a row is the mean of fifty such windows, forward and backward each.
    """
    with open(folder / f"{cpu}-{kind}.csv") as file:
        rows = [row for row in csv.DictReader(file) if min(float(row["for_energy"]), float(row["back_energy"])) > 0]
    ticks = np.array([[float(row["for_time"]), float(row["back_time"])] for row in rows]) / TICK_MICROSECONDS
    variance = np.sum(ticks % 1 * (1 - ticks % 1), axis=1) / WINDOWS_A_ROW
    return float(np.mean(np.sqrt(2 * variance / np.pi) / ticks.sum(axis=1)))


def split(data: Data, rows: int, seed: int) -> tuple[Data, Data]:
    chosen = np.zeros(len(data), dtype=bool)
    chosen[np.random.default_rng(seed).permutation(len(data))[:rows]] = True
    return data.only(chosen), data.only(~chosen)


def ours(seen: Data) -> Additive:
    return calibrated(learn(seen), np.ones(len(seen), dtype=bool))


def estimates(model: Additive, networks: tuple[Network, ...]) -> tuple[np.ndarray, np.ndarray]:
    answers = [model.answer(network) for network in networks]
    return np.array([a.seconds for a in answers]), np.array([a.stddev for a in answers])  # costs here are joules


def compare(cpu: str, kind: str, rows: int, data: Data, seeds: int) -> dict[str, object]:
    found: dict[str, list[float]] = {}
    for seed in range(seeds):
        seen, rest = split(data, rows, seed)
        mean, stddev = estimates(ours(seen), rest.networks)
        figures = {"ours": mape(mean, rest), "covers": float(np.mean(np.abs(mean - rest.costs) <= Z90 * stddev))}
        known = SimpleNamespace(networks=seen.networks, costs=seen.costs)
        physics, line = METHODS["physics"].fit(known), METHODS["flops_intercept"].fit(known)
        figures["physics"], figures["FLOPs + const"] = (
            mape(physics(rest.networks), rest),
            mape(line(rest.networks), rest),
        )
        figures["physics x GP"] = mape(gaussian_process(seen, rest, physics), rest)
        figures["boosting"] = mape(boosting(seen, rest), rest)
        for name, figure in figures.items():
            found.setdefault(name, []).append(figure)
    average = {name: float(np.mean(figures)) for name, figures in found.items()}
    print_row(f"{cpu} {kind}", [rows, *(f"{average[name]:.1%}" for name in ("ours", "covers", *RIVALS))])
    return {"cpu": cpu, "kind": kind, "rows": rows, "mape": average}


def transfer(kind: str, rows: int, source: Data, target: Data, to: str, seeds: int) -> dict[str, object]:
    """The other CPU's surrogate, times one factor: the median ratio of the rows measured here; without rows, 1."""
    moved, alone = [], []
    for seed in range(seeds):
        other = ours(split(source, SOURCE_ROWS, seed)[0])
        seen, rest = split(target, rows, seed)
        factor = float(np.median(seen.costs / estimates(other, seen.networks)[0])) if rows else 1.0
        moved.append(mape(factor * estimates(other, rest.networks)[0], rest))
        if rows:
            alone.append(mape(estimates(ours(seen), rest.networks)[0], rest))
    by_itself = float(np.mean(alone)) if alone else None
    figures = [rows, f"{np.mean(moved):.1%}", "-" if by_itself is None else f"{by_itself:.1%}"]
    print_row(f"{to} {kind}", figures)
    return {"to": to, "kind": kind, "rows": rows, "mape": float(np.mean(moved)), "mape_alone": by_itself}


def boosting(seen: Data, rest: Data) -> np.ndarray:
    """On logarithms of sizes, arithmetic and memory."""
    from sklearn.ensemble import GradientBoostingRegressor

    model = GradientBoostingRegressor(random_state=0).fit(sizes(seen), np.log(seen.costs))
    return np.exp(model.predict(sizes(rest)))


def gaussian_process(seen: Data, rest: Data, physics: Callable[..., np.ndarray]) -> np.ndarray:
    """One length scale, on logarithms."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    shape = ConstantKernel(0.05) * Matern(2.0, (0.2, 100), nu=2.5) + WhiteKernel(0.01, (1e-5, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianProcessRegressor(shape).fit(positions(seen), np.log(seen.costs / physics(seen.networks)))
        return physics(rest.networks) * np.exp(model.predict(positions(rest)))


def positions(data: Data) -> np.ndarray:
    return np.array([layer_position(network.layers[0], 8) for network in data.networks])


def sizes(data: Data) -> np.ndarray:
    asked = [work(network.layers[0]) for network in data.networks]
    return np.column_stack([positions(data), np.log2([[a.flops, a.values] for a in asked])])


def mape(estimated: np.ndarray, actual: Data) -> float:
    return float(np.mean(np.abs(estimated / actual.costs - 1)))


def print_row(name: str, cells: list[object]) -> None:
    print(f"{name:<20}" + "".join(f"{cell!s:>14}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
