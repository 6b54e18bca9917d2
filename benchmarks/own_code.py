"""Estimates against users' own code: models that Ampere was not made for, trained by a script that knows nothing of it.

    python benchmarks/own_code.py --half development            14 models of benchmarks/street; `once` has 14 others
    python benchmarks/own_code.py --models FILE.py[:name] ...   any functions that return a model and its inputs
    python benchmarks/own_code.py --half development --show     what the records say so far, without measuring

    truth      benchmarks/street/train.py in fresh processes with default settings, in turn over all models
    yardstick  the reference step, read by a worker of Ampere several times a second: the script is stopped meanwhile.
               With several threads, whose figures are by the clock, that time is taken out; `touch CPU` and the like
               are of CPU time then, which joules are modelled from
    device     an estimate from a profile of the device, in which none of these models was trained
    model      an estimate from a profile of the model itself, 15 s, made from nothing
    touch      the device's profile, and a few seconds of the model's own code
    measure    `ampere measure`
    rebuilt    the step that a worker builds without the model's code, from its program or where it has none from its
               layers, in turn with the model's own code in one process

FLOPs and others are fitted to the truth of all other models (leave one out). Every record is kept as soon as it is
there, in a folder of its own; the same command goes on from there. Delete the folder to begin again.
"""

import argparse
import ast
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from random import Random
from statistics import mean, median, stdev
from tempfile import TemporaryFile
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does

import numpy as np

import ampere
from ampere.api.models import resolve
from ampere.baselines import METHODS
from ampere.baselines.method import Evidence
from ampere.devices import Device, Yardstick
from ampere.estimation.estimate import Estimate
from ampere.estimation.estimator import Estimator
from ampere.estimation.fitting import drift_share_in
from ampere.estimation.normalization import costs_of, reference_of
from ampere.meters import watts_in
from ampere.storage.profile import Profile

HERE = Path(__file__).parent
HALVES = {half: HERE / "street" / f"{half}.py" for half in ("development", "once")}
OURS = ("device", "model", "touch", "measure", "rebuilt")
WITHOUT_PROFILE = {"model", "rebuilt"}
RIVALS = {
    "flops": "FLOPs",
    "flops_intercept": "FLOPs and a constant",
    "physics": "least squares",
    "roofline": "roofline",
}
TRAINING = b"training"  # what the script prints once it is warm
FEWEST_TO_FIT = 6  # models, for the rivals
YARDSTICK_SECONDS, TURN_SECONDS = 0.1, 0.2  # of the yardstick, and of the script between two readings
NEAR = (0.05, 0.15)

Row = dict[str, Any]


def main() -> None:
    options = _options()
    models = list(_models(options))
    folder = options.records
    folder.mkdir(parents=True, exist_ok=True)
    records = Records(folder / "records.jsonl")
    if not options.show:
        measure(models, records, folder, options)
    rows = summarize(models, records, options.threads)
    print_table(rows)
    (folder / "summary.json").write_text(json.dumps(rows, indent=1))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--half", choices=HALVES)
    what.add_argument("--models", nargs="+", metavar="FILE.py[:name]")
    parser.add_argument("--processes", type=int, default=4, help="of each model (default 4)")
    parser.add_argument("--seconds", type=float, default=3.0, help="of training in each process (default 3)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--methods", default="device,model,touch,measure", help=f"some of {', '.join(OURS)}; empty for the truth alone"
    )
    parser.add_argument("--device-seconds", type=float, default=120.0, help="of the device's profile (default 120)")
    parser.add_argument("--device-profile", type=Path, help="one that is there already")
    parser.add_argument("--model-seconds", type=float, default=15.0, help="of each model's own profile (default 15)")
    parser.add_argument("--touch-seconds", type=float, default=5.0)
    parser.add_argument("--records", type=Path, help="folder; default benchmarks/results/own_code-HALF")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    options.records = options.records or HERE / "results" / f"own_code-{options.half or 'models'}"
    return options


def _models(options: argparse.Namespace) -> Iterator[str]:
    for given in options.models or [str(HALVES[options.half])]:
        path, colon, name = given.partition(".py:")
        file = Path(path + ".py" if colon else given).resolve()
        yield from (f"{file}:{each}" for each in ([name] if name else factories(file)))


