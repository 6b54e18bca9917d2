"""The device: what it is, how it trains, how noisy it is, what profiling took, and which measurements were flagged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from ampere.core import Meter, Network, units
from ampere.estimation.normalization import costs_of
from ampere.storage.profile import Profile

from .charts import Bar, Bars, Histogram
from .record import Chart, Section, Table
from .words import PURPOSES, flag_meaning, joules_note, joules_sentence, method_name, setup_words

BINS = 20
FEWEST = 8  # spreads that a histogram is drawn of
SOFTWARE = ("system", "release", "machine", "python", "torch")
NOT_SHOWN = {
    "sequential": "where the uncertainty comes from, and each measurement left out in turn: the paper's method has "
    "neither"
}


def short_name(profile: Profile) -> str:
    return profile.device_name


def device_name(profile: Profile) -> str:
    cores = profile.device.get("cores")
    return f"{short_name(profile)}, {cores} cores" if cores else short_name(profile)


def batches_of(networks: Sequence[Network]) -> dict[str, int]:
    return {network.name or f"network {i}": network.batch for i, network in enumerate(networks, 1)}


def facts(profile: Profile, meter: Meter, networks: Sequence[Network]) -> tuple[tuple[str, str], ...]:
    """What a reader must know before the first figure."""
    found = spreads(profile)
    noise = f"{units.percent(median(found))} between the rounds of one measurement (median)" if found else "not known"
    return (
        ("training", setup_words(profile.setup, batches_of(networks))),
        ("joules", joules_sentence(meter)),
        ("noise", noise),
        *((("not shown", why),) if (why := NOT_SHOWN.get(profile.method)) else ()),
    )


def more_facts(profile: Profile) -> tuple[tuple[str, str], ...]:
    device = profile.device
    return (
        ("software", ", ".join(f"{key} {device[key]}" for key in SOFTWARE if device.get(key))),
        ("profile", f"{units.counted(len(profile.observations), 'measurement')} for {', '.join(profile.spaces)}"),
        ("method", f"{method_name(profile.method)}, timed by {profile.timing}"),
    )


def spreads(profile: Profile) -> list[float]:
    """How far the rounds of each measurement lie apart: in joules if a counter read them, else in yardsticks."""
    found = [cost.joules_spread or cost.spread for cost in costs_of(profile)]
    return sorted(spread for spread in found if spread is not None)


def cost_section(profile: Profile, expected_error: float | None) -> Section:
    what = "of profiling on a simulated clock" if profile.meter.simulated else "of profiling in total"
    figures = [(units.seconds(profile.profiling_seconds), what)]
    figures.append((f"{len(profile.observations):,}", "experiments"))
    if expected_error is not None:
        what = "expected error: each whole network, estimated from everything else"
        figures.append((units.percent(expected_error), what))
    charts = [_purposes_chart(profile)] if profile.observations else []
    if len(spreads(profile)) >= FEWEST:
        charts.append(_noise_chart(profile))
    return Section("cost", "What profiling took, and how noisy it was", figures=tuple(figures), charts=tuple(charts))


def _purposes_chart(profile: Profile) -> Chart:
    bars, cells = [], []
    for purpose, count in Counter(o.purpose for o in profile.observations).most_common():
        measurements = [o.measurement for o in profile.observations if o.purpose == purpose]
        trained = units.seconds(sum(m.iterations * m.wall_seconds for m in measurements))
        steps, name = f"{sum(m.iterations for m in measurements):,}", PURPOSES.get(purpose, purpose)
        tip = f"{name}: {units.counted(count, 'experiment')}, {steps} iterations, {trained} of training"
        bars.append(Bar(name, count, f"{count:,}", tip))
        cells.append((name, f"{count:,}", steps, trained))
    return Chart(
        "experiments",
        "Experiments, by what was trained",
        f"How many small trainings the profile is made of. {joules_note(profile.meter)}",
        Bars(bars),
        Table(("what", ">experiments", ">iterations", ">training"), tuple(cells)),
    )


def _noise_chart(profile: Profile) -> Chart:
    found = spreads(profile)
    highest = max(found[min(len(found) - 1, int(0.98 * len(found)))], 1e-4)
    edges = [highest * i / BINS for i in range(BINS + 1)]
    counts = [0] * BINS
    for spread in found:
        counts[min(BINS - 1, int(spread / highest * BINS))] += 1
    bins = zip(pairwise(edges), counts, strict=True)
    rows = tuple((f"{units.percent(a)} to {units.percent(b)}", str(n)) for (a, b), n in bins if n)
    return Chart(
        "noise",
        "How far the rounds of one measurement lie apart",
        "Relative standard deviation of the rounds of one measurement; the last bar also holds what lies beyond it. "
        f"{joules_note(profile.meter)}",
        Histogram(counts, edges, median(found), "spread of rounds", "measurements"),
        Table(("spread", ">measurements"), rows),
    )


def flags_section(profile: Profile) -> Section:
    counts = Counter(flag for o in profile.observations for flag in o.measurement.flags)
    flagged, total = sum(bool(o.measurement.flags) for o in profile.observations), len(profile.observations)
    if not counts:
        return Section("flags", "Flagged measurements", (f"None of the {total} measurements is flagged.",))
    words = (
        f"Flagged: {flagged} of {units.counted(total, 'measurement')}. They are kept, and count with four times the "
        "variance of the others.",
    )
    rows = tuple((name, f"{count:,}", flag_meaning(name)) for name, count in counts.most_common())
    table = Table(("flag", ">measurements", "what it means"), rows)
    return Section("flags", "Flagged measurements", words, table=table)
