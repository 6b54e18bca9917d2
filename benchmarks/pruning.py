"""Every family pruned to half its energy: what the result really costs, against the budget.

    python benchmarks/pruning.py [FAMILY...] [--out benchmarks/results/pruning.json]

The family is profiled from nothing, its original measured, and pruned to half of that with the confidence given. Then
original and result are trained beside each other in shuffled rounds, twice: `share` is of what the original costs,
`off` how far that is from the budget, `repeat` how far the second measurement of the same two is from the first.
A family that is in the file already is left alone: a stopped run goes on. One that cannot be met says the least.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import mean

import ampere
from ampere.devices import opened
from ampere.errors import AmpereError
from ampere.estimation import Estimator
from ampere.fitting import sharing_in
from ampere.profiles.profile import Observation, Profile
from ampere.profiling.merging import merged
from ampere.profiling.sources import source_of
from ampere.pruning.pruning import prune
from ampere.pruning.rebuilding import experiment_of
from ampere.validation import measure_twice
from ampere.worker.meters import DEFAULT_WATTS_PER_CORE
from ampere.yardstick import in_reference

FAMILIES = ("lenet5", "cnn5", "har", "lstm", "transformer", "resnet")
SECONDS = {"transformer": 25.0, "resnet": 25.0}
SHARE, CONFIDENCE, ROUNDS = 0.5, 0.8, 6


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
                try:
                    rows.append(one(family, Path(folder), options.seed))
                    show(rows[-1])
                except AmpereError as error:  # a step of a small model is mostly what no channel changes
                    rows.append({"family": family, "failed": str(error)})
                    print(f"{family:12} {error}", flush=True)
            options.out.parent.mkdir(exist_ok=True)
            options.out.write_text(json.dumps(rows, indent=1))


def one(family: str, folder: Path, seed: int) -> dict[str, object]:
    seconds = SECONDS.get(family, 15.0)
    profile = ampere.profile(family, seconds=seconds, out=folder / "profile.json", seed=seed).profile
    joules, loaded = joules_in(profile), ampere.load_model(family)
    original = source_of(loaded).original()
    with opened("local", DEFAULT_WATTS_PER_CORE, seed + 1) as devices:
        device = devices["tuned"]
        ((first, again),) = measure_twice([original], device, profile, seed, lambda done, total: None, ROUNDS // 2)
        seen = merged([first, again])[0]
        allowed = SHARE * joules(seen)
        estimator = Estimator(replace(profile, observations=(*profile.observations, seen)))
        began = time.perf_counter()
        pruned = prune(
            loaded.model, loaded.inputs, f"{allowed:.9g}J", estimator, confidence=CONFIDENCE, allocator="tuned"
        )
        took = time.perf_counter() - began
        both = [original, experiment_of(pruned, loaded, folder / "pruned.json")]
        pairs = measure_twice(both, device, profile, seed, lambda done, total: None, ROUNDS)
    whole, left = ([joules(o) for o in pair] for pair in pairs)
    share = mean(left) / mean(whole)
    return {
        "family": family,
        "profiling_seconds": profile.profiling_seconds,
        "pruning_seconds": took,
        "joules": mean(whole),
        "share": share,
        "off": share / SHARE - 1,
        "repeat": mean(abs(b / a - 1) for a, b in (whole, left)),
        "estimated_share": pruned.after.joules / (allowed / SHARE),
        "estimated_stddev": pruned.after.stddev / pruned.after.joules,
        "widths": [width._asdict() for width in pruned.widths],
        "meter": profile.meter.to_json(),
    }


def joules_in(profile: Profile) -> Callable[[Observation], float]:
    """An iteration's, as it would have been when the device was profiled."""
    sharing = sharing_in(profile.observations, profile.yardstick_seconds).part
    return lambda seen: in_reference(seen.measurement, profile.yardstick_seconds, sharing).joules


def show(row: dict[str, object]) -> None:
    print(
        f"{row['family']:12} {row['share']:7.1%} of the energy, {row['off']:+.1%} off the budget "
        f"(estimated {row['estimated_share']:.1%}, +- {row['estimated_stddev']:.1%}), repeats to {row['repeat']:.1%}, "
        f"pruned in {row['pruning_seconds']:.1f} s after {row['profiling_seconds']:.0f} s of profiling",
        flush=True,
    )


if __name__ == "__main__":
    main()
