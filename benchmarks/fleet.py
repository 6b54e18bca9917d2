"""Plans for fleets: how near the best, how fast, how many joules less than simpler rules, and whether batteries hold.

    python benchmarks/fleet.py small [--cases 100] [--pairs 30]     the heuristic beside the exact plan of small random
                                                        problems; in groups of so many pairs, as large ones are solved
    python benchmarks/fleet.py large [--devices 1000 --jobs 10000]      a simulated fleet: seconds, gap, joules by rule
    python benchmarks/fleet.py days [--days 10000]      how often a battery is empty before its jobs have ended
    python benchmarks/fleet.py many [--devices 1000]    that many simulated devices checked, estimated and reported
    python benchmarks/fleet.py screen [--candidates 1000000000]     a search in parts on a dask cluster: speed, memory

The fleet has boards, phones and servers (the simulated devices), each with its own speed, battery and hours. Jobs train
the built-in families at several batches. Truths are the simulated devices' own; estimates differ from them by an error
that all jobs of a device share, and one of each job, as the intervals of profiles say. Results are added to --out.
"""

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does: more only wait for each other

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.fleet.fleets import random_problem

from ampere.core import Network, work
from ampere.devices.simulated import PARTS, SimulatedWorker
from ampere.fleet import heuristic
from ampere.fleet.heuristic import approximate
from ampere.fleet.problem import FOREVER, DeviceLimits, JobLimits, Problem
from ampere.fleet.rules import RULES, by_rule
from ampere.fleet.scheduling import plan
from ampere.fleet.solving import NOWHERE, best, timeline

FAMILIES, BATCHES = ("lenet5", "cnn5", "har", "lstm", "transformer", "resnet"), (4, 16, 64)
SHARED_ERROR, OWN_ERROR = 0.08, 0.03  # relative standard deviations of estimates: of a device, of a job
HOUR, DAY = 3600.0, 86400.0
FULL_DAY = 0.35  # share of the fleet's time that jobs take


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=tuple(DOES))
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--pairs", type=int, help="jobs times devices that are solved at a time")
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--days", type=int, default=10_000)
    parser.add_argument("--candidates", type=int, default=1_000_000_000)
    parser.add_argument("--workers", type=int, default=2, help="processes of the cluster that screens candidates")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1, help="of the fleet and its jobs; of the first small case")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/fleet.json"))
    options = parser.parse_args()
    record = json.loads(options.out.read_text()) if options.out.exists() else {}
    record[options.what] = found = DOES[options.what](options)
    print(json.dumps(found, indent=1))
    options.out.write_text(json.dumps(record, indent=1))


def small(options: argparse.Namespace) -> dict[str, object]:
    heuristic.GROUP_PAIRS = options.pairs or heuristic.GROUP_PAIRS
    found: dict[str, object] = {"cases": options.cases, "first_seed": options.seed, "pairs": heuristic.GROUP_PAIRS}
    for priced in (False, True):
        gaps, fewer, empty = [], 0, 0
        for seed in range(options.seed, options.seed + options.cases):
            problem = random_problem(seed, 12, 4, priced=priced)
            exact, near = best(problem, 20.0), approximate(problem, 20.0, seed)
            if np.all(exact.device == NOWHERE):  # no job can run at all: there is no gap
                empty += 1
                continue
            fewer += int(np.sum(near.device == NOWHERE) > np.sum(exact.device == NOWHERE))
            if np.sum(near.device == NOWHERE) == np.sum(exact.device == NOWHERE):
                gaps.append(value(problem, near.device) / value(problem, exact.device) - 1)
        name = "by hour" if priced else "joules"
        found[name] = {
            "mean_gap": float(np.mean(gaps)),
            "largest_gap": float(np.max(gaps)),
            "within_1_percent": float(np.mean(np.array(gaps) <= 0.01)),
            "cases_with_a_job_less": fewer,
            "cases_where_nothing_runs": empty,
        }
    return found