def factories(file: Path) -> list[str]:
    """The public functions of a file that can be called without arguments."""
    functions = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)]
    return [
        f.name
        for f in functions
        if not f.name.startswith("_") and len(f.args.args) == len(f.args.defaults) and not any(f.args.kw_defaults)
    ]


class Records:
    """One JSON line for each process and estimate, on disk before the next one begins."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rows: list[Row] = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def ensure(self, key: Row, make: Callable[[], Row]) -> None:
        if any(all(row.get(name) == value for name, value in key.items()) for row in self.rows):
            return
        row = {**key, **make()}
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        self.rows.append(row)
        print(
            "  ".join(f"{v:.5g}" if isinstance(v, float) else str(v) for k, v in row.items() if k != "why"), flush=True
        )

    def of(self, what: str, model: str) -> list[Row]:
        return [row for row in self.rows if row["what"] == what and row["model"] == label(model)]


def label(model: str) -> str:
    file, _, name = model.rpartition(":")
    return f"{Path(file).stem}:{name}"


# Measuring.


def measure(models: list[str], records: Records, folder: Path, options: argparse.Namespace) -> None:
    methods = [method for method in options.methods.split(",") if method]
    device = options.device_profile or folder / "device.json"
    if set(methods) - WITHOUT_PROFILE and not (device.exists() and Profile.load(device).observations):
        ampere.profile(seconds=options.device_seconds, out=device, threads=options.threads)
    estimate = Methods(device, folder, options)
    with Device("local") as local:
        worker = local.worker("tuned")

        def yardstick() -> Yardstick:
            return worker.yardstick(YARDSTICK_SECONDS, options.threads, "torch", count=False)

        for process in range(options.processes):
            order = models[:]
            Random(process).shuffle(order)
            for model in order:
                key = {"what": "truth", "model": label(model), "process": process}
                records.ensure(key, lambda model=model: trained(model, yardstick, options))  # type: ignore[misc]
                if process == 0:
                    for method in methods:
                        key = {"what": method, "model": label(model)}
                        records.ensure(key, lambda method=method, model=model: estimate(method, model))  # type: ignore[misc]


def trained(model: str, yardstick: Callable[[], Yardstick], options: argparse.Namespace) -> Row:
    """One process of the plain script, in turn with the yardstick: while that is read, the script is stopped.

    The yardstick is as a profile has it: in its first steps after something else has run.
    """
    readings, stops = [yardstick()], list[tuple[float, float]]()
    with TemporaryFile() as errors:
        script = subprocess.Popen(
            _command("train.py", model, options.seconds, options.threads), stdout=subprocess.PIPE, stderr=errors
        )
        assert script.stdout is not None
        while (line := script.stdout.readline()) and line.strip() != TRAINING:
            pass
        while script.poll() is None:
            stopped = time.perf_counter()
            script.send_signal(signal.SIGSTOP)
            readings.append(yardstick())
            script.send_signal(signal.SIGCONT)
            stops.append((stopped, time.perf_counter()))
            with suppress(subprocess.TimeoutExpired):
                script.wait(TURN_SECONDS)
        out = script.stdout.read()
        readings.append(yardstick())
        errors.seek(0)
        found = _answer(script.returncode, out.decode(), errors.read().decode())
    if "failed" in found:
        return found
    if options.threads > 1:
        began, ended = found.pop("between")
        others = sum(max(0.0, min(to, ended) - max(since, began)) for since, to in stops)
        found["wall_seconds"] = (ended - began - others) / found["steps"]
    loops = [reading.seconds(options.threads) for reading in readings]
    early = median((reading.early_seconds or loop) / loop for reading, loop in zip(readings, loops, strict=True))
    return {**found, "yardstick_seconds": early * mean(loops)}


def _process(script: str, model: str, *more: object) -> Row:
    done = subprocess.run(_command(script, model, *more), capture_output=True, text=True, check=False)
    return _answer(done.returncode, done.stdout, done.stderr)


def _command(script: str, model: str, *more: object) -> list[str]:
    file, _, name = model.rpartition(":")
    return [sys.executable, str(HERE / "street" / script), file, name, *map(str, more)]


def _answer(code: int, out: str, errors: str) -> Row:
    if code:
        return {"failed": (errors.strip().splitlines() or ["no output"])[-1]}
    found: Row = json.loads(out.splitlines()[-1])
    return found


class Methods:
    """Ampere's ways to know what a step costs, each as a record; what fails is a record as well."""

    def __init__(self, device: Path, folder: Path, options: argparse.Namespace) -> None:
        self._place, self._folder, self._options = device, folder, options

    def __call__(self, method: str, model: str) -> Row:
        ways = {
            "device": self._device,
            "model": self._model,
            "touch": self._touch,
            "measure": self._measure,
            "rebuilt": lambda model: _process("rebuilt.py", model, self._options.seconds),
        }
        try:
            return ways[method](model)
        except Exception as error:  # the others are still measured
            return {"failed": f"{type(error).__name__}: {error}"}

    @cached_property
    def _known(self) -> Estimator:
        return Estimator(Profile.load(self._place))

    def _device(self, model: str) -> Row:
        return _row(ampere.estimate(model, profile=self._known, touch=0), self._known.profile)

    def _model(self, model: str) -> Row:
        path = self._folder / f"{label(model).replace(':', '-')}.json"
        made = ampere.profile(model, seconds=self._options.model_seconds, out=path, threads=self._options.threads)
        return _row(ampere.estimate(model, profile=made.profile, touch=0), made.profile)

    def _touch(self, model: str) -> Row:
        touched = ampere.estimate(model, profile=self._known, touch=self._options.touch_seconds)
        return _row(touched, self._known.profile)

    def _measure(self, model: str) -> Row:
        found = ampere.measure(model, profile=self._known, threads=self._options.threads)
        seconds = found.busy_seconds if self._options.threads == 1 else found.seconds
        busy = {"busy": {"seconds": found.busy_seconds}} if self._options.threads > 1 else {}
        return {"seconds": seconds, "spread": found.spread, **busy, **_condition(self._known.profile)}


