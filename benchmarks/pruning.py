"""Every family pruned to half its energy: what the result really costs, against the budget.

    python benchmarks/pruning.py [FAMILY...] [--out benchmarks/results/pruning.json]

The family is profiled from nothing and pruned to half, as `ampere prune` does it: by the estimate, checked by training
original and result, corrected. Then both are trained in shuffled rounds, twice, in a worker of their own: `share` is
of what the original costs, `off` how far that is from the budget, `repeat` how far two measurements of the same are
apart. A family that cannot be met says the least that was found, and what that measures. A family that is in the file
already is left alone: a stopped run goes on.
"""

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import mean

import ampere
from ampere.core.errors import UsageError
from ampere.devices import Device
from ampere.estimation.estimator import Estimator
from ampere.evaluation.validation import cost_of, measure_twice
from ampere.models.loading import LoadedModel
from ampere.profiling.sources import source_of
from ampere.pruning.checking import joules_of, opened_check
from ampere.pruning.price import Joules, Priced
from ampere.pruning.pruning import Pruner, prune
from ampere.pruning.result import Pruned
from ampere.pruning.saving import experiment_of
from ampere.pruning.widths import cheapest

FAMILIES = ("lenet5", "cnn5", "har", "lstm", "transformer", "resnet")
SECONDS = {"transformer": 25.0, "resnet": 25.0}
SHARE, CONFIDENCE, ROUNDS, ALLOCATOR = 0.5, 0.9, 15, "tuned"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="*", default=list(FAMILIES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/pruning.json"))
    options = parser.parse_args()
    rows = json.loads(options.out.read_text()) if options.out.exists() else []
    for family in options.families:
        if all(row["family"] != family for row in rows):
            with tempfile.TemporaryDirectory() as folder:
                rows.append(one(family, Path(folder), options.seed))
            show(rows[-1])
            options.out.parent.mkdir(exist_ok=True)
            options.out.write_text(json.dumps(rows, indent=1))


def one(family: str, folder: Path, seed: int) -> dict[str, object]:
    seconds = SECONDS.get(family, 15.0)
    profile = ampere.profile(family, seconds=seconds, out=folder / "profile.json", seed=seed, threads=1).profile
    estimator, loaded = Estimator(profile), ampere.load_model(family)
    row = {"family": family, "profiling_seconds": profile.profiling_seconds, "meter": profile.meter.to_json()}
    try:
        began = time.perf_counter()
        with Device() as device, opened_check(loaded, device, profile, ALLOCATOR) as check:
            pruned = prune(loaded, None, SHARE, estimator, confidence=CONFIDENCE, allocator=ALLOCATOR, check=check)
        took = time.perf_counter() - began
    except UsageError as error:  # a step of a small model is mostly what no channel changes
        least = narrowest(loaded, estimator)
        return {**row, "failed": str(error), **measured(least, loaded, estimator, folder, seed)}
    return {
        **row,
        "pruning_seconds": took,
        "checked_share": pruned.measured and pruned.measured.share,
        "checked_share_stddev": pruned.measured and pruned.measured.share_relative_stddev,
        **measured(pruned, loaded, estimator, folder, seed),
    }


def measured(pruned: Pruned, loaded: LoadedModel, estimator: Estimator, folder: Path, seed: int) -> dict[str, object]:
    """In a worker that neither profiled nor pruned."""
    original = source_of(loaded).original()
    both = [original, experiment_of(pruned, original, folder / "pruned.json")]
    with Device(seed=seed + 2) as device:
        pairs = measure_twice(both, device.worker(ALLOCATOR), estimator.profile, seed, lambda done, total: None, ROUNDS)
    whole, left = (joules_of(estimator, *(cost_of(rounds, estimator.profile) for rounds in pair)) for pair in pairs)
    share = mean(left) / mean(whole)
    return {
        "joules": mean(whole),
        "share": share,
        "off": share / SHARE - 1,
        "repeat": mean(abs(b / a - 1) for a, b in (whole, left)),
        "shares": [after / before for before, after in zip(whole, left, strict=True)],
        "widths": [width._asdict() for width in pruned.widths],
    }


def narrowest(loaded: LoadedModel, estimator: Estimator) -> Pruned:
    """What can be had at the least, as far as the estimate tells."""
    pruner = Pruner(loaded, "energy")
    joules = Joules(estimator, ALLOCATOR, 0.0, pruner.network)
    response = pruner.prunable.response
    cost = Priced(response, joules)
    least = cost(cheapest(response.full, cost.many))
    return replace(pruner.pruned(joules, 1.001 * least, 0.5), budget_joules=least)


def show(row: dict[str, object]) -> None:
    words = f"{row['family']:12} {row['share']:7.1%} of the energy, repeats to {row['repeat']:.1%}"
    if "failed" in row:
        print(f"{words}: {row['failed']}", flush=True)
        return
    print(
        f"{words}, {row['off']:+.1%} off the budget, pruned and checked in {row['pruning_seconds']:.1f} s after "
        f"{row['profiling_seconds']:.0f} s of profiling; seen while pruning {row['checked_share']:.1%}",
        flush=True,
    )


if __name__ == "__main__":
    main()
