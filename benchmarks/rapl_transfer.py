"""From one CPU to another with a few rows: what the other's surrogate says, corrected where rows were measured here.

    python benchmarks/rapl_transfer.py [--data FOLDER] [--splits 10] [--out benchmarks/results/rapl_transfer.json]

    r     log of what was measured here over what the other CPU's surrogate says, over x = log2 of what it says
    r ~ N(0, 1) + GP(0, CHANGE^2 Matern52(x / OCTAVES)) + noise        a factor that may change with size

Beside it: one factor, rivals brought over by one factor, and our surrogate from the rows measured here alone. The other
CPU's surrogate has 200 rows.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from others_rows import CPUS, KINDS, MISSING, boosting, default_folder, estimates, load, mape, print_row, split

from ampere.baselines import METHODS, Evidence
from ampere.core import Network
from ampere.estimation.additive import Additive, Data
from ampere.estimation.gaussian_process import kernel
from ampere.estimation.learning import learn

ROWS, SOURCE_ROWS = (0, 5, 20), 200
CHANGE, OCTAVES = 0.3, 4.0
NOISES = (0.05, 0.1, 0.2, 0.4)
SHOWN = ("ours", "one factor", "alone", "boosting", "physics", "FLOPs + const")

Costs = Callable[[tuple[Network, ...]], np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=default_folder())
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/rapl_transfer.json"))
    options = parser.parse_args()
    if not (options.data / "raptorlake-conv.csv").is_file():
        print(MISSING)
        return
    print_row("from the other CPU", ["rows", *SHOWN])
    records = []
    for kind in options.kinds:
        for source, target in (CPUS, CPUS[::-1]):
            there, here = (load(options.data, cpu, kind) for cpu in (source, target))
            found = [transfer(there, here, seed) for seed in range(options.splits)]
            for rows in ROWS:
                average = {name: float(np.mean([f[rows][name] for f in found])) for name in found[0][rows]}
                shown = (f"{average[name]:.1%}" if name in average else "-" for name in SHOWN)
                print_row(f"{target} {kind}", [rows, *shown])
                records.append({"to": target, "kind": kind, "rows": rows, "mape": average})
    options.out.write_text(json.dumps({"splits": options.splits, "transferred": records}, indent=1))


def transfer(there: Data, here: Data, seed: int) -> dict[int, dict[str, float]]:
    """MAPE on the rest of the rows here, by method, for each number of rows measured here."""
    source = split(there, SOURCE_ROWS, seed)[0]
    known = Evidence(source.networks, ("",) * len(source), source.costs)
    rivals: dict[str, Costs] = {
        "boosting": lambda networks: boosting(source, _unmeasured(networks)),
        "physics": METHODS["physics"].fit(known),
        "FLOPs + const": METHODS["flops_intercept"].fit(known),
    }
    other, found = means_of(learn(source)), {}
    for rows in ROWS:
        seen, rest = split(here, rows, seed)
        ways = {"ours": corrected(other, seen), "one factor": scaled(other, seen)}
        ways |= {name: scaled(costs, seen) for name, costs in rivals.items()}
        if rows:
            ways["alone"] = means_of(learn(seen))
        found[rows] = {name: mape(way(rest.networks), rest) for name, way in ways.items()}
    return found


def means_of(model: Additive) -> Costs:
    return lambda networks: estimates(model, networks)[0]


def scaled(there: Costs, seen: Data) -> Costs:
    factor = float(np.median(seen.costs / there(seen.networks))) if len(seen) else 1.0
    return lambda networks: factor * there(networks)


def corrected(there: Costs, seen: Data) -> Costs:
    if len(seen) == 0:
        return there
    said = there(seen.networks)
    places, ratios = np.log2(said), np.log(seen.costs / said)
    noise = max(NOISES, key=lambda n: _log_probability(_covariance(places, places), ratios, n))
    solved = np.linalg.solve(_covariance(places, places) + noise**2 * np.eye(len(seen)), ratios)

    def costs(networks: tuple[Network, ...]) -> np.ndarray:
        wanted = there(networks)
        return np.asarray(wanted * np.exp(_covariance(np.log2(wanted), places) @ solved))

    return costs


def _unmeasured(networks: tuple[Network, ...]) -> Data:
    nothing = np.zeros(len(networks))
    return Data(networks, nothing, nothing, nothing)


def _covariance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(1.0 + CHANGE**2 * kernel(a[:, None] / OCTAVES, b[:, None] / OCTAVES))


def _log_probability(covariance: np.ndarray, values: np.ndarray, noise: float) -> float:
    whole = covariance + noise**2 * np.eye(len(values))
    return float(-values @ np.linalg.solve(whole, values) - np.linalg.slogdet(whole)[1])


if __name__ == "__main__":
    main()