def _row(estimate: Estimate, profile: Profile) -> Row:
    """An estimate in seconds: of one thread's CPU time where joules are modelled from it, else of wall time.

    With several threads it is in seconds of all threads' CPU time as well.
    """
    watts, one = watts_in(profile.meter.scope), profile.setup.threads == 1
    low, high = estimate.interval

    def at(unit: float) -> Row:
        return {"seconds": estimate.joules * unit, "low": low * unit, "high": high * unit}

    found = at(1 / watts if watts and one else estimate.seconds / estimate.joules)
    busy = {"busy": at(1 / watts)} if watts and not one else {}
    counts = {"unprofiled": len(estimate.unprofiled), "extrapolated": len(estimate.extrapolated)}
    return {**found, **busy, **_condition(profile), **counts}


def _condition(profile: Profile) -> Row:
    reference = reference_of(profile)
    share = drift_share_in(costs_of(profile), reference).part
    return {"yardstick_seconds": reference.seconds, "drift_share": share}


# What the records say.


def summarize(models: list[str], records: Records, threads: int) -> list[Row]:
    """For each model the truth in seconds, its spread between processes, and every method's relative error."""
    readings = [row["yardstick_seconds"] for row in records.rows if row["what"] == "truth" and "failed" not in row]
    rows = []
    for model in models:
        processes = [row for row in records.of("truth", model) if "failed" not in row]
        if not processes:
            continue
        share = next((r["drift_share"] for m in OURS for r in records.of(m, model) if "drift_share" in r), 1.0)
        guide = "busy_seconds" if threads == 1 else "wall_seconds"
        costs = _truth(processes, median(readings), share, guide)
        row: Row = {"name": label(model), "reference": model, "seconds": mean(costs), "processes": len(costs)}
        row["spread"] = stdev(costs) / mean(costs) if len(costs) > 1 else None
        for method in OURS:
            for found in records.of(method, model):
                if "failed" in found:
                    row[method] = {"failed": found["failed"]}
                    continue
                if "own_seconds" in found:
                    row[method] = {"error": found["seconds"] / found["own_seconds"] - 1, "within": None}
                    continue
                row[method] = _error(found, processes, found, guide)
                if "busy" in found:
                    row[f"{method} CPU"] = _error(found["busy"], processes, found, "busy_seconds")
        rows.append(row)
    _add_rivals(rows)
    return rows