def value(problem: Problem, device: np.ndarray) -> float:
    return float(np.sum(timeline(problem, device)[1]))


def large(options: argparse.Namespace) -> dict[str, object]:
    problem = simulated_fleet(options.devices, options.jobs, options.seed)
    began = time.perf_counter()
    found = plan(problem, options.seconds, baselines=())
    seconds = time.perf_counter() - began
    rules = {}
    for rule in RULES:
        device = by_rule(problem, rule)
        rules[rule] = {"joules": value(problem, device), "left_out": int(np.sum(device == NOWHERE))}
    guided = rules["FLOPs-guided"]["joules"]
    return {
        "seed": options.seed,
        "devices": options.devices,
        "jobs": options.jobs,
        "seconds": seconds,
        "joules": found.joules,
        "left_out": len(found.unscheduled),
        "gap": found.gap,
        "rules": rules,
        "less_than_flops_guided": 1 - found.joules / guided,
    }


def days(options: argparse.Namespace) -> dict[str, object]:
    """Each day is another draw of errors; a battery counts as broken where its jobs need more than it holds."""
    problem = simulated_fleet(60, 400, options.seed, battery_share=0.8)
    found = approximate(problem, options.seconds)
    rng, count = np.random.default_rng(options.seed), options.days
    worst, all_broken, devices = 0.0, 0.0, 0
    for d, battery in enumerate(problem.batteries):
        mine = np.flatnonzero(found.device == d)
        if not len(mine) or not np.isfinite(battery):
            continue
        shared = SHARED_ERROR * rng.standard_normal((count, 1))
        own = OWN_ERROR * rng.standard_normal((count, len(mine)))
        drawn = np.sum(problem.joules[mine, d] * (1 + shared + own), axis=1)
        broken = float(np.mean(drawn > battery))
        worst, all_broken, devices = max(worst, broken), all_broken + broken, devices + 1
    return {
        "seed": options.seed,
        "days": count,
        "batteries": devices,
        "promised": 1 - problem.confidence,
        "broken_mean": all_broken / max(devices, 1),
        "broken_worst_device": worst,
        "jobs_left_out": int(np.sum(found.device == NOWHERE)),
    }


