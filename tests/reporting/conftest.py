"""A profile of a device that never was: networks whose true cost is known, observed with a little noise."""

from dataclasses import replace

import numpy as np
import pytest
from tests.synthetic import block, chain, conv, random_chains, true_seconds

from ampere.core import Meter, Network, TrainingSetup
from ampere.reporting import Run, make_report
from ampere.storage.profile import Observation, Profile

METER = Meter("cpu-time", False, "5 W per busy core")
YARDSTICK = 1e-3


def observed(network, purpose, noise, flags=()):
    """Three rounds."""
    seconds = true_seconds(network) * noise
    rounds = (0.99 - 0.1 * (noise - 1), 1.0, 1.02 + noise % 0.05)
    return [Observation(network, block(seconds * r, YARDSTICK, meter=METER, flags=flags), purpose) for r in rounds]


@pytest.fixture(scope="session", autouse=True)
def coarse_surfaces():
    """Each cell of a surface is an estimate; a hundred show what two thousand do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ampere.reporting.surfaces.FINEST", 10)
        yield


@pytest.fixture(scope="session")
def profile():
    rng = np.random.default_rng(3)
    networks = [(n, "network") for n in random_chains(1, 24)]
    networks += [(Network((conv(8 * i, 40 - 4 * i),), 10), "layer") for i in range(1, 6)]
    seen = [observed(n, p, float(np.exp(0.01 * rng.standard_normal()))) for n, p in networks]
    seen[3] = observed(networks[3][0], "network", 1.0, ("noisy", "loaded"))
    device = {"id": "0123456789abcdef", "cpu": "Testing <CPU>", "cores": 2, "system": "Linux"}
    return Profile(
        device, TrainingSetup(), METER, YARDSTICK, tuple(o for rounds in seen for o in rounds), 12.5, ("chains",)
    )


def named(network, name, names):
    layers = tuple(replace(layer, name=words) for layer, words in zip(network.layers, names, strict=True))
    return Network(layers, network.batch, name)


@pytest.fixture(scope="session")
def network():
    return named(chain(3, 24, 48, 16), "tidy", ["stem", "0", "</text><script>alert(1)</script>", "head"])


@pytest.fixture(scope="session")
def validation():
    rows = [
        {"network": f"n{i}", "actual": a, "again": a, "additive": 1.01 * a, "flops": 0.7 * a}
        for i, a in enumerate((0.02, 0.03, 0.05))
    ]
    mape = {"additive": 0.01, "flops": 0.3}
    return {"model": "chains", "mape": mape, "repeatability_mape": 0.02, "meter": METER.to_json(), "rows": rows}


@pytest.fixture(scope="session")
def report(profile, network):
    return make_report(profile, [network], [Run(10_000, 54_000.0, "15Wh")])
