"""What a runtime can and cannot do on a device, checked before anything is trained."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ampere.core import Network, TrainingSetup
from ampere.core.errors import ModelError, RuntimeMissingError, UsageError
from ampere.core.setup import CPU
from ampere.devices import Device
from ampere.runtimes import Description
from ampere.runtimes.table import lacking, refusal

from .experiment import Experiment, from_layers
from .sources import FlaxSource, ModelSource, Source


def check_setup(device: Device, setup: TrainingSetup) -> Description:
    """What the runtime can train, once it is certain that the device has it, and it the dtype and the optimizer."""
    description = device.capabilities(setup.runtime)
    if setup.on != CPU and not description.accelerators:
        raise UsageError(f"{setup.runtime} trains on the CPU only: leave out --on, or use --runtime torch")
    dtypes = description.dtypes + (description.accelerator_dtypes if setup.on.startswith("cuda") else ())
    wanted = (("--dtype", setup.dtype, dtypes), ("--optimizer", setup.optimizer, description.optimizers))
    for option, asked, offered in wanted:
        if asked not in offered:
            raise UsageError(
                f"{setup.runtime} has no {asked}: choose {option} {' or '.join(offered)}, or --runtime torch"
            )
    there, foreign = device.runtimes, device.foreign_capabilities is not None
    if setup.runtime in there or (setup.runtime == "torch" and not foreign):  # which says by itself that it is missing
        return description
    if foreign or not device.is_real:
        raise UsageError(f"{device.spec} trains with {', '.join(there)}, not with {setup.runtime}: leave out --runtime")
    packages = " ".join(description.packages)
    raise RuntimeMissingError(
        description.install if device.is_local else f"{device.spec} lacks {setup.runtime}: pip install {packages} there"
    )


def built_by(device: Device, runtime: str, source: Source) -> Source:
    """The source as the runtime can train it: by a model's own code, or else built from its layers."""
    description = device.capabilities(runtime)
    if description.factories:
        if isinstance(source, FlaxSource):
            source.original()  # refuses what is known by its own code only, which is no PyTorch
        return source
    check_builds(source.original().network, source.name, runtime, description)
    return FromLayers(source, with_program=runtime == "torch")


def check_builds(network: Network, name: str, runtime: str, description: Description) -> None:
    lacks = [] if description.factories else lacking(network, description)
    if lacks:
        raise ModelError(f"{refusal(runtime, lacks)} of {name}: choose another --runtime, such as torch")


def itself(device: Device, runtime: str, source: Source) -> Experiment:
    """The model by its own code where the runtime can run that, else built from its layers."""
    if isinstance(source, FlaxSource) and source.has_code and runs_own_code(device, runtime, flax=True):
        return source.by_own_code()
    return built_by(device, runtime, source).original()


def runs_own_code(device: Device, runtime: str, flax: bool) -> bool:
    """Whether the runtime trains a model by its own code there. A user's file does not travel."""
    description = device.capabilities(runtime)
    return description.flax and device.is_local if flax else description.factories


class FromLayers:
    """The same networks, each built from the description of its layers; a model itself from its program."""

    def __init__(self, source: Source, with_program: bool = False) -> None:
        self.name, self._source, self._with_program = source.name, source, with_program

    def original(self) -> Experiment:
        original = self._source.original()
        program = self._source.program if self._with_program and isinstance(self._source, ModelSource) else {}
        return replace(original, workload={"layers": original.network.to_json(), **program})

    def sample(self, rng: Random) -> Experiment:
        found = self._source.sample(rng)
        return found if "layers" in found.workload else from_layers(found.network, found.purpose)

    def opaque(self) -> list[Experiment]:
        """Refused before, by name."""
        return []