def many(options: argparse.Namespace) -> dict[str, object]:
    """`ampere fleet` with devices of two profiled kinds, and two that do not answer."""
    import resource

    import ampere
    from ampere.api.fleets import fleet

    with tempfile.TemporaryDirectory() as folder:
        os.environ["AMPERE_HOME"] = folder
        entries = []
        for part in ("tx2", "xavier"):
            ampere.profile("lenet5", device=f"simulated:{part}", seconds=20, out=f"{folder}/{part}.json")
        for n in range(options.devices):
            part = ("tx2", "xavier")[n % 2]
            text = f'name = "{part} {n}"\naddress = "simulated:{part}"\nseed = {n}\nprofile = "{folder}/{part}.json"'
            entries.append(f"[[device]]\n{text}\n")
        entries += [f'[[device]]\nname = "off {n}"\naddress = "tcp://127.0.0.1:9"\n' for n in range(2)]
        path = Path(folder) / "fleet.toml"
        path.write_text("".join(entries))
        found: dict[str, object] = {"devices": options.devices + 2}
        for action, models in (("check", ()), ("estimate", ("lenet5",)), ("report", ("lenet5",))):
            began = time.perf_counter()
            result = fleet(
                path, action, *models, attempts=1, out=f"{folder}/report.html" if action == "report" else None
            )
            good = sum(outcome.result is not None for outcome in result.outcomes)
            found[action] = {"seconds": time.perf_counter() - began, "good": good, "named": len(result.outcomes) - good}
        found["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        found["report_megabytes"] = (Path(folder) / "report.html").stat().st_size / 1e6
    return found


def screen(options: argparse.Namespace) -> dict[str, object]:
    """`ampere search lstm` on a scheduler with worker processes; their memory and this process's, each second."""
    import psutil
    from distributed import LocalCluster

    import ampere

    with tempfile.TemporaryDirectory() as folder, LocalCluster(
        n_workers=options.workers, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
    ) as cluster:  # fmt: skip
        os.environ["AMPERE_HOME"] = folder
        profile = ampere.profile("lstm", device="simulated:server", seconds=20, out=f"{folder}/lstm.json").profile
        seen, ended = list[float](), threading.Event()

        def watch() -> None:
            while not ended.wait(1.0):
                all_ = [psutil.Process(), *psutil.Process().children(recursive=True)]
                seen.append(sum(process.memory_info().rss for process in all_) / 1e6)

        watching = threading.Thread(target=watch)
        watching.start()
        began = time.perf_counter()
        address, table = cluster.scheduler_address, f"{folder}/best.csv"
        found = ampere.search(
            "lstm", "50%", profile, trials=0, candidates=options.candidates, scheduler=address, table=table
        )
        seconds = time.perf_counter() - began
        ended.set()
        watching.join()
    return {
        "candidates": found.screened,
        "workers": options.workers,
        "seconds": seconds,
        "candidates_per_second": found.screened / seconds,
        "shortlist": len(found.shortlist),
        "megabytes_of_all_processes": {
            "after a quarter": seen[len(seen) // 4],
            "at the end": seen[-1],
            "most": max(seen),
        },
    }


def simulated_fleet(devices: int, jobs: int, seed: int, battery_share: float = 1.0) -> Problem:
    """Devices of the five simulated kinds, each a little different, and jobs of the built-in families."""
    rng, networks, parts = np.random.default_rng(seed), traced(), list(PARTS)
    truths = np.array([[cost_of(part, network) for part in parts] for network in networks])  # [network, part, 2]
    kind, which = rng.integers(len(parts), size=devices), rng.integers(len(networks), size=jobs)
    slower, hungrier = (np.exp(rng.normal(0, 0.15, devices)) for _ in range(2))
    steps = np.exp(rng.normal(np.log(20_000), 1.0, jobs))
    seconds = truths[which][:, kind, 1] * slower * steps[:, None]
    joules = truths[which][:, kind, 0] * hungrier * steps[:, None]
    scale = FULL_DAY * DAY * devices / np.sum(np.median(seconds, axis=1))  # as much work as fills the day
    seconds, joules, steps = seconds * scale, joules * scale, steps * scale
    share = np.sum(np.median(joules, axis=1)) / devices
    on_battery = rng.random(devices) < 0.6
    begins = rng.integers(0, 12, devices) * HOUR
    limits = tuple(
        DeviceLimits(
            f"{parts[kind[d]]} {d}",
            float(share * battery_share * rng.uniform(0.5, 2.0)) if on_battery[d] else FOREVER,
            available=((0.0, FOREVER),) if rng.random() < 0.5 else ((float(begins[d]), float(begins[d]) + DAY / 2),),
        )
        for d in range(devices)
    )
    flops = np.array([sum(work(layer).flops for layer in network.layers) for network in networks])
    quickest = np.median(seconds, axis=1)
    deadlines = np.minimum(DAY, np.maximum(rng.choice([8, 12, 16, 20, 24], jobs) * HOUR, 2 * quickest))
    needs = tuple(
        JobLimits(f"job {j}", float(deadlines[j]), flops=float(flops[which[j]] * steps[j])) for j in range(jobs)
    )
    return Problem(needs, limits, joules, np.hypot(SHARED_ERROR, OWN_ERROR) * joules, seconds)


def traced() -> list[Network]:
    from ampere.api import resolve
    from ampere.models.loading import load_model

    return [replace(resolve(load_model(f, batch=b)).network, name=f"{f} {b}") for f in FAMILIES for b in BATCHES]


def cost_of(part: str, network: Network) -> tuple[float, float]:
    total = SimulatedWorker(part, 0).truth(network).total
    return total.joules, total.seconds


DOES = {"small": small, "large": large, "days": days, "many": many, "screen": screen}

if __name__ == "__main__":
    main()
