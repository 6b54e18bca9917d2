"""What a profile on one thread teaches about several: a short further run on them, against a profile of them alone.

    python benchmarks/threads.py [FAMILY...] [--threads 2] [--seconds 20] [--networks 60] [--seed 0] [--device local]

For each family three profiles are made: on one thread in its usual seconds; that one with `--seconds` more on several
threads, in the same file; and one of several threads alone, with the seconds of both together. Then random networks
that none of them saw are really trained on several threads, twice, and estimated from the last two profiles.
`short` is the same short run without what one thread taught.
"""

import argparse
import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does

import ampere
from ampere.evaluation.validation import compare, measure_twice, unseen
from ampere.meters import watts_in
from ampere.models.loading import find_space
from ampere.profiling.sources import SpaceSource

SECONDS = {"cnn5": 15, "lstm": 15, "transformer": 25, "resnet": 25}
ALLOCATOR = "tuned"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="*", default=[*SECONDS])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20.0, help="on several threads, after one thread (default 20)")
    parser.add_argument("--networks", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="local")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/threads.json"))
    options = parser.parse_args()
    rows = []
    for family in options.families:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(one(family, Path(folder), options))
        shown = "  ".join(f"{name} {error:.1%}" for name, error in rows[-1]["mape"].items())
        times = rows[-1]["mape"]["shared"] / rows[-1]["mape"]["alone"]
        twice = f"measured twice {rows[-1]['repeatability']:.1%}"
        print(f"{family:<12} {shown}  {twice}  shared {times:.2f} times alone", flush=True)
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(rows, indent=1))


def one(family: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    first, threads = float(SECONDS.get(family, 15)), options.threads
    with ampere.device(options.device, seed=options.seed) as device:

        def profile(name: str, seconds: float, on: int) -> ampere.Profile:
            path = folder / f"{name}.json"
            return ampere.profile(
                family, device=device, seconds=seconds, out=path, seed=options.seed, threads=on
            ).profile

        profile("shared", first, 1)
        shared = profile("shared", options.seconds, threads)
        alone = profile("alone", first + options.seconds, threads)
        source = SpaceSource(find_space(family))
        experiments = unseen(source, (alone, *shared.parts), options.networks, options.seed)
        with device.fresh(watts_in(alone.meter.scope), options.seed + 1) as workers:
            worker = workers[ALLOCATOR]
            pairs = measure_twice(experiments, worker, alone, options.seed, lambda done, total: None)
    profiles = {"alone": alone, "shared": shared, "short": replace(shared, others=())}
    found = {name: compare(family, pairs, known, ALLOCATOR) for name, known in profiles.items()}
    return {
        "family": family,
        "threads": threads,
        "networks": len(pairs),
        "mape": {name: result.mape["additive"] for name, result in found.items()},
        "coverage90": {name: result.coverage90 for name, result in found.items()},
        "repeatability": found["alone"].repeatability_mape,
        "profiling_seconds": {name: result.profiling_seconds for name, result in found.items()},
    }


if __name__ == "__main__":
    main()
