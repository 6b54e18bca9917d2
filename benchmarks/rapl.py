"""Real joules: single layers that others measured with RAPL on two CPUs, learnt from a few rows, the rest estimated.

    python benchmarks/rapl.py [--data FOLDER] [--splits 20] [--cpus raptorlake] [--kinds linear] [--out FILE]

FOLDER holds `<cpu>-<kind>.csv` of willowec/characterizing-pytorch-power (MIT): PyTorch layers with bias, without
padding, mean squared error as the loss, SGD. A row's joules are forward, backward and update together. Rows whose
counter wrapped (no positive energy) are left out. The folder is taken from --data, $AMPERE_RAPL_DATA, or
../shared/data beside the clone. Results are written part by part, beside what the file already tells of other parts.

All are judged by their mean relative error, which a low answer serves: where a reading spreads by a quarter, the best
answer is some percent below the middle. Those fitted to relative errors (physics, FLOPs) lean so by themselves. Ours
answers with the point that its own distribution makes best; `mean` is its mean. The rival Gaussian process is shown
both ways.
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
from ampere.core import Layer, Network, TrailingOp, work
from ampere.estimation.additive import Additive, Data
from ampere.estimation.estimate import Z90
from ampere.estimation.features import layer_position
from ampere.estimation.learning import calibrated, learn

CPUS = ("raptorlake", "broadwell-ep")
ROWS = (20, 50, 100, 200)
MOST_SPREAD = 0.5  # relative, that answers lean by
TICK_MICROSECONDS, WINDOWS_A_ROW = 1000.0, 50  # of the counter; five batches, ten times, each read alone
MISSING = "skipped: the RAPL rows are not there; name their folder with --data or AMPERE_RAPL_DATA"
UNKNOWN_NOISE = 1e-6  # rows come without repeats: their noise is for the surrogate to find
SHOWN = ("ours", "mean", "covers")
RIVALS = ("physics x GP", "GP leaning", "boosting", "physics", "FLOPs + const")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=default_folder())
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--cpus", nargs="+", choices=CPUS, default=CPUS)
    parser.add_argument("--kinds", nargs="+", choices=TRAINED, default=TRAINED)
    parser.add_argument("--half", type=int, choices=(0, 1), help="only rows with even (0) or odd (1) numbers")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/rapl.json"))
    options = parser.parse_args()
    if not (options.data / "raptorlake-conv.csv").is_file():
        print(MISSING)
        return
    record = json.loads(options.out.read_text()) if options.out.exists() else {}
    print_row("MAPE on the rest", ["rows", *SHOWN, *RIVALS, "ahead by"])
    for kind in options.kinds:
        for cpu in options.cpus:
            data = load(options.data, cpu, kind)
            if options.half is not None:
                data = data.only(np.arange(len(data)) % 2 == options.half)
            found = {str(rows): compare(cpu, kind, rows, data, options.splits) for rows in ROWS}
            error = counter_error(options.data, cpu, kind)
            print_row(f"{cpu} {kind}", [f"{error:.1%} is the counter's own"])
            record[f"{cpu} {kind}"] = {"splits": options.splits, "counter_error": error, "rows": found}
            options.out.write_text(json.dumps(record, indent=1))


def default_folder() -> Path:
    beside = Path(__file__).resolve().parents[2] / "shared" / "data" / "rapl-training-layers"
    return Path(os.environ.get("AMPERE_RAPL_DATA", beside))


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
    loss = TrailingOp("reduce", 2.0 * values, 1.0)
    return Layer(layer.kind, layer.config, layer.channels_in, layer.channels_out, (loss,), input_grad=False)


def pool(row: dict[str, str]) -> Layer:
    """Forward alone, as it was measured."""
    batch, channels, side = int(row["batch_size"]), int(row["in_chan"]), int(row["im_side_length"])
    out = (side - int(row["k_side_length"])) // int(row["stride"]) + 1
    pooled = TrailingOp("pool", float(batch * channels * side**2), float(batch * channels * out**2), backward=False)
    return Layer("nonparametric", {"batch": batch}, channels, channels, (pooled,), trainable=False, input_grad=False)


LAYERS: dict[str, Callable[[dict[str, str]], Layer]] = {"conv": conv, "linear": linear, "pool": pool}
TRAINED = ("conv", "linear")  # what is learnt from a few rows; pooling is only used for whole networks


def load(folder: Path, cpu: str, kind: str) -> Data:
    with open(folder / f"{cpu}-{kind}.csv") as file:
        rows = [row for row in csv.DictReader(file) if float(row["for_energy"]) > 0 and _trained(row, kind)]
    networks = tuple(Network((LAYERS[kind](row),), int(row["batch_size"])) for row in rows)
    joules = np.array([float(row["for_energy"]) + float(row["back_energy"]) for row in rows]) * 1e-6
    return Data(networks, joules, np.full(len(rows), UNKNOWN_NOISE), np.zeros(len(rows)))


def _trained(row: dict[str, str], kind: str) -> bool:
    return kind not in TRAINED or float(row["back_energy"]) > 0


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
    """Joules and their standard deviations, of all at once."""
    means, posterior = model.joint(networks, np.zeros(len(networks)))
    variances = np.maximum(np.diag(posterior), 0.0) + model.measurement_variance(means)
    return means, model.hyper.calibration * np.sqrt(variances)


def leaning(means: np.ndarray, stddevs: np.ndarray) -> np.ndarray:
    """The answers of least expected relative error: medians with weights 1 / cost, of log-normal distributions."""
    return np.asarray(means * np.exp(-(np.minimum(stddevs / means, MOST_SPREAD) ** 2)))


def compare(cpu: str, kind: str, rows: int, data: Data, splits: int) -> dict[str, object]:
    """Means over splits, and by how much ours is ahead of each rival, with the standard error of that."""
    found: dict[str, list[float]] = {}
    for seed in range(splits):
        for name, figure in one_split(*split(data, rows, seed)).items():
            found.setdefault(name, []).append(figure)
    average = {name: float(np.mean(figures)) for name, figures in found.items()}
    ahead = {name: gain(found[name], found["ours"]) for name in RIVALS}
    nearest = min(RIVALS, key=lambda name: average[name])
    margin = f"{100 * ahead[nearest][0]:+.2f}+-{100 * ahead[nearest][1]:.2f}"
    print_row(f"{cpu} {kind}", [rows, *(f"{average[name]:.1%}" for name in (*SHOWN, *RIVALS)), margin])
    return {"mape": average, "ahead": ahead}


def one_split(seen: Data, rest: Data) -> dict[str, float]:
    model = ours(seen)
    mean, stddev = estimates(model, rest.networks)
    spread = stddev / model.hyper.calibration  # which is made for the far ends, not for the middle
    known = SimpleNamespace(networks=seen.networks, costs=seen.costs)
    physics, line = METHODS["physics"].fit(known), METHODS["flops_intercept"].fit(known)
    plain, low = gaussian_process(seen, rest, physics)
    said = {"ours": leaning(mean, spread), "mean": mean, "physics x GP": plain, "GP leaning": low}
    said |= {"boosting": boosting(seen, rest), "physics": physics(rest.networks), "FLOPs + const": line(rest.networks)}
    covered = float(np.mean(np.abs(mean - rest.costs) <= Z90 * stddev))
    return {"covers": covered} | {name: mape(costs, rest) for name, costs in said.items()}


def gain(theirs: list[float], our: list[float]) -> tuple[float, float]:
    """Splits share rows, so that the error is a little too small."""
    differences = np.array(theirs) - np.array(our)
    return float(np.mean(differences)), float(np.std(differences, ddof=1) / np.sqrt(len(differences)))


def boosting(seen: Data, rest: Data) -> np.ndarray:
    """On logarithms of sizes, arithmetic and memory."""
    from sklearn.ensemble import GradientBoostingRegressor

    model = GradientBoostingRegressor(random_state=0).fit(sizes(seen), np.log(seen.costs))
    return np.exp(model.predict(sizes(rest)))


def gaussian_process(seen: Data, rest: Data, physics: Callable[..., np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """One length scale, on logarithms; its median, and that leaning as ours does."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    shape = ConstantKernel(0.05) * Matern(2.0, (0.2, 100), nu=2.5) + WhiteKernel(0.01, (1e-5, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianProcessRegressor(shape).fit(positions(seen), np.log(seen.costs / physics(seen.networks)))
        mean, stddev = model.predict(positions(rest), return_std=True)
        median = physics(rest.networks) * np.exp(mean)
        return median, leaning(median, median * stddev)


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
