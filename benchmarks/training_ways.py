"""Ways of training against their own code: accumulation, clipping, checkpointing, adapters, a GAN and others.

    python benchmarks/training_ways.py                all ways of benchmarks/street/ways.py; about 15 minutes
    python benchmarks/training_ways.py gan tied       some of them
    python benchmarks/training_ways.py --show         what the records say so far, without measuring

    truth      benchmarks/street/train.py in fresh processes, in turn with readings of the yardstick
    device     an estimate by layers alone, from a profile of the device
    touch      what `ampere estimate` says by itself: the layers, and a few seconds of the own code. Its bar is 6 %
    measure    `ampere measure`

Records are kept as those of own_code.py are: the same command goes on from there.
"""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path
from statistics import mean

import own_code
from own_code import Records, Row

import ampere
from ampere.estimation.estimator import Estimator
from ampere.storage.profile import Profile

WAYS = Path(__file__).parent / "street" / "ways.py"
BAR = 0.06
METHODS = ("device", "touch", "measure")
VARIED, ITS_MODEL = "two_lengths", "language"  # a plain loop over batches of two shapes, and the model in it
SHAPES, BATCHES_OF_A_STEP = "3*4x32:int64<2000 | 1*4x128:int64<2000", 4  # as in ways.py
NEEDS = {"adapters_by_peft": "peft"}


def main() -> int:
    options = _options()
    names = options.ways or [n for n in own_code.factories(WAYS) if n != ITS_MODEL]
    lacking = [n for n in names if n in NEEDS and find_spec(NEEDS[n]) is None]
    models = [f"{WAYS.resolve()}:{name}" for name in names if name not in lacking]
    options.records.mkdir(parents=True, exist_ok=True)
    records = Records(options.records / "records.jsonl")
    if not options.show:
        plain = [model for model in models if not model.endswith(f":{VARIED}")]
        own_code.measure(plain, records, options.records, options)
        if len(plain) < len(models):
            _measure_varied(f"{WAYS.resolve()}:{VARIED}", records, options)
    rows = own_code.summarize(models, records, options.threads)
    own_code.print_table(rows)
    for name in lacking:
        print(f"{name}: not measured, because {NEEDS[name]} is not installed")
    return _verdict(rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ways", nargs="*", metavar="NAME")
    parser.add_argument("--processes", type=int, default=4, help="of each way (default 4)")
    parser.add_argument("--seconds", type=float, default=3.0, help="of training in each process (default 3)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device-seconds", type=float, default=120.0, help="of the device's profile (default 120)")
    parser.add_argument("--device-profile", type=Path, help="one that is there already")
    parser.add_argument("--touch-seconds", type=float, default=5.0)
    parser.add_argument("--records", type=Path, default=own_code.HERE / "results" / "training_ways")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    options.methods, options.model_seconds = ",".join(METHODS), 0.0
    return options


def _measure_varied(model: str, records: Records, options: argparse.Namespace) -> None:
    """Batches of two shapes: the truth is the loop's own, and the estimate is that of the model with both shapes."""
    own_code.measure([model], records, options.records, argparse.Namespace(**{**vars(options), "methods": ""}))
    known = Estimator(Profile.load(options.device_profile or options.records / "device.json"))
    itself = f"{WAYS.resolve()}:{ITS_MODEL}"
    for method, seconds in (("device", 0.0), ("touch", options.touch_seconds)):

        def estimated(seconds: float = seconds) -> Row:
            found = ampere.estimate(itself, SHAPES, profile=known, touch=seconds)
            row = own_code._row(found, known.profile)
            for figure in ("seconds", "low", "high"):  # of all batches in a step of the loop
                row[figure] *= BATCHES_OF_A_STEP
            return row

        records.ensure({"what": method, "model": own_code.label(model)}, estimated)


def _verdict(rows: list[Row]) -> int:
    """0 where each way that was estimated is within the bar."""
    errors = {row["name"]: row["touch"]["error"] for row in rows if "error" in row.get("touch", {})}
    failed = [row["name"] for row in rows if "failed" in row.get("touch", {})]
    beyond = [f"{name} {error:+.1%}" for name, error in errors.items() if abs(error) > BAR]
    if errors:
        within = f"within {BAR:.0%}: {len(errors) - len(beyond)} of {len(rows)}"
        print(f"mean {mean(map(abs, errors.values())):.1%}; {within}")
    for name in [*beyond, *failed]:
        print(f"beyond: {name}")
    return 1 if beyond or failed or not errors else 0


if __name__ == "__main__":
    sys.exit(main())
