"""An estimate: the joules of one training step, layer by layer, with an interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ampere.core import Meter, TrainingSetup, units
from ampere.core.display import frame, html_table

from .interval import interval90
from .memory import MemoryEstimate

if TYPE_CHECKING:
    from .training_run import TrainingRun

COVERS = "the training step: forward, loss, backward, optimiser; not loading data, evaluation or checkpoints"


@dataclass(frozen=True)
class LayerShare:
    """A layer's joules in one training step."""

    name: str
    kind: str
    joules: float
    stddev: float


@dataclass(frozen=True)
class Touch:
    """The two figures that an estimate combines: what the layers say, and what the model's own code showed."""

    layers_joules: float
    layers_stddev: float
    code_joules: float
    code_stddev: float
    processes: int  # that trained it

    @property
    def factor(self) -> float:
        """What the code costs, relative to its description."""
        return self.code_joules / self.layers_joules

    def scaled(self, factor: float) -> Touch:
        joules = {name: value * factor for name, value in vars(self).items() if name != "processes"}
        return replace(self, **joules)

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "factor": self.factor}


@dataclass(frozen=True)
class Estimate:
    """The joules of one training iteration. The layers and the fixed cost of a step sum to the total."""

    network: str
    joules: float
    stddev: float
    seconds: float
    layers: tuple[LayerShare, ...]
    unprofiled: tuple[str, ...]  # layers of kinds that were never measured: estimated from physics alone
    extrapolated: tuple[str, ...]  # layers far outside the sizes that were measured
    meter: Meter
    allocator: str
    condition: float = 1.0  # a step's cost now, relative to the reference condition
    watts_idle: float | None = None  # power of the device at rest; None where it was not read
    setup: TrainingSetup = field(default_factory=TrainingSetup)  # how the network is trained
    batch: int = 1
    device: str = ""  # its processor, or its id where that is not known
    process_spread: float | None = None  # relative standard deviation between processes that train the same network
    machine_spread: float | None = None  # of the device's speed while it was profiled; not in the interval
    touch: Touch | None = None  # where the model's own code was trained
    run: TrainingRun | None = None  # of the whole run, where one was asked about
    follow_memory: Callable[[], MemoryEstimate | None] = field(default=lambda: None, repr=False, compare=False)

    @property
    def memory(self) -> MemoryEstimate | None:
        """Peak memory of training, found when it is first asked for; None where only layers' costs are known."""
        return self.follow_memory()

    @property
    def net_joules(self) -> float | None:
        """Joules above those of an idle device over the same time; None where idle power was not read."""
        return None if self.watts_idle is None else self.joules - self.watts_idle * self.seconds

    @property
    def interval(self) -> tuple[float, float]:
        """The joules that 90 % of measurements should lie between."""
        return interval90(self.joules, self.stddev)

    @property
    def watts_interval(self) -> tuple[float, float] | None:
        """Beside the interval: joules if all modelled watts are too high or too low; None where joules were read."""
        factor = self.meter.factor
        return None if self.meter.measured or factor == 1 else (self.joules / factor, self.joules * factor)

    @property
    def uncertainty(self) -> dict[str, float | None]:
        """Relative standard deviations: of the model's cost, between processes, and of the machine's own speed.

        The interval is that of the model's cost. One process differs from the next, and the machine from itself at
        another hour, by the other two.
        """
        return {
            "model": self.stddev / self.joules if self.joules else None,
            "processes": self.process_spread,
            "machine": self.machine_spread,
        }

    def scaled(self, factor: float) -> Estimate:
        """The same step where everything costs `factor` times as much."""
        return replace(
            self,
            joules=self.joules * factor,
            stddev=self.stddev * factor,
            seconds=self.seconds * factor,
            layers=tuple(replace(x, joules=x.joules * factor, stddev=x.stddev * factor) for x in self.layers),
            touch=self.touch and self.touch.scaled(factor),
        )

    def total_joules(self, iterations: float) -> float:
        """The joules of this many iterations."""
        return self.joules * iterations

    def to_json(self) -> dict[str, Any]:
        return {
            "network": self.network,
            "joules_per_iteration": self.joules,
            "joules_net_of_idle_per_iteration": self.net_joules,
            "joules_stddev": self.stddev,
            "joules_interval90": list(self.interval),
            "joules_watts_interval": self.watts_interval and list(self.watts_interval),
            "uncertainty": self.uncertainty,
            "seconds_per_iteration": self.seconds,
            "layers": [vars(share) for share in self.layers],
            "unprofiled": list(self.unprofiled),
            "extrapolated": list(self.extrapolated),
            "meter": self.meter.to_json(),
            "allocator": self.allocator,
            "condition": self.condition,
            "setup": self.setup.to_json(),
            "batch": self.batch,
            "device": self.device,
            "touch": self.touch and self.touch.to_json(),
            "covers": COVERS,
        }

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each layer."""
        return frame([vars(share) for share in self.layers])

    def _repr_html_(self) -> str:
        low, high = self.interval
        energy = f"{units.joules(self.joules)} per iteration (90 %: {units.joules(low)} to {units.joules(high)})"
        setup = self.setup
        threads = f"{setup.threads} thread{'s' if setup.threads > 1 else ''}" if setup.on == "cpu" else f"on {setup.on}"
        how = f"{self.setup.runtime}, {self.setup.optimizer}, {self.setup.dtype}, {threads}, batch {self.batch}"
        headline = f"{self.network or 'network'}: {energy}, {units.seconds(self.seconds)}; {how}; {self.device}"
        return html_table(headline, [vars(share) for share in self.layers])
