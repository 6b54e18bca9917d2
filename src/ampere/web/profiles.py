"""What is known of stored profiles: what was measured when, how noisy it was, what it covers, and recorded runs."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.budget.recording import running_notes
from ampere.core import Network
from ampere.core.errors import UsageError
from ampere.core.kinds import group, resized, words
from ampere.estimation.additive import Additive
from ampere.estimation.estimator import Estimator
from ampere.estimation.interval import interval90
from ampere.estimation.normalization import NormalizedCost
from ampere.estimation.variance import kept_by_measuring, variance_shares
from ampere.storage import files
from ampere.storage.profile import Observation

from .catalogue import Catalogue
from .open_networks import Changes, OpenNetwork

if TYPE_CHECKING:
    from ampere.reporting.surfaces import Known

MOST_POINTS = 2_000  # observations or layers that are listed
CELLS = 14  # of each side of a surface
MORE_SECONDS = (0, 15, 30, 60)  # of profiling, whose gain is computed
MOST_PLANNED, MOST_PLANNED_LAYERS = (
    240,
    4_000,
)  # measurements that a further minute is thought to bring, and their layers
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
    opened = None if about is None else catalogue.network(about)
    surfaces = sorted(most_measured(estimator.costs).items())
    estimator.prepare([cost.network for cost in estimator.costs[:MOST_POINTS]])
    learnt_from = _learnt_from(estimator)
    return {
        **summary,
        "surfaces": [_surface(kind, known, estimator) for kind, known in surfaces],
        "uncertainty": _uncertainty(opened, estimator) if opened else None,
        "measured": [
            _measured(n, cost, estimator, learnt_from) for n, cost in enumerate(estimator.costs[:MOST_POINTS])
        ],
        "coverage": _coverage(estimator),
        "observations": [_observed(o) for o in estimator.profile.observations[:MOST_POINTS]],
    }


def _learnt_from(estimator: Estimator) -> dict[tuple[Network, str], float]:
    """The joules that each network was learnt with: a slow gauge reads some, the others follow from power."""
    model, joules = estimator.of_joules
    if not isinstance(model, Additive):
        return {}
    pairs = zip(estimator.fitted_costs, model.data.costs, strict=True)
    return {(fitted.network, fitted.allocator): joules * float(cost) for fitted, cost in pairs}


def _measured(
    number: int, cost: NormalizedCost, estimator: Estimator, learnt_from: dict[tuple[Network, str], float]
) -> Record:
    estimate = estimator.estimate(cost.network, cost.allocator, 1.0)
    return {
        "number": number,
        "network": cost.network.name,
        "layers": len(cost.network.layers),
        "batch": cost.network.batch,
        "spread": cost.spread,
        "seconds": cost.seconds,
        "joules": learnt_from.get((cost.network, cost.allocator), cost.joules),
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


def _uncertainty(opened: OpenNetwork, estimator: Estimator) -> Record | None:
    """Where the variance of an estimate comes from, what of it always stays, and what more profiling brings."""
    model, joules = estimator.of_joules
    if not isinstance(model, Additive):
        return None
    network, system = opened.network, estimator.allocator("system") == "system"
    shares = variance_shares(model, network, system)
    layers = [{"name": layer.name or layer.kind, "share": share} for layer, share in shares.layers.items()]
    estimate, own = estimator.estimate(network, "system", 1.0), model.answer(network, system).stddev * joules

    def interval(kept: float) -> float:
        """Half of the relative 90 % interval, if only this share of the model's own variance is left."""
        low, high = interval90(estimate.joules, max(estimate.stddev**2 - (1 - kept) * own**2, 0.0) ** 0.5)
        return (high - low) / (high + low)

    candidates = _in_a_minute(opened, estimator)
    counts = {seconds: round(len(candidates) * seconds / 60) for seconds in MORE_SECONDS}
    kept = kept_by_measuring(model, network, system, candidates, list(counts.values()))
    more = [
        {"seconds": seconds, "measurements": count, "interval90": interval(share)}
        for (seconds, count), share in zip(counts.items(), kept, strict=True)
    ]
    return {
        "network": network.name,
        "layers": sorted(layers, key=lambda each: -each["share"]),
        "whole": shares.whole,
        "step": shares.step,
        "measuring": shares.measuring,
        "more_profiling": more,
        "least_interval90": interval(shares.measuring),
    }


def _in_a_minute(opened: OpenNetwork, estimator: Estimator) -> list[tuple[Network, bool]]:
    """What one more minute would measure: the network itself and others like it, as many as a minute did so far."""
    costs, spent = estimator.costs, estimator.profile.profiling_seconds
    most = min(MOST_PLANNED, MOST_PLANNED_LAYERS // len(opened.network.layers))
    count = min(most, round(60 * len(costs) / spent)) if spent > 0 else 0
    plain = sum(cost.allocator == "system" for cost in costs) / max(1, len(costs))
    rng = random.Random(0)
    form = opened.template(Changes({}, {}))
    drawn = [form.network([rng.randint(1, width.value) for width in opened.widths]) for _ in range(count)]
    return [(network, rng.random() < plain) for network in [opened.network, *drawn][:count]]


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
