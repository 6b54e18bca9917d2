"""A recording made on a simulated device, without fitting anything: what a replayed device answers from."""

from pathlib import Path

from tests.synthetic import random_chains

from ampere.core import Meter, Network, TrainingSetup
from ampere.devices.simulated import SimulatedWorker
from ampere.profiling.experiment import Experiment, of_layers
from ampere.profiling.observing import merged, observation
from ampere.storage.profile import Profile


def whole(network: Network) -> Experiment:
    """As the worker runs it: with a loss."""
    return Experiment(of_layers(network.layers, network.batch).network, {"layers": network.to_json()}, "network")


def record(path: Path, networks: list[Network] | None = None, rounds: int = 2, name: str = "xavier") -> Profile:
    device, setup = SimulatedWorker(name), TrainingSetup()
    yardstick, meter = device.yardstick(), Meter(**device.hello()["meter"])
    experiments = [whole(n) for n in networks or random_chains(1, 6)]
    experiments += [of_layers(e.network.layers[:1], 10) for e in experiments[:2]]
    seen = [
        observation(e, device.block(e.subject, setup), meter, yardstick.cpu_seconds, yardstick.joules)
        for e in experiments
        for _ in range(rounds)
    ]
    profile = Profile(
        device.identity(),
        setup,
        meter,
        yardstick.cpu_seconds,
        merged(o for o in seen if o),
        device.clock(),
        ("chains",),
        yardstick_joules=yardstick.joules,
    )
    profile.save(path)
    return profile
