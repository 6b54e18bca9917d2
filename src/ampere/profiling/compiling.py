"""What compiling will take, so that the planner can weigh it: a new shape is dear, one that is compiled is free."""

from __future__ import annotations

from ampere.profiles.profile import Observation

from .experiment import Experiment

LAYERS_BESIDES = 0.3  # what is compiled with every network, told in layers: the loss, and the program itself
FIRST_GUESS = 0.25  # seconds a layer


class Compiling:
    def __init__(self, compiles: bool) -> None:
        self._compiles = compiles
        self._seconds = self._layers = 0.0
        self._known: set[tuple[object, ...]] = set()

    @property
    def spent(self) -> float:
        """Seconds, in all."""
        return self._seconds

    @property
    def informed(self) -> bool:
        """Whether it is more than a guess what compiling takes."""
        return not self._compiles or self._seconds > 0

    def learn(self, seen: Observation) -> None:
        self._known.add((seen.network, seen.measurement.allocator))
        seconds = seen.measurement.conditions.get("compile_seconds", 0.0)
        if seconds:
            self._seconds += seconds
            self._layers += len(seen.network.layers) + LAYERS_BESIDES

    def seconds(self, experiment: Experiment) -> float:
        """Of a block of it, from now on."""
        return 0.0 if not self._compiles or self.knows(experiment) else self.seconds_of_new(experiment)

    def knows(self, experiment: Experiment) -> bool:
        """Whether it is compiled already."""
        return self._compiles and (experiment.network, experiment.allocator) in self._known

    def seconds_of_new(self, experiment: Experiment) -> float:
        each = self._seconds / self._layers if self._layers else FIRST_GUESS
        return each * (len(experiment.network.layers) + LAYERS_BESIDES)
