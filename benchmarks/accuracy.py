"""Accuracy on networks that were not profiled: every family, beside the rivals and the measurement's own repeatability.

    python benchmarks/accuracy.py [FAMILY...] [--networks 60] [--seed 0] [--threads 1] [--seconds 60] [--methods all]
    python benchmarks/accuracy.py [FAMILY...] --on cpu cuda [--longer 3] [--rounds 2]

Each family gets profiles of its own, made from nothing within its time budget: ours, and with `--methods all` one for
every other way to gather measurements, with as many seconds. Then unseen random networks of the family are really
trained, twice, by workers started afterwards. At the end, cnn5 is tested once more with the profile made at the
beginning, by processes started minutes later.

With several processors each family is done on all of them, one after the other, and compared with the first. A profile
on another than the first takes `--longer` times the seconds, where steps take longer there.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does

import ampere
from ampere.baselines.answers import names, strategy_of
from ampere.evaluation.validation import Validation
from ampere.storage.profile import Profile

SECONDS = {"lenet5": 15, "cnn5": 15, "har": 15, "lstm": 15, "transformer": 25, "resnet": 25, "cnn": 60}
SHOWN = ("additive", "physics", "flops_intercept", "flops")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="*", default=[f for f in SECONDS if f != "cnn"])
    parser.add_argument("--networks", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, help="of each profile, instead of its family's usual ones")
    parser.add_argument("--on", nargs="+", default=["cpu"], help="what trains, as `ampere estimate --on` names it")
    parser.add_argument("--longer", type=float, default=1.0, help="seconds of profiling there, times those of the CPU")
    parser.add_argument("--rounds", type=int, default=4, help="blocks in each of the two measurements of a network")
    parser.add_argument("--methods", default=",".join(SHOWN))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/accuracy.json"))
    options = parser.parse_args()
    rows = []
    methods = names(options.methods)
    print_row(["family", "profiled", "thinking", *SHOWN, "repeat", "covers", "vs FLOPs", "vs repeat"])
    with tempfile.TemporaryDirectory() as folder:
        for family in options.families:
            found = [one(family, Path(folder), on, options, methods) for on in options.on]
            rows += found
            for row in found[1:]:
                times = row["mape"]["additive"] / found[0]["mape"]["additive"]
                print(f"{row['name']}: {times:.2f} times the error of {found[0]['name']}", flush=True)
        if "lenet5" in options.families and options.on == ["cpu"]:
            # its networks differ little: what the noise of the test hides
            rows.append(again("lenet5", Path(folder) / "lenet5.json", options, 2, rounds=12))
        if "cnn5" in options.families and options.on == ["cpu"]:
            rows.append(again("cnn5", Path(folder) / "cnn5.json", options, 1))
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(rows, indent=1))


def one(family: str, folder: Path, on: str, options: argparse.Namespace, methods: tuple[str, ...]) -> dict[str, Any]:
    first = on == options.on[0]
    path = folder / (f"{family}.json" if first else f"{family}-{on.replace(':', '-')}.json")
    seconds = (options.seconds or SECONDS[family]) * (1 if first else options.longer)
    asked = {"seed": options.seed, "threads": options.threads, "on": on, "seconds": seconds}
    made = ampere.profile(family, out=path, **asked)
    others = [rival(family, path, campaign, protocol, asked) for campaign, protocol in needed(methods)]
    share = made.thinking_seconds / made.profile.profiling_seconds
    result = ampere.validate(
        family,
        made.profile,
        others=others,
        methods=methods,
        networks=options.networks,
        seed=options.seed,
        on=on,
        rounds=options.rounds,
    )
    name = family if options.on == ["cpu"] else f"{family} {on}"
    return {**show(name, share, result), "seconds": {p.method + p.timing: p.profiling_seconds for p in others}}


def needed(methods: tuple[str, ...]) -> list[tuple[str, str]]:
    """Campaigns other than ours, which serves everything that learns from whole networks."""
    wanted = dict.fromkeys(strategy_of(name) for name in methods)
    return [c for c in wanted if c not in (("additive", "yardstick"), ("networks", "yardstick"))]


def rival(family: str, path: Path, campaign: str, protocol: str, asked: dict[str, Any]) -> Profile:
    place = path.with_name(f"{family}-{campaign}-{protocol}.json")
    return ampere.profile(family, out=place, method=campaign, timing=protocol, **asked).profile


def again(family: str, path: Path, options: argparse.Namespace, later: int, rounds: int = 4) -> dict[str, Any]:
    seed, networks = options.seed + later, options.networks
    result = ampere.validate(family, ampere.Profile.load(path), networks=networks, seed=seed, rounds=rounds)
    return show(f"{family} later", 0.0, result)


def show(name: str, thinking: float, result: Validation) -> dict[str, Any]:
    mape, repeat = result.mape, result.repeatability_mape
    print_row(
        [
            name,
            f"{result.profiling_seconds:.1f} s",
            f"{thinking:.0%}",
            *(f"{mape[m]:.1%}" for m in SHOWN),
            f"{repeat:.1%}",
            f"{result.coverage90:.0%}",
            f"{mape['flops_intercept'] / mape['additive']:.1f}x",
            f"{mape['additive'] / repeat:.2f}",
        ]
    )
    beside = [f"{method} {error:.1%}" for method, error in mape.items() if method not in SHOWN]
    if beside:
        print(" " * 11, "  ".join(beside), flush=True)
    return {"name": name, "thinking_share": thinking, **result.to_json()}


def print_row(cells: list[str]) -> None:
    print(" | ".join(f"{cell:>11}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
