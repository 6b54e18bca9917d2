"""Single layers that others measured, real joules on two CPUs and times on two GPUs: some rows teach the rest.

    python benchmarks/others_rows.py [--devices broadwell-ep v100] [--kinds conv] [--optimizers sgd] [--rows 20 50]
        [--splits 5] [--table] [--limit]

CPUs: rows of willowec/characterizing-pytorch-power (MIT; `<cpu>-<kind>.csv`): PyTorch layers with bias, without
padding, mean squared error as the loss, SGD. A row's joules are forward, backward and update together. Rows whose
counter wrapped (no positive energy) are left out. GPUs: rows of CDECatapult/ml-performance-prediction (Apache-2.0;
`<kind>-<gpu>.csv`): TensorFlow layers with their loss, SGD or Adam, milliseconds of a step. Folders are taken from
--data and --gpu-data, from $AMPERE_RAPL_DATA and $AMPERE_GPU_DATA, or from ../shared/data beside the clone. Results
are written to --out part by part, beside what it already has; --table prints them for the documentation. --limit
prints what no number of rows can teach: the error that is left where all other rows do, and that between twins.

Choices are made on Raptor Lake and one GPU, and reported on Broadwell and the other GPU: row tiles and copies were
found on K40, the starts of the search on V100.
"""

import argparse
import csv
import json
import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small matrices: threads only wait for each other

import numpy as np

from ampere.baselines import METHODS, Evidence
from ampere.core import Layer, Network, TrailingOp, work
from ampere.estimation.additive import Additive, Data
from ampere.estimation.features import layer_position
from ampere.estimation.interval import Z90
from ampere.estimation.learning import calibrated, learn

CPUS, GPUS = ("raptorlake", "broadwell-ep"), ("k40", "v100")
KINDS = ("conv", "linear")  # pooling is only used for whole networks: its description lacks the window's size
ROWS = (20, 50, 100, 200)
OPTIMIZERS = {"sgd": "1", "adam": "5"}
TICK_MICROSECONDS, WINDOWS_A_ROW = 1000.0, 50  # of the counter; five batches, ten times, each read alone
MISSING = "skipped: the rows are not there; name their folder with --data, --gpu-data or an environment variable"
UNKNOWN_NOISE = 1e-6  # rows come without repeats: their noise is for the surrogate to find
TWINS = 0.05  # largest relative difference between the sizes of rows that should cost the same
RESTARTS = 1  # of the rivals' searches for hyperparameters
RIVALS = ("least squares x GP", "GP", "boosting", "least squares", "FLOPs + const")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=default_folder())
    parser.add_argument("--gpu-data", type=Path, default=_folder("AMPERE_GPU_DATA", "gpu-training-layers"))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--devices", nargs="+", choices=(*CPUS, *GPUS), default=(*CPUS, *GPUS))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--optimizers", nargs="+", choices=[*OPTIMIZERS], default=[*OPTIMIZERS], help="of GPUs")
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/others_rows.json"))
    parser.add_argument("--table", action="store_true", help="only print the results of --out")
    parser.add_argument("--limit", action="store_true", help="only print what the rows themselves leave")
    options = parser.parse_args()
    record = json.loads(options.out.read_text()) if options.out.exists() else {}
    if options.table:
        print(table(record))
        return
    if options.limit:
        print_row("MAPE that is left", ["ours, all others", "boosting, 9 in 10", "true mean of twins", "twins"])
    else:
        print_row("MAPE on the rest", ["rows", "ours", "covers", *RIVALS, "ahead by"])
    for device, kind in product(options.devices, options.kinds):
        for optimizer in options.optimizers if device in GPUS else ("sgd",):
            name = f"{device} {kind}" + (" adam" if optimizer == "adam" else "")
            data = rows_of(options, device, kind, optimizer)
            if data is None:
                print(f"{name}: {MISSING}")
                continue
            if options.limit:
                twins = between_twins(data)
                left = (left_with_all_rows(data), boosting_with_other_rows(data), twins.mean() if len(twins) else None)
                print_row(name, [*("-" if error is None else f"{error:.1%}" for error in left), len(twins)])
                continue
            found = {str(rows): compare(name, rows, data, options.splits) for rows in options.rows}
            record[name] = {"splits": options.splits, "rows": found}
            if device in CPUS:
                record[name]["counter_error"] = counter_error(options.data, device, kind)
            else:
                record[name]["left_with_all_rows"] = left_with_all_rows(data)
            options.out.write_text(json.dumps(record, indent=1))


def default_folder() -> Path:
    return _folder("AMPERE_RAPL_DATA", "rapl-training-layers")


def _folder(variable: str, name: str) -> Path:
    return Path(os.environ.get(variable, Path(__file__).resolve().parents[2] / "shared" / "data" / name))


def rows_of(options: argparse.Namespace, device: str, kind: str, optimizer: str = "sgd") -> Data | None:
    """All rows of a layer kind on a device, or None where there is no file."""
    if device in CPUS:
        return load(options.data, device, kind) if (options.data / f"{device}-{kind}.csv").is_file() else None
    path = options.gpu_data / f"{GPU_NAMES[kind]}-{device}.csv"
    return gpu_rows(path, kind, optimizer) if path.is_file() else None


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


