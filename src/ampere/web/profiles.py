"""What is known of stored profiles: what was measured when, how noisy it was, what it covers, and recorded runs."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.budget.recording import running_notes
from ampere.core import Network
from ampere.core.errors import UsageError
from ampere.core.kinds import group, resized, words
from ampere.estimation.additive import Additive
from ampere.estimation.estimate import Estimator
from ampere.estimation.normalization import NormalizedCost
from ampere.estimation.variance import variance_shares
from ampere.storage import files
from ampere.storage.profile import Observation

from .catalogue import Catalogue

if TYPE_CHECKING:
    from ampere.reporting.surfaces import Known

MOST_POINTS = 2_000  # observations or layers that are listed
CELLS = 14  # of each side of a surface
MOST_RUNNING = 20
SILENT_SECONDS = 60.0
NAMES = ("network", "profile")
PROGRESS = (
    *NAMES,
    "steps",
    "iterations",
    "joules_budget",
    "joules_per_step",
    "joules_spent",
    "joules_left",
    "joules_forecast",
)

Record = dict[str, Any]


def devices(catalogue: Catalogue) -> list[Record]:
    """The devices of which profiles are stored, each with its profiles."""
    found: dict[str, Record] = {}
    for profile in catalogue.profiles():
        if profile["problem"] is None:
            device = {"id": profile["device_id"], "title": profile["device"], "profiles": []}
            found.setdefault(profile["device_id"], device)["profiles"].append(profile["id"])
    return list(found.values())


def profile_detail(catalogue: Catalogue, asked: Record) -> Record:
    """One profile: its measurements over time, and what they cover."""
    from ampere.reporting.surfaces import most_measured  # takes a while to load, and the first picture needs none of it

    name = asked.get("profile")
    if not isinstance(name, str):
        raise UsageError("profile must be a name: /api/v1/profiles lists those that are stored")
    estimator = catalogue.estimator(name)
    summary = next(each for each in catalogue.profiles() if each["id"] == name)
    about = asked.get("network")
    if about is not None and not isinstance(about, str):
        raise UsageError("network must be a name: /api/v1/networks lists those that there are")
    network = None if about is None else catalogue.network(about).network
    surfaces = sorted(most_measured(estimator.costs).items())
    estimator.prepare([cost.network for cost in estimator.costs[:MOST_POINTS]])
    return {
        **summary,
        "surfaces": [_surface(kind, known, estimator) for kind, known in surfaces],
        "uncertainty": _uncertainty(network, estimator) if network else None,
        "measured": [_measured(n, cost, estimator) for n, cost in enumerate(estimator.costs[:MOST_POINTS])],
        "coverage": _coverage(estimator),
        "observations": [_observed(o) for o in estimator.profile.observations[:MOST_POINTS]],
    }


def _measured(number: int, cost: NormalizedCost, estimator: Estimator) -> Record:
    estimate = estimator.estimate(cost.network, cost.allocator, 1.0)
    return {
        "number": number,
        "network": cost.network.name,
        "layers": len(cost.network.layers),
        "batch": cost.network.batch,
        "spread": cost.spread,
        "seconds": cost.seconds,
        "joules": cost.joules,
        "estimated_joules": estimate.joules,
        "estimated_stddev": estimate.stddev,
    }


def _observed(observation: Observation) -> Record:
    measurement = observation.measurement
    yardstick = [w.busy_seconds / w.iterations for w in measurement.yardstick]
    return {
        "purpose": observation.purpose,
        "network": observation.network.name,
        "unix_time": measurement.conditions.get("unix_time"),
        "yardstick_seconds": sum(yardstick) / len(yardstick) if yardstick else None,
        "flags": list(measurement.flags),
    }


def _coverage(estimator: Estimator) -> list[Record]:
    """For each kind of layer, at which channels it was measured and how often."""
    counts: dict[str, Counter[tuple[int, int]]] = {}
    for observation in estimator.profile.observations:
        for layer in observation.network.distinct:
            counts.setdefault(group(layer), Counter())[layer.channels_in, layer.channels_out] += 1
    return [
        {
            "kind": kind,
            "words": words(kind),
            "points": [[i, o, n] for (i, o), n in places.most_common(MOST_POINTS)],
        }
        for kind, places in sorted(counts.items())
    ]


def _surface(kind: str, known: Known, estimator: Estimator) -> Record:
    """The learnt cost of a kind of layer over its channels, at the configuration that was measured most."""
    ins, outs = (_even({place[side] for place in known.places}) for side in (0, 1))
    networks = {(i, o): Network((resized(known.layer, i, o),), known.batch) for i in ins for o in outs}
    estimator.prepare(list(networks.values()))

    def joules(channels: tuple[int, int]) -> float:
        return estimator.estimate(networks[channels], "tuned", 1.0).layers[0].joules

    return {
        "kind": kind,
        "words": words(kind),
        "batch": known.batch,
        "channels_in": ins,
        "channels_out": outs,
        "joules": [[joules((i, o)) for i in ins] for o in outs],
        "points": [[i, o, (i, o) in known.alone] for i, o in known.places],
    }


def _even(values: set[int]) -> list[int]:
    """A few whole numbers from the least to the largest, each larger by about the same factor."""
    low, high = max(1, min(values)), max(values)
    steps = range(CELLS)
    return sorted({round(low * (high / low) ** (step / (CELLS - 1))) for step in steps}) if high > low else [low]


def _uncertainty(network: Network, estimator: Estimator) -> Record | None:
    """Where the variance of an estimate comes from, and what is left of it however long one profiles."""
    model, _ = estimator.of_joules
    if not isinstance(model, Additive):
        return None
    shares = variance_shares(model, network, estimator.allocator("system") == "system")
    layers = [{"name": layer.name or layer.kind, "share": share} for layer, share in shares.layers.items()]
    return {
        "network": network.name,
        "layers": sorted(layers, key=lambda each: -each["share"]),
        "whole": shares.whole,
        "step": shares.step,
        "measuring": shares.measuring,
    }


def runs(catalogue: Catalogue) -> list[Record]:
    """Recorded training runs of all profiles: what an iteration cost, and what was estimated."""
    found = []
    for profile in catalogue.profiles():
        if profile["problem"] is not None or not profile["runs"]:
            continue
        recorded = catalogue.estimator(profile["id"]).profile.runs
        before = catalogue.estimator(profile["id"], runs=False)  # a forecast knows nothing of the run itself
        for number, run in enumerate(recorded):
            found.append({"profile": profile["id"], "number": number, **_run(run, before)})
    return found


def running(folder: Path) -> list[Record]:
    """Training runs that go on now, as their budgets note it; one that is silent for long has ended."""
    found = []
    for path in sorted(running_notes(folder / "any.json").glob("*.json"))[:MOST_RUNNING]:
        try:
            record = files.loads(path.read_text(encoding="utf-8"))
            age = time.time() - record["unix_time"]
            progress = {key: record.get(key) for key in PROGRESS}
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            continue  # it ended just now, or is no note
        numbers = [value for key, value in progress.items() if key not in NAMES and value is not None]
        if age < SILENT_SECONDS and all(isinstance(each, (int, float)) for each in numbers):
            found.append({"process": path.stem, **progress})
    return found


def _run(run: Observation, estimator: Estimator) -> Record:
    estimate = estimator.estimate(run.network, run.measurement.allocator, 1.0)
    windows = [
        {"iterations": w.iterations, "seconds": w.wall_seconds, "joules": w.joules} for w in run.measurement.target
    ]
    return {
        "network": run.network.name,
        "batch": run.network.batch,
        "unix_time": run.measurement.conditions.get("unix_time"),
        "flags": list(run.measurement.flags),
        "windows": windows,
        "estimated_joules": estimate.joules,
        "estimated_stddev": estimate.stddev,
    }
