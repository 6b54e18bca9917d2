"""Models or devices next to each other: which is cheaper and with what probability, per iteration and per sample."""

from __future__ import annotations

from collections.abc import Sequence

from ampere.baselines import METHODS
from ampere.baselines.answers import answers, title, unavailable
from ampere.comparison import compare
from ampere.comparison.ranking import CONFIDENT, in_percent, probability_below_one, ratio_interval
from ampere.core import Network, units
from ampere.core.setup import ALLOCATORS
from ampere.estimation.estimate import Estimate
from ampere.estimation.estimator import Estimator
from ampere.storage.profile import Profile

from .charts import Bar, Bars
from .device_section import short_name
from .record import Basis, Chart, Section, Table
from .words import PURPOSES, joules_note, joules_origin, method_name

MOST_SENTENCES = 4
ITERATION, SAMPLE = "iteration", "sample"


def models_section(networks: Sequence[Network], estimates: Sequence[Estimate], estimator: Estimator) -> Section:
    """Several models on one device, on one basis: per iteration, or per sample first where the batches differ."""
    names = _distinct([estimate.network or "network" for estimate in estimates])
    bases = (ITERATION, SAMPLE) if len({n.batch for n in networks}) == 1 else (SAMPLE, ITERATION)
    relatives = [_relative_stddev(network, networks[0], estimator, estimates[0].allocator) for network in networks[1:]]
    return Section(
        "models",
        "The models side by side",
        bases=tuple(_on_basis(basis, names, networks, estimates, relatives) for basis in bases),
    )


def _relative_stddev(network: Network, first: Network, estimator: Estimator, allocator: str) -> float:
    """The relative deviation of a ratio of two costs: what is uncertain about layers that both models have cancels."""
    ranking = compare([network, first], [estimator], allocator)
    return ranking.devices[0].pair(*ranking.models).relative_stddev


def _on_basis(
    basis: str,
    names: Sequence[str],
    networks: Sequence[Network],
    estimates: Sequence[Estimate],
    relatives: Sequence[float],
) -> Basis:
    samples = [network.batch if basis == SAMPLE else 1 for network in networks]
    bars = [_bar(name, e, parts) for name, e, parts in zip(names, estimates, samples, strict=True)]
    cells = tuple(
        (bar.name, bar.label, _interval(e, parts), units.seconds(e.seconds / parts), str(network.batch))
        for bar, e, parts, network in zip(bars, estimates, samples, networks, strict=True)
    )
    chart = Chart(
        f"models-{basis}",
        f"Energy per {basis}",
        f"Training, per {basis}. Whiskers are 90 % intervals of each model on its own. They may overlap although one "
        "model is clearly cheaper: what is uncertain about layers that both have cancels in a comparison. "
        f"{joules_note(estimates[0].meter)}",
        Bars(bars),
        Table(("model", f">energy per {basis}", ">90 % interval", f">time per {basis}", ">batch"), cells),
        full=True,
    )
    words = tuple(
        _sentence(name, names[0], bar.value / bars[0].value, relative, basis)
        for name, bar, relative in list(zip(names[1:], bars[1:], relatives, strict=True))[:MOST_SENTENCES]
    )
    return Basis(basis, words, (chart,))


def _sentence(name: str, first: str, ratio: float, relative_stddev: float, basis: str) -> str:
    """`lenet5 costs 0.62 of cnn5 per sample (90 %: 0.60 to 0.64): it is cheaper with a probability of 98 %.`"""
    low, high = ratio_interval(ratio, relative_stddev)
    cheaper = probability_below_one(ratio, relative_stddev)
    times = "of" if ratio < 1 else "times"
    costs = f"{name} costs {ratio:.2f} {times} {first} per {basis} (90 %: {low:.2f} to {high:.2f})"
    chance = in_percent(max(cheaper, 1 - cheaper))
    if max(cheaper, 1 - cheaper) < CONFIDENT:
        return (
            f"{costs}: too close to call, {name if cheaper > 0.5 else first} is cheaper with a probability of {chance}."
        )
    return f"{costs}: it is {'cheaper' if cheaper > 0.5 else 'more expensive'} with a probability of {chance}."