def _error(estimated: Row, processes: list[Row], condition: Row, clock: str) -> Row:
    """The relative error of an estimate by this clock, and whether the truth is in its interval."""
    actual = mean(_truth(processes, condition["yardstick_seconds"], condition["drift_share"], clock))
    raw = mean(_truth(processes, condition["yardstick_seconds"], 0.0, clock))
    return {
        "error": estimated["seconds"] / actual - 1,
        "uncorrected": estimated["seconds"] / raw - 1,
        "within": estimated["low"] <= actual <= estimated["high"] if "low" in estimated else None,
    }


def _truth(processes: list[Row], yardstick_seconds: float, share: float, clock: str) -> list[float]:
    """Seconds of each process, as they were where the yardstick costs so much."""
    return [row[clock] * (yardstick_seconds / row["yardstick_seconds"]) ** share for row in processes]


def _add_rivals(rows: list[Row]) -> None:
    if len(rows) < FEWEST_TO_FIT:
        return
    networks = [resolve(row["reference"]).network for row in rows]
    costs = np.array([row["seconds"] for row in rows])
    for place, row in enumerate(rows):
        others = [i for i in range(len(rows)) if i != place]
        evidence = Evidence(tuple(networks[i] for i in others), ("step",) * len(others), costs[others])
        for name in RIVALS:
            estimated = float(METHODS[name].fit(evidence)([networks[place]])[0])
            row[name] = {"error": estimated / row["seconds"] - 1, "within": None}


def print_table(rows: list[Row]) -> None:
    ours = [name for method in OURS for name in (method, f"{method} CPU")]
    methods = [m for m in (*ours, *RIVALS) if any("error" in row.get(m, {}) for row in rows)]
    width = max([len(row["name"]) for row in rows], default=5)
    _print(width, "model", ["step", "spread", *(RIVALS.get(m, m) for m in methods)])
    for row in rows:
        spread = "" if row["spread"] is None else f"{row['spread']:.1%}"
        _print(
            width, row["name"], [f"{row['seconds'] * 1e3:.1f} ms", spread, *(_cell(row.get(m, {})) for m in methods)]
        )
    known = {m: [row[m] for row in rows if "error" in row.get(m, {})] for m in methods}
    sizes = {m: [abs(cell["error"]) for cell in cells] for m, cells in known.items()}
    spreads = [row["spread"] for row in rows if row["spread"] is not None]
    repeat = f"{mean(spreads):.1%}" if spreads else ""
    _print(width, "mean", ["", repeat, *(f"{mean(sizes[m]):.1%}" for m in methods)])
    _print(width, "median", ["", "", *(f"{median(sizes[m]):.1%}" for m in methods)])
    _print(width, "worst", ["", "", *(f"{max(sizes[m]):.1%}" for m in methods)])
    for near in NEAR:
        counts = [f"{sum(s <= near for s in sizes[m])} of {len(sizes[m])}" for m in methods]
        _print(width, f"within {near:.0%}", ["", "", *counts])
    within = {m: [cell["within"] for cell in cells if cell["within"] is not None] for m, cells in known.items()}
    _print(width, "in 90 %", ["", "", *(f"{sum(w)} of {len(w)}" if (w := within[m]) else "" for m in methods)])
    for row in rows:
        for method in OURS:
            if "failed" in row.get(method, {}):
                print(f"{row['name']}: no {method}: {row[method]['failed']}")


def _cell(found: Row) -> str:
    return f"{found['error']:+.1%}{'' if found.get('within') is not False else ' !'}" if "error" in found else ""


def _print(width: int, first: str, cells: list[str]) -> None:
    print(f"{first:{width}}", "  ".join(f"{cell:>20}" if len(cell) > 10 else f"{cell:>10}" for cell in cells))


if __name__ == "__main__":
    main()