def gpu_rows(path: Path, kind: str, optimizer: str = "sgd") -> Data:
    """Rows trained with an optimizer, in seconds."""
    with open(path) as file:
        rows = [row for row in csv.DictReader(file) if row["optimizer"] == OPTIMIZERS[optimizer]]
    networks = tuple(Network((GPU_LAYERS[kind](row),), int(row["batchsize"])) for row in rows)
    seconds = np.array([float(row["timeUsed_median"]) for row in rows]) * 1e-3
    return Data(networks, seconds, np.full(len(rows), UNKNOWN_NOISE), np.zeros(len(rows)))


def gpu_conv(row: dict[str, str]) -> Layer:
    batch, side, k, stride = (int(row[name]) for name in ("batchsize", "matsize", "kernelsize", "strides"))
    out = -(-side // stride) if row["padding"] == SAME else (side - k) // stride + 1
    added = max((out - 1) * stride + k - side, 0)  # zeros along a side; an odd one counts as a part of the image
    config = {"batch": batch, "size_in": (side + added % 2,) * 2, "kernel": (k, k), "stride": (stride, stride)}
    config |= {"padding": (added // 2,) * 2, "dilation": (1, 1), "groups": 1, "bias": row["use_bias"] == "True"}
    channels = int(row["channels_out"])
    layer = activated(row, Layer("conv", config, int(row["channels_in"]), channels), batch * channels * out**2)
    return _copied_first(layer) if added % 2 else layer


def _copied_first(layer: Layer) -> Layer:
    """An image that has one zero more at one side than at the other is copied into a larger one first."""
    values = float(layer.config["batch"] * layer.channels_in * layer.config["size_in"][0] ** 2)
    return replace(layer, trailing=(*layer.trailing, TrailingOp("copy", values, values, backward=False)))


def gpu_linear(row: dict[str, str]) -> Layer:
    batch, out = int(row["batchsize"]), int(row["dim_output"])
    return activated(row, Layer("linear", {"lead": (batch,), "bias": True}, int(row["dim_input"]), out), batch * out)


def activated(row: dict[str, str], layer: Layer, values: int) -> Layer:
    """With its loss, and with an activation where the row has one."""
    layer = with_loss(layer, values)
    if row["activation_fct"] == "0":
        return layer
    return replace(layer, trailing=(TrailingOp("elementwise", float(values), float(values)), *layer.trailing))


SAME = "1"
GPU_NAMES = {"conv": "conv", "linear": "dense"}
GPU_LAYERS: dict[str, Callable[[dict[str, str]], Layer]] = {"conv": gpu_conv, "linear": gpu_linear}
LAYERS: dict[str, Callable[[dict[str, str]], Layer]] = {"conv": conv, "linear": linear, "pool": pool}


def load(folder: Path, cpu: str, kind: str) -> Data:
    with open(folder / f"{cpu}-{kind}.csv") as file:
        rows = [row for row in csv.DictReader(file) if float(row["for_energy"]) > 0 and _trained(row, kind)]
    networks = tuple(Network((LAYERS[kind](row),), int(row["batch_size"])) for row in rows)
    joules = np.array([float(row["for_energy"]) + float(row["back_energy"]) for row in rows]) * 1e-6
    return Data(networks, joules, np.full(len(rows), UNKNOWN_NOISE), np.zeros(len(rows)))


def _trained(row: dict[str, str], kind: str) -> bool:
    return kind not in KINDS or float(row["back_energy"]) > 0


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


def left_with_all_rows(data: Data) -> float:
    """Mean relative error where every other row teaches: what the rows themselves leave to learn nothing from."""
    model = learn(data)
    errors = model.leave_one_out()[0] / data.costs
    return float(np.mean(np.abs(np.expm1(-errors))))


def boosting_with_other_rows(data: Data) -> float:
    """The same of gradient boosting, with nine tenths of the rows at a time."""
    folds = np.random.default_rng(0).permutation(len(data)) % 10
    errors = [mape(boosting(data.only(folds != fold), held := data.only(folds == fold)), held) for fold in range(10)]
    return float(np.mean(errors))


def between_twins(data: Data) -> np.ndarray:
    """How far each two rows that differ by less than TWINS in every size would be off their true mean.

    Two readings around one mean differ by sqrt(2) times what one of them is off.
    """
    at, logs = positions(data), np.log(data.costs)
    alike = [np.all(np.abs(at[:i] - at[i]) < np.log2(1 + TWINS), axis=1) for i in range(len(data))]
    return np.concatenate([np.abs(logs[:i][of] - logs[i]) for i, of in enumerate(alike)]) / np.sqrt(2)


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


def compare(name: str, rows: int, data: Data, splits: int) -> dict[str, object]:
    """Means over splits with their standard errors, and by how much ours is ahead of each rival."""
    found: dict[str, list[float]] = {}
    for seed in range(splits):
        for method, figure in one_split(*split(data, rows, seed)).items():
            found.setdefault(method, []).append(figure)
    average = {method: float(np.mean(figures)) for method, figures in found.items()}
    errors = {method: float(np.std(figures, ddof=1) / np.sqrt(splits)) for method, figures in found.items()}
    ahead = {rival: gain(found[rival], found["ours"]) for rival in RIVALS}
    nearest = min(RIVALS, key=lambda rival: average[rival])
    margin = f"{100 * ahead[nearest][0]:+.2f}+-{100 * ahead[nearest][1]:.2f}"
    print_row(name, [rows, *(f"{average[method]:.1%}" for method in ("ours", "covers", *RIVALS)), margin])
    return {"mape": average, "standard_error": errors, "ahead": ahead}


def one_split(seen: Data, rest: Data) -> dict[str, float]:
    mean, stddev = estimates(ours(seen), rest.networks)
    known = Evidence(seen.networks, ("",) * len(seen), seen.costs)
    physics, line = METHODS["physics"].fit(known), METHODS["flops_intercept"].fit(known)
    residual, covers_residual = gaussian_process(seen, rest, physics)
    alone, covers_alone = gaussian_process(seen, rest, lambda networks: np.ones(len(networks)))
    said = {"ours": mean, "least squares x GP": residual, "GP": alone, "boosting": boosting(seen, rest)}
    said |= {"least squares": physics(rest.networks), "FLOPs + const": line(rest.networks)}
    covers = {"covers": float(np.mean(np.abs(mean - rest.costs) <= Z90 * stddev))}
    covers |= {"covers, least squares x GP": covers_residual, "covers, GP": covers_alone}
    return covers | {name: mape(costs, rest) for name, costs in said.items()}


def gain(theirs: list[float], our: list[float]) -> tuple[float, float]:
    """Splits share rows, so that the error is a little too small."""
    differences = np.array(theirs) - np.array(our)
    return float(np.mean(differences)), float(np.std(differences, ddof=1) / np.sqrt(len(differences)))


def boosting(seen: Data, rest: Data) -> np.ndarray:
    """On logarithms of sizes, arithmetic and memory."""
    from sklearn.ensemble import GradientBoostingRegressor

    model = GradientBoostingRegressor(random_state=0).fit(sizes(seen), np.log(seen.costs))
    return np.exp(model.predict(sizes(rest)))


def gaussian_process(seen: Data, rest: Data, mean: Callable[..., np.ndarray]) -> tuple[np.ndarray, float]:
    """Matern 5/2 on logarithms with a length scale for each size, times a mean; and the share of rows it covers."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    here, there = positions(seen), positions(rest)
    varied = np.std(here, axis=0) > 1e-9
    here, there = ((x[:, varied] - np.mean(here, axis=0)[varied]) / np.std(here, axis=0)[varied] for x in (here, there))
    lengths = Matern(np.full(here.shape[1], 2.0), (0.05, 1e3), nu=2.5)
    shape = ConstantKernel(1.0, (1e-4, 1e3)) * lengths + WhiteKernel(0.01, (1e-6, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianProcessRegressor(shape, n_restarts_optimizer=RESTARTS, random_state=0, normalize_y=True)
        model.fit(here, np.log(seen.costs / mean(seen.networks)))
        logs, deviations = model.predict(there, return_std=True)
    median = mean(rest.networks) * np.exp(logs)
    return median, float(np.mean(np.abs(np.log(rest.costs / median)) <= Z90 * deviations))


def positions(data: Data) -> np.ndarray:
    return np.array([layer_position(network.layers[0], 8) for network in data.networks])


def sizes(data: Data) -> np.ndarray:
    asked = [work(network.layers[0]) for network in data.networks]
    return np.column_stack([positions(data), np.log2([[a.flops, a.values] for a in asked])])


def table(record: dict[str, Any]) -> str:
    """The results as a table of the documentation: percent, with the rows that taught in the order of the columns."""
    methods = ("ours", *RIVALS)
    lines = ["| rows of | " + " | ".join(("Ampere", *RIVALS, "ahead of least squares x GP", "covers")) + " |"]
    lines.append("|---" * (len(methods) + 3) + "|")
    for name, of_set in record.items():
        rows = list(of_set["rows"].values())
        cells = [" / ".join(f"{100 * r['mape'][method]:.1f}" for r in rows) for method in methods]
        ahead = [r["ahead"]["least squares x GP"] for r in rows]
        cells.append(", ".join(f"{100 * mean:.1f} ± {100 * error:.1f}" for mean, error in ahead))
        cells.append(" / ".join(f"{100 * r['mape']['covers']:.0f}" for r in rows))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def mape(estimated: np.ndarray, actual: Data) -> float:
    return float(np.mean(np.abs(estimated / actual.costs - 1)))


def print_row(name: str, cells: list[object]) -> None:
    print(f"{name:<20}" + "".join(f"{cell!s:>19}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