def devices_section(networks: Sequence[Network], estimators: Sequence[Estimator], allocator: str) -> Section:
    """The same models on several devices: what an iteration costs on each, and where its joules come from."""
    names = _distinct([short_name(e.profile) for e in estimators])
    charts = tuple(
        _devices_chart(f"devices-{i}", network, [e.estimate(network, allocator) for e in estimators], names)
        for i, network in enumerate(networks, 1)
    )
    words = [f"All other parts of this report are about the first device, {names[0]}."]
    if len({(e.meter.name, e.meter.measured) for e in estimators}) > 1:
        words.append("The joules come from different meters: devices compare only as well as their meters agree.")
    if not networks:
        words.append("Name a model to see what it costs on each device.")
    return Section("devices", "The devices side by side", tuple(words), charts=charts)


def _devices_chart(key: str, network: Network, estimates: Sequence[Estimate], names: Sequence[str]) -> Chart:
    pairs = list(zip(names, estimates, strict=True))
    bars = [_bar(name, estimate, 1, f"{joules_origin(estimate.meter)} joules") for name, estimate in pairs]
    cells = [
        (
            name,
            units.joules(e.joules),
            _interval(e),
            units.seconds(e.seconds),
            f"{joules_origin(e.meter)}, {e.meter.name}",
        )
        for name, e in pairs
    ]
    meters = " ".join(dict.fromkeys(joules_note(e.meter) for e in estimates))
    return Chart(
        key,
        f"One training iteration of {network.name or 'the network'} on each device",
        f"Per iteration, batch {network.batch}. Whiskers are 90 % intervals. {meters}",
        Bars(bars),
        Table(("device", ">energy", ">90 % interval", ">time", "joules"), tuple(cells)),
        full=True,
    )


def totals_section(profile: Profile, networks: Sequence[Network]) -> Section:
    """Models by a method that knows parts of layers on their own, and no layers within a network."""
    parts = PURPOSES.get(profile.observations[0].purpose, "parts of layers")
    words = [
        f"This profile was made with --method {profile.method}: it holds {parts}, measured on their own. So this "
        "report has no energy by layer, no learnt surfaces and no intervals; `ampere profile` without --method makes a "
        "profile that has them all."
    ]
    missing = [(name, why) for name, why in unavailable().items() if METHODS[name].strategy == profile.method]
    words += [f"The method {name} cannot be shown: {why}." for name, why in missing]
    found = answers(profile, networks, "tuned", profile.yardstick_seconds) if networks else {}
    charts = (_totals_chart(profile, networks, {m: a.joules.tolist() for m, a in found.items()}),) if found else ()
    facts = (("assumes", ALLOCATORS["tuned"]),) if charts else ()
    return Section("totals", "What this profile can and cannot show", tuple(words), charts=charts, facts=facts)


def _totals_chart(profile: Profile, networks: Sequence[Network], joules: dict[str, list[float]]) -> Chart:
    bars, cells = [], []
    for i, network in enumerate(networks):
        name = network.name or f"network {i + 1}"
        for method, estimates in joules.items():
            shown, by = units.joules(estimates[i]), method_name(method)
            bars.append(Bar(name, estimates[i], shown, f"{name}: {shown} by {by}", f"by {by}"))
            cells.append((name, by, title(method), shown))
    return Chart(
        "totals-models",
        "Energy of one training iteration, all layers together",
        f"The method has no interval. {joules_note(profile.meter)}",
        Bars(bars),
        Table(("model", "method", "what it is", ">energy"), tuple(cells)),
        full=True,
    )


def _interval(estimate: Estimate, parts: int = 1) -> str:
    low, high = estimate.interval
    return f"{units.joules(low / parts)} to {units.joules(high / parts)}"


def _bar(name: str, estimate: Estimate, parts: int = 1, detail: str = "") -> Bar:
    """An estimate as a bar, of an iteration or of one of its samples."""
    shown, (low, high) = units.joules(estimate.joules / parts), estimate.interval
    tip = f"{name}: {shown}, 90 % interval {_interval(estimate, parts)}"
    return Bar(name, estimate.joules / parts, shown, tip, detail, low=low / parts, high=high / parts)


def _distinct(names: Sequence[str]) -> list[str]:
    """Names that occur several times are numbered."""
    return [n if names.count(n) == 1 else f"{n} ({names[: i + 1].count(n)})" for i, n in enumerate(names)]
