"""What a runtime can and cannot do, said before anything is trained."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ampere.core import Network, TrainingSetup
from ampere.core.errors import ModelError, RuntimeMissingError, UsageError, WorkerError
from ampere.devices import describe
from ampere.devices.opening import LOCAL
from ampere.meters import DEFAULT_WATTS_PER_CORE
from ampere.runtimes import Description, description_of
from ampere.runtimes.table import lacking, refusal

from .experiment import Experiment
from .sources import FlaxSource, Source


def check_setup(on: str, setup: TrainingSetup) -> Description:
    """That the device has the runtime, and the runtime the type and the optimiser; what the runtime is."""
    description = known(on, setup.runtime)
    wanted = (("--dtype", setup.dtype, description.dtypes), ("--optimizer", setup.optimizer, description.optimizers))
    for option, asked, offered in wanted:
        if asked not in offered:
            raise UsageError(
                f"{setup.runtime} has no {asked}: choose {option} {' or '.join(offered)}, or --runtime torch"
            )
    told = describe(on, DEFAULT_WATTS_PER_CORE)
    there, foreign = told.runtimes, told.abilities is not None
    if setup.runtime in there or (setup.runtime == "torch" and not foreign):  # which says by itself that it is missing
        return description
    if foreign or on.partition(":")[0] in ("simulated", "replayed"):
        raise UsageError(f"{on} trains with {', '.join(there)}, not with {setup.runtime}: leave out --runtime")
    packages = " ".join(description.packages)
    raise RuntimeMissingError(
        description.install if on == "local" else f"{on} lacks {setup.runtime}: pip install {packages} there"
    )


def known(on: str, runtime: str) -> Description:
    foreign = describe(on, DEFAULT_WATTS_PER_CORE).abilities
    if foreign is not None:
        return foreign
    try:
        return description_of(runtime)
    except WorkerError as problem:
        raise (RuntimeMissingError if problem.type == "runtime_missing" else UsageError)(str(problem)) from None


def built_by(on: str, runtime: str, source: Source) -> Source:
    """The source as the runtime can train it: by a model's own code, or else built from its layers."""
    description = known(on, runtime)
    if description.factories:
        if isinstance(source, FlaxSource):
            source.original()  # refuses what is known by its own code only, which is no PyTorch
        return source
    check_builds(source.original().network, source.name, runtime, description)
    return FromLayers(source)


def check_builds(network: Network, name: str, runtime: str, description: Description) -> None:
    lacks = [] if description.factories else lacking(network, description)
    if lacks:
        raise ModelError(f"{refusal(runtime, lacks)} of {name}: choose another --runtime, such as torch")


def itself(on: str, runtime: str, source: Source) -> Experiment:
    """The model by its own code where the runtime can run that, else built from its layers."""
    if isinstance(source, FlaxSource) and runs_own_code(on, runtime, flax=True):
        return source.by_own_code()
    return built_by(on, runtime, source).original()


def runs_own_code(on: str, runtime: str, flax: bool) -> bool:
    """A user's file does not travel."""
    description = known(on, runtime)
    return description.flax and on == LOCAL if flax else description.factories


class FromLayers:
    """The same networks, each built from the description of its layers."""

    def __init__(self, source: Source) -> None:
        self.name, self._source = source.name, source

    def original(self) -> Experiment:
        return _described(self._source.original())

    def sample(self, rng: Random) -> Experiment:
        return _described(self._source.sample(rng))

    def opaque(self) -> list[Experiment]:
        """Refused before, by name."""
        return []


def _described(experiment: Experiment) -> Experiment:
    return replace(experiment, subject={"layers": experiment.network.to_json()})
