"""The same models on several devices: what an iteration costs on each, and whose joules those are."""

from __future__ import annotations

from collections.abc import Sequence

from ampere.core import Network, units
from ampere.estimation.estimate import Estimate, Estimator
from ampere.reporting import bars

from .device_part import short_name
from .models_part import bar, interval
from .origin import beneath, origin
from .record import Chart, Section, Table


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
