"""Several models on one device: which is cheaper, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence

from ampere.baselines.answers import answers, title
from ampere.comparison import compare
from ampere.core import Network, units
from ampere.core.setup import ALLOCATORS
from ampere.estimation.estimate import Estimate, Estimator
from ampere.reporting import bars
from ampere.reporting import words as naming
from ampere.storage.profile import Profile

from .device_section import short_name
from .record import Chart, Section, Table
from .words import beneath, origin

MOST_SENTENCES = 4


def side_by_side(networks: Sequence[Network], estimates: Sequence[Estimate], estimator: Estimator) -> Section:
    rows = [bar(estimate.network or "network", estimate) for estimate in estimates]
    told = [
        (bar.name, bar.label, interval(e), units.seconds(e.seconds), str(n.batch))
        for bar, e, n in zip(rows, estimates, networks, strict=True)
    ]
    chart = Chart(
        "models",
        "Energy of one training iteration",
        "Whiskers are 90 % intervals of each model alone. They may overlap although it is sure which model is cheaper: "
        f"doubt about layers that both have cancels, and the words above count that. {beneath(estimates[0].meter)}",
        lambda width: bars.draw(rows, width),
        Table(("model", ">energy", ">90 % interval", ">time", ">batch"), tuple(told)),
        full=True,
    )
    return Section("models", "The models side by side", _sentences(networks, estimates, estimator), charts=(chart,))


def _sentences(networks: Sequence[Network], estimates: Sequence[Estimate], estimator: Estimator) -> tuple[str, ...]:
    """Every model beside the first, as `ampere compare` would say it."""
    first, *others = networks
    said = []
    for other in others[:MOST_SENTENCES]:
        found = compare(other, first, [estimator], estimates[0].allocator)
        per = " for each training example, as their batches differ" if found.per == "example" else ""
        said.append(f"{found.sentence(found.devices[0])}{per}.")
    return tuple(said)


def interval(estimate: Estimate) -> str:
    low, high = estimate.interval90
    return f"{units.joules(low)} to {units.joules(high)}"


def bar(name: str, estimate: Estimate, detail: str = "") -> bars.Bar:
    shown, (low, high) = units.joules(estimate.joules), estimate.interval90
    tip = f"{name}: {shown}, 90 % interval {interval(estimate)}"
    return bars.Bar(name, estimate.joules, shown, tip, detail, low=low, high=high)


# The same models on several devices: what an iteration costs on each, and whose joules those are.


def devices_section(networks: Sequence[Network], estimators: Sequence[Estimator], allocator: str) -> Section:
    names = _told_apart([short_name(e.profile) for e in estimators])
    charts = tuple(
        _chart(f"devices-{i}", network, [e.estimate(network, allocator) for e in estimators], names)
        for i, network in enumerate(networks, 1)
    )
    words = [f"All other parts of this report are about the first device, {names[0]}."]
    if len({(e.meter.name, e.meter.measured) for e in estimators}) > 1:
        words.append("The joules come from different meters: devices are compared only as far as those agree.")
    if not networks:
        words.append("Name a model to see what it costs on each device.")
    return Section("devices", "The devices side by side", tuple(words), charts=charts)


def _chart(key: str, network: Network, estimates: Sequence[Estimate], names: Sequence[str]) -> Chart:
    pairs = list(zip(names, estimates, strict=True))
    rows = [bar(name, estimate, f"{origin(estimate.meter)} joules") for name, estimate in pairs]
    told = [
        (name, units.joules(e.joules), interval(e), units.seconds(e.seconds), f"{origin(e.meter)}, {e.meter.name}")
        for name, e in pairs
    ]
    meters = " ".join(dict.fromkeys(beneath(e.meter) for e in estimates))
    return Chart(
        key,
        f"One training iteration of {network.name or 'the network'} on each device",
        f"Whiskers are 90 % intervals. {meters}",
        lambda width: bars.draw(rows, width),
        Table(("device", ">energy", ">90 % interval", ">time", "joules"), tuple(told)),
        full=True,
    )


def _told_apart(names: Sequence[str]) -> list[str]:
    """Two profiles of one device are numbered."""
    return [n if names.count(n) == 1 else f"{n} ({names[: i + 1].count(n)})" for i, n in enumerate(names)]


# Models by methods that know no layers of a network, only parts of layers that were timed alone.


def whole_section(profile: Profile, networks: Sequence[Network]) -> Section:
    parts = naming.PURPOSES.get(profile.observations[0].purpose, "parts of layers")
    words = (
        f"This profile was made with --method {profile.method}: it knows {parts}, timed alone. So there is no picture "
        "of what each layer costs in a network, of what was learnt, or of how sure that is; "
        "`ampere profile` without --method makes one that has them all.",
    )
    charts = (_chart_of_whole_part(profile, networks),) if networks else ()
    facts = (("stands for", ALLOCATORS["tuned"]),) if networks else ()
    return Section("whole", "What this profile tells, and what it cannot", words, charts=charts, facts=facts)


def _chart_of_whole_part(profile: Profile, networks: Sequence[Network]) -> Chart:
    said = answers(profile, networks, "tuned", profile.yardstick_seconds)
    rows, cells = [], []
    for i, network in enumerate(networks):
        name = network.name or f"network {i + 1}"
        for method, answer in said.items():
            shown = units.joules(float(answer.joules[i]))
            tip = f"{name}: {shown} by {naming.method(method)}"
            rows.append(bars.Bar(name, float(answer.joules[i]), shown, tip, f"by {naming.method(method)}"))
            cells.append((name, naming.method(method), title(method), shown))
    return Chart(
        "whole-models",
        "Energy of one training iteration, all layers together",
        f"The method tells no interval. {beneath(profile.meter)}",
        lambda width: bars.draw(rows, width),
        Table(("model", "method", "what it is", ">energy"), tuple(cells)),
        full=True,
    )
