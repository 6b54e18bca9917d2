"""Models by methods that know no layers of a network, only parts of layers that were timed alone."""

from __future__ import annotations

from collections.abc import Sequence

from ampere.core import Network, units
from ampere.core.setup import ALLOCATORS
from ampere.reporting import bars, naming
from ampere.storage.profile import Profile
from ampere.validation.methods import answers, title

from .origin import beneath
from .record import Chart, Section, Table


def whole_section(profile: Profile, networks: Sequence[Network]) -> Section:
    parts = naming.PURPOSES.get(profile.observations[0].purpose, "parts of layers")
    words = (
        f"This profile was made with --method {profile.method}: it knows {parts}, timed alone. So there is no picture "
        "of what each layer costs in a network, of what was learnt, or of how sure that is; "
        "`ampere profile` without --method makes one that has them all.",
    )
    charts = (_chart(profile, networks),) if networks else ()
    facts = (("stands for", ALLOCATORS["tuned"]),) if networks else ()
    return Section("whole", "What this profile tells, and what it cannot", words, charts=charts, facts=facts)


def _chart(profile: Profile, networks: Sequence[Network]) -> Chart:
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
