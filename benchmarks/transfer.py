"""From one device to another with a few rows: joules of two CPUs, times of two GPUs, simulated devices.

    python benchmarks/transfer.py [--pairs v100,k40 ...] [--kinds conv linear] [--rows 0 3 5 10 20] [--splits 3]
    python benchmarks/transfer.py --table                              prints what is in --out

The source's surrogate has 200 rows. `transfer` starts from it, `alone` from nothing; `covers` is the share of the rest
that lies in transfer's 90 % intervals. `misled` is transfer from a source whose costs were shuffled among its rows,
`contrary` from one that deviates from physics the other way round. `factor known` is what the source leaves where its
best factor, and how that changes with size, are known from the tested rows themselves.
Rows of simulated devices are the layers of one of the CPUs, with the simulated device's own joules and 2 % of noise.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from others_rows import CPUS, GPUS, KINDS, _folder, default_folder, print_row, rows_of, split

from ampere.devices.simulated import PARTS, SimulatedWorker
from ampere.estimation.additive import Additive, Data
from ampere.estimation.learning import learn
from ampere.estimation.transfer import Transferred

ROWS, SOURCE_ROWS, TESTED = (0, 3, 5, 10, 20), 200, 150
APART = 60  # rows that are never tested, so that any number of rows that teach is tested on the same ones
Z90 = 1.6449
SIMULATED = ("xavier", "tx2")
PAIRS = [",".join(pair) for of in (CPUS, GPUS, SIMULATED) for pair in (of, of[::-1])]
NOISE = 0.02
SHOWN = ("transfer", "alone", "covers", "misled", "misled covers", "contrary", "contrary covers", "factor known")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=default_folder())
    parser.add_argument("--gpu-data", type=Path, default=_folder("AMPERE_GPU_DATA", "gpu-training-layers"))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--pairs", nargs="+", default=PAIRS)
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/transfer.json"))
    parser.add_argument("--table", action="store_true", help="only print the results of --out")
    options = parser.parse_args()
    record = json.loads(options.out.read_text()) if options.out.exists() else {}
    if options.table:
        print(table(record))
        return
    print_row("source,target kind", ["rows", *SHOWN, "alone/transfer"])
    for kind in options.kinds:
        for pair in options.pairs:
            there, here = (known_rows(options, device, kind) for device in pair.split(","))
            if there is None or here is None:
                print(f"{pair} {kind}: the rows are not there")
                continue
            sources = [sources_of(there, seed) for seed in range(options.splits)]
            for rows in options.rows:
                found = [one(of, here, rows, seed) for seed, of in enumerate(sources)]
                mean = {name: float(np.mean([f[name] for f in found])) for name in found[0]}
                record[f"{pair} {kind} {rows}"] = mean
                better = mean["alone"] / mean["transfer"] if rows else float("nan")
                print_row(f"{pair} {kind}", [rows, *(f"{mean[name]:.1%}" for name in SHOWN), f"{better:.2f}"])
                options.out.write_text(json.dumps(record, indent=1))


def known_rows(options: argparse.Namespace, device: str, kind: str) -> Data | None:
    """Rows that others measured, or what a simulated device would have measured for the same layers."""
    if device not in PARTS:
        return rows_of(options, device, kind)
    data = rows_of(options, CPUS[0], kind)
    if data is None:
        return None
    worker, rng = SimulatedWorker(device, 0), np.random.default_rng(len(device))
    joules = np.array([worker.truth(network).total.joules for network in data.networks])
    return replace(data, costs=joules * np.exp(NOISE * rng.standard_normal(len(joules))))


def sources_of(there: Data, seed: int) -> dict[str, Additive]:
    """A surrogate of some rows, and two that mislead."""
    rows = split(there, SOURCE_ROWS, seed)[0]
    shuffled = np.random.default_rng(seed).permutation(len(rows))
    true = learn(rows)
    contrary = true.design.physics**2 / true.data.costs
    return {
        "transfer": true,
        "misled": learn(replace(rows, costs=rows.costs[shuffled])),
        "contrary": learn(replace(rows, costs=contrary)),
    }


def one(sources: dict[str, Additive], here: Data, rows: int, seed: int) -> dict[str, float]:
    seen, rest = split(here, rows, seed)[0], split(split(here, APART, seed)[1], TESTED, seed)[0]
    alone, actual = learn(seen), np.log(rest.costs)
    found = {"alone": mape(alone_costs(alone, rest), rest)}
    for name, model in sources.items():
        new = Transferred([model], seen, alone if rows else None)
        logs, deviations = new.logs(rest.networks, rest.system)
        found[name] = mape(np.exp(logs), rest)
        covers = float(np.mean(np.abs(actual - logs) <= Z90 * deviations))
        found["covers" if name == "transfer" else f"{name} covers"] = covers
    said = np.log(alone_costs(sources["transfer"], rest))
    related = said + np.polyval(np.polyfit(said, actual - said, 1), said)
    return found | {"factor known": mape(np.exp(related), rest)}


def table(record: dict[str, dict[str, float]]) -> str:
    """The results as a table of the documentation, in percent."""
    lines = ["| from, to | kind | rows | " + " | ".join(SHOWN) + " |", "|---" * (3 + len(SHOWN)) + "|"]
    for key, found in record.items():
        pair, kind, rows = key.split()
        cells = " | ".join(f"{100 * found[name]:.0f}" for name in SHOWN)
        lines.append(f"| {pair.replace(',', ', ')} | {kind} | {rows} | {cells} |")
    return "\n".join(lines)


def alone_costs(model: Additive, rest: Data) -> np.ndarray:
    return model.joint(rest.networks, rest.system)[0]


def mape(costs: np.ndarray, rest: Data) -> float:
    return float(np.mean(np.abs(costs / rest.costs - 1)))


if __name__ == "__main__":
    main()
