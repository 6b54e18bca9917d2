"""The device: what it is, how noisy, what profiling it took, and what was doubted."""

from __future__ import annotations

from collections import Counter
from statistics import median

from ampere.core import Meter, units
from ampere.reporting import bars, histogram, naming
from ampere.storage.profile import Profile

from .origin import beneath, sentence
from .record import Chart, Section, Table

BINS = 20
FEWEST = 8  # spreads that a histogram is drawn of
SOFTWARE = ("system", "release", "machine", "python", "torch")
CANNOT_TELL = {
    "sequential": "what the doubt is made of, and each measurement as the others tell it: the paper's method cannot say"
}


def short_name(profile: Profile) -> str:
    device = profile.device
    return str(device.get("cpu") or device.get("name") or device["id"])


def device_name(profile: Profile) -> str:
    cores = profile.device.get("cores")
    return f"{short_name(profile)}, {cores} cores" if cores else short_name(profile)


def spreads(profile: Profile) -> list[float]:
    """Of the joules of each measurement's rounds where a counter read them, else of their ratios to the yardstick."""
    found = [o.measurement.joules_spread or o.measurement.spread for o in profile.observations]
    return sorted(spread for spread in found if spread is not None)


def facts(profile: Profile, meter: Meter) -> tuple[tuple[str, str], ...]:
    """What a reader must know before the first figure."""
    found = spreads(profile)
    noise = f"{units.percent(median(found))} between the rounds of one measurement (median)" if found else "not known"
    return (
        ("joules", sentence(meter)),
        ("noise", noise),
        *((("not shown", why),) if (why := CANNOT_TELL.get(profile.method)) else ()),
    )


def more_facts(profile: Profile) -> tuple[tuple[str, str], ...]:
    device, setup = profile.device, profile.setup
    software = [f"{key} {device[key]}" for key in SOFTWARE if device.get(key)]
    threads = f"{setup.threads} thread{'s' if setup.threads > 1 else ''}"
    return (
        ("training", f"{setup.runtime}, {setup.optimizer}, {setup.dtype}, {threads}"),
        ("software", ", ".join(software)),
        ("profile", f"{len(profile.observations)} measurements for {', '.join(profile.spaces)}"),
        ("method", f"{naming.method(profile.method)}, timed by {profile.protocol}"),
    )


def cost_section(profile: Profile, expected: float | None) -> Section:
    counts = Counter(o.purpose for o in profile.observations)
    what = "of profiling on a simulated clock" if profile.meter.simulated else "of profiling, all told"
    figures = [(units.seconds(profile.profiling_seconds), what)]
    figures.append((f"{len(profile.observations):,}", "experiments"))
    if expected is not None:
        figures.append((units.percent(expected), "expected error: each whole network, estimated from everything else"))
    charts = [_purposes(profile, counts)] if counts else []
    if len(spreads(profile)) >= FEWEST:
        charts.append(_noise(profile))
    return Section("cost", "What profiling took, and how noisy it was", figures=tuple(figures), charts=tuple(charts))


def _purposes(profile: Profile, counts: Counter[str]) -> Chart:
    rows, cells = [], []
    for purpose, count in counts.most_common():
        of_it = [o.measurement for o in profile.observations if o.purpose == purpose]
        trained = sum(m.iterations * m.seconds for m in of_it)
        name = naming.PURPOSES.get(purpose, purpose)
        steps = f"{sum(m.iterations for m in of_it):,}"
        told = f"{count} experiments, {steps} iterations, {units.seconds(trained)} of training"
        rows.append(bars.Bar(name, count, f"{count:,}", f"{name}: {told}"))
        cells.append((name, f"{count:,}", steps, units.seconds(trained)))
    return Chart(
        "experiments",
        "Experiments, by what was trained",
        f"How many small trainings the profile is made of. {beneath(profile.meter)}",
        lambda width: bars.draw(rows, width),
        Table(("what", ">experiments", ">iterations", ">training"), tuple(cells)),
    )


def _noise(profile: Profile) -> Chart:
    found = spreads(profile)
    highest = max(found[min(len(found) - 1, int(0.98 * len(found)))], 1e-4)
    edges = [highest * i / BINS for i in range(BINS + 1)]
    counts = [0] * BINS
    for spread in found:
        counts[min(BINS - 1, int(spread / highest * BINS))] += 1
    bins = zip(edges, edges[1:], counts, strict=False)
    rows = tuple((f"{units.percent(a)} to {units.percent(b)}", str(n)) for a, b, n in bins if n)
    return Chart(
        "noise",
        "How far the rounds of one measurement lie apart",
        "Relative standard deviation of the rounds of one measurement; the last bar also holds what lies beyond it. "
        f"{beneath(profile.meter)}",
        lambda width: histogram.draw(
            counts, edges, median(found), width, units.percent, "spread of rounds", "measurements"
        ),
        Table(("spread", ">measurements"), rows),
    )


def flags_section(profile: Profile) -> Section:
    counts = Counter(flag for o in profile.observations for flag in o.measurement.flags)
    flagged = sum(bool(o.measurement.flags) for o in profile.observations)
    if not counts:
        return Section(
            "flags",
            "What was flagged",
            (f"Nothing: none of the {len(profile.observations)} measurements carries a doubt.",),
        )
    words = (
        f"{flagged} of {len(profile.observations)} measurements carry a doubt. They are kept, and count with four "
        "times the variance of the others.",
    )
    rows = tuple((name, f"{count:,}", naming.flag(name)) for name, count in counts.most_common())
    return Section("flags", "What was flagged", words, table=Table(("flag", ">measurements", "what it means"), rows))
