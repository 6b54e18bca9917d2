"""A profile and a network give an estimate.

Profile -> Estimator (fitted once) -> estimate(network) -> Estimate
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from math import hypot, isfinite
from typing import Any

import numpy as np

from ampere.core import Layer, Meter, Network
from ampere.core.allocations import FreshPages
from ampere.core.errors import ProfileError, UsageError
from ampere.core.kinds import USUAL_WIDTH
from ampere.devices.core_watts import CoreWatts, of_profile
from ampere.devices.opening import allocator_on
from ampere.meters import CARD_SCOPE, CpuTimeMeter, scope_at
from ampere.storage.profile import Observation, Profile

from . import kept_fits
from .additive import Additive, Answer, Data
from .batch import BatchTotals
from .drift import Condition, as_network, followed
from .estimate import Estimate, LayerShare
from .features import Array, layer_position
from .fitting import (
    Surrogate,
    busy_power,
    condition_uncertainty,
    counted,
    drift_share_in,
    few_enough,
    fit,
    fit_joules,
    partly_counted,
    power_of,
    process_spreads,
    sources_of,
)
from .hyperparameters import Hyperparameters
from .learning import one_blas_thread
from .normalization import DriftShare, NormalizedCost, costs_of, normalized, reference_of, runs_of, speed_spread
from .page_faults import LEAST_LEFT, page_faults_in
from .power import Power
from .sequential import Sequential
from .thread_counts import borrowed, only_elsewhere

NONPARAMETRIC = ("nonparametric", "")  # of any size
OCTAVES_BEYOND = 1.0  # how far outside the measured sizes a layer may lie before it is called extrapolated
MOST_RUNS, MOST_LAYERS_OF_RUNS = 200, 2_000  # recorded runs that are learnt from, and their different layers


class Estimator:
    """Estimates networks with one profile. The profile is fitted once, then used for many networks."""

    def __init__(self, profile: Profile, watts_per_core: float | CoreWatts | None = None) -> None:
        """`watts_per_core` replaces the profile's own, where its joules are modelled from CPU time."""
        self._named_watts = watts_per_core
        cores = watts_per_core if isinstance(watts_per_core, CoreWatts) else None
        watts = watts_per_core.watts if isinstance(watts_per_core, CoreWatts) else watts_per_core
        self.profile, self.meter = profile, profile.meter
        with usable_fit(profile):
            seen = normalized(few_enough(profile).observations, reference_of(profile))
            self.page_faults = page_faults_in(seen)
            self.costs = self.page_faults.at_usual(seen)
            if watts is not None:
                self.meter = cores.meter(profile.meter) if cores else _modelled(profile, watts)
                self.costs = tuple(replace(c, joules=watts * c.busy_seconds) for c in self.costs)
            self._watts, self._wall = _watts(self.costs, profile), _wall_seconds(self.costs, profile)
            self._process_spreads = process_spreads(self.costs) if profile.timing == "yardstick" else {}
            self.machine_spread = speed_spread(profile.observations, reference_of(profile))
            self.condition = Condition()  # of the device, relative to when it was profiled
            name = kept_fits.name_of(profile.seal, watts) if profile.seal else ""
            try:
                self._take(*kept_fits.read(name))
            except (KeyError, TypeError, ValueError):  # none, or not one that was written here
                self._fit_all()
                if name and (fitted := self._fitted()):
                    kept_fits.write(name, *fitted)

    def _fit_all(self) -> None:
        profile = self.profile
        self._borrowed = borrowed(profile, self.costs)
        self._fit(self.costs)
        own = [observation for part in profile.parts for observation in part.observations]
        self._ranges = _measured_ranges([*own, *_of_sources(profile)])
        self.drift_share = drift_share_in(self.costs, reference_of(profile))
        read = self._joules_model and not busy_power(self.costs)  # joules that were read are in the reference already
        self.condition_uncertainty = 0.0 if read else condition_uncertainty(self.costs, reference_of(profile))
        if runs := newest(runs_of(profile)):
            self._learn_from_runs(runs)

    def _fit(self, costs: Sequence[NormalizedCost]) -> None:
        costs = (*costs, *self._borrowed)
        self.model: Surrogate = fit(self.profile, costs)  # of seconds
        self._joules_model = fit_joules(self.profile, costs) if counted(costs) else None
        self._power = power_of(costs) if partly_counted(costs) else None

    def _fitted(self) -> tuple[dict[str, Any], dict[str, Array]] | None:
        """The fit as numbers and arrays, to be kept; None of one that starts from other devices or is the paper's."""
        models = {"seconds": self.model, "joules": self._joules_model}
        arrays: dict[str, dict[str, Array]] = {"power": self._power.arrays()} if self._power else {}
        numbers: dict[str, Any] = {
            "drift_share": self.drift_share,
            "condition_uncertainty": self.condition_uncertainty,
            "condition": self.condition,
            "ranges": [[*family, *(np.asarray(end).tolist() for end in ends)] for family, ends in self._ranges.items()],
        }
        for unit, model in models.items():
            if type(model) not in (Additive, type(None)):
                return None
            if isinstance(model, Additive):
                data = model.data
                arrays[unit] = {**model.arrays(), "costs": data.costs, "noise": data.noise, "system": data.system}
                numbers[unit] = model.hyper.to_json()
        return numbers, {f"{part}/{name}": array for part, of in arrays.items() for name, array in of.items()}

    def _take(self, numbers: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Use a fit that was kept."""
        parts: dict[str, dict[str, Array]] = {}
        for place, array in arrays.items():
            part, _, name = place.partition("/")
            parts.setdefault(part, {})[name] = array
        networks = tuple(cost.network for cost in self.fitted_costs)

        def model(unit: str) -> Additive:
            of = parts[unit]
            data = Data(networks, of["costs"], of["noise"], of["system"])
            return Additive(data, Hyperparameters.from_json(numbers[unit]), kept=of)

        self.model = model("seconds")
        self._joules_model = model("joules") if "joules" in parts else None
        self._power = Power.from_arrays(parts["power"]) if "power" in parts else None
        self.drift_share = DriftShare(*numbers["drift_share"])
        self.condition_uncertainty = numbers["condition_uncertainty"]
        self.condition = Condition(*numbers["condition"])
        self._ranges = {
            (kind, name): (np.asarray(low), np.asarray(high)) for kind, name, low, high in numbers["ranges"]
        }

    @cached_property
    def fitted_costs(self) -> tuple[NormalizedCost, ...]:
        """What the fit is of, in its order, as it was measured: in a run, or on other numbers of threads."""
        runs = [replace(run, purpose="network") for run in newest(runs_of(self.profile))]
        elsewhere = [cost for _, costs in only_elsewhere(self.profile, self.costs) for cost in costs]
        return (*self.costs, *runs, *elsewhere)

    def _learn_from_runs(self, runs: Sequence[NormalizedCost]) -> None:
        conditions = followed(runs, self._in_reference)
        self._fit((*self.costs, *(as_network(run, c) for run, c in zip(runs, conditions, strict=True))))
        self.condition = conditions[-1]

    def _in_reference(self, run: NormalizedCost) -> tuple[float, float]:
        """Joules of a run's network at the profile's own watts, which a run's joules are at too."""
        answer = self.estimate(run.network, run.allocator, 1.0)
        return answer.joules * self.own_watts_share, answer.stddev * self.own_watts_share

    @cached_property
    def own_watts_share(self) -> float:
        """The profile's own watts, relative to those of the estimates."""
        return watts_of(self.profile) / self._watts

    def on(self, profile: Profile) -> Estimator:
        """An estimator at the same watts with another profile of the same device."""
        return Estimator(profile, self._named_watts)

    @property
    def watts(self) -> float:
        """Joules for a second of the clock that the model is fitted to, as measured or modelled by the meter."""
        return self._watts

    @property
    def counted(self) -> bool:
        """Whether joules come from a counter, and not from time."""
        return self._joules_model is not None

    @property
    def of_joules(self) -> tuple[Surrogate, float]:
        """The surrogate that joules are estimated with, and the joules for one unit of its cost."""
        return (self._joules_model, 1.0) if self._joules_model else (self.model, self._watts)

    def totals(self, allocator: str = "system") -> Callable[[Sequence[Network]], Array]:
        """A fast function from networks to joules of an iteration: the totals of `estimate`, without uncertainty."""
        system = self.allocator(allocator) == "system"
        model, joules = self.of_joules
        joules *= self.condition.factor
        if isinstance(model, Additive):
            batch = BatchTotals(model, system)
            return lambda networks: batch(networks) * joules
        return lambda networks: np.array([model.answer(network, system).seconds * joules for network in networks])

    def prepare(self, networks: Sequence[Network]) -> None:
        """Computes the layers of several networks together: each of their estimates is then a few sums."""
        with usable_fit(self.profile):
            for model in (self.model, self._joules_model):
                if isinstance(model, Additive):
                    model.posteriors_of([layer for network in networks for layer in network.layers])

    def allocator(self, requested: str) -> str:
        """The allocator that estimates are for. Only the additive method profiles any but the tuned one."""
        return allocator_on(self.profile.device, requested if self.profile.method == "additive" else "tuned")

    def estimate(
        self,
        network: Network,
        allocator: str = "system",
        condition: float | None = None,
        fresh_pages: FreshPages | None = None,
    ) -> Estimate:
        """The estimate for one network.

        `condition` is a step's cost relative to when the device was profiled; None takes it from recorded runs.
        `fresh_pages` are what the model of the allocator counts in a step; None takes the network's, or usual ones.
        """
        present = self.condition if condition is None else Condition(condition)
        with usable_fit(self.profile):
            followed = network.fresh_pages if fresh_pages is None else fresh_pages
            found = self._estimate(network, allocator, present, followed)
            if not all(map(isfinite, (found.joules, found.stddev, found.seconds, found.net_joules or 0.0))):
                raise ValueError(f"{network.name or 'a network'} would cost {found.joules:g} J")
        return found

    def _estimate(self, network: Network, allocator: str, present: Condition, pages: FreshPages | None) -> Estimate:
        condition = present.factor
        allocator = self.allocator(allocator)
        step = answer = self.model.answer(network, allocator == "system")
        by_lot = 0.0
        if allocator == "system":
            by_lot = self.page_faults.stddev(network, pages) / step.seconds
            condition *= max(LEAST_LEFT, 1 + self.page_faults.beyond_usual(network, pages) / step.seconds)
        joules = self._watts * condition
        if self._joules_model:
            answer, joules = self._joules_model.answer(network, allocator == "system"), condition
        place = {layer: index for index, layer in enumerate(answer.layers)}
        shares = []
        for layer in network.layers:
            index = place[layer]
            cost, stddev = float(answer.layer_seconds[index]) * joules, float(answer.layer_stddevs[index]) * joules
            shares.append(LayerShare(layer.name, layer.kind, cost, stddev))
        shares.append(LayerShare("(step)", "step", answer.step_seconds * joules, 0.0))
        unprofiled, extrapolated = self._unprofiled_and_extrapolated(network)
        shared = self._shared_stddev(network, step, present)
        return Estimate(
            network=network.name,
            joules=answer.seconds * joules,
            stddev=hypot(answer.stddev, answer.seconds * shared, answer.seconds * by_lot) * joules,
            seconds=step.seconds * self._wall * condition,
            layers=tuple(shares),
            unprofiled=unprofiled,
            extrapolated=extrapolated,
            meter=self.meter,
            allocator=allocator,
            condition=present.factor,
            watts_idle=self.profile.watts_idle,
            setup=self.profile.setup,
            batch=network.batch,
            device=self.profile.device_name,
            process_spread=self._process_spreads.get(allocator),
            machine_spread=self.machine_spread,
        )

    def _shared_stddev(self, network: Network, step: Answer, present: Condition) -> float:
        """Relative uncertainty that all layers share: of the condition, and of power that few windows were read for."""
        power = self._power.watts([network], np.array([step.seconds]))[1][0] if self._power else 0.0
        return hypot(self.condition_uncertainty, present.stddev, float(power))

    def _unprofiled_and_extrapolated(self, network: Network) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of layers of kinds that were never measured, and of layers far outside the measured sizes."""
        unprofiled, extrapolated = [], []
        if isinstance(self.model, Sequential):
            found = self.model.unprofiled(network), self.model.extrapolated(network)
            return tuple(x.name or x.kind for x in found[0]), tuple(x.name or x.kind for x in found[1])
        families = [_family(layer) for layer in network.layers]
        within = np.ones(len(families), dtype=bool)
        for family in {*families} & {*self._ranges} - {NONPARAMETRIC}:
            rows = [row for row, each in enumerate(families) if each == family]
            within[rows] = _within([network.layers[row] for row in rows], self._ranges[family])
        for layer, family, near in zip(network.layers, families, within.tolist(), strict=True):
            if family not in self._ranges:
                unprofiled.append(layer.name or layer.kind)
            elif not near:
                extrapolated.append(layer.name or layer.kind)
        return tuple(dict.fromkeys(unprofiled)), tuple(dict.fromkeys(extrapolated))


@contextmanager
def usable_fit(profile: Profile) -> Iterator[None]:
    """Turn a fit that fails, or is not finite, into a ProfileError: each number is possible, but not all together."""
    try:
        with np.errstate(all="ignore"), one_blas_thread():
            yield
    except (ArithmeticError, RuntimeError, ValueError) as error:
        raise ProfileError(
            f"the profile of {profile.device['id']:.60} cannot be used: its measurements do not fit together "
            f"({error!s:.100}): profile again with `ampere profile`, or use another profile"
        ) from error


def newest(runs: Sequence[NormalizedCost]) -> list[NormalizedCost]:
    """The newest runs, as many as are estimated in a second; the device's condition follows the last few anyway."""
    layers: set[Layer] = set()
    kept: list[NormalizedCost] = []
    for run in reversed(runs[-MOST_RUNS:]):
        layers.update(run.network.layers)
        if kept and len(layers) > MOST_LAYERS_OF_RUNS:
            break
        kept.insert(0, run)
    return kept


def _family(layer: Layer) -> tuple[str, str]:
    """The key of a measured range: the layer kind, with the class of an opaque module or an operation's name."""
    named = {"opaque": "class", "operation": "op"}.get(layer.kind)
    return layer.kind, str(layer.config.get(named, "")) if named else ""


def _of_sources(profile: Profile) -> list[Observation]:
    return [observation for source in sources_of(profile) for observation in source.observations]


def _measured_ranges(observations: Sequence[Observation]) -> Mapping[tuple[str, str], tuple[Any, Any]]:
    positions: dict[tuple[str, str], list[Any]] = {NONPARAMETRIC: []}
    for observation in observations:
        for layer in observation.network.layers:
            positions.setdefault(_family(layer), []).append(layer_position(layer, USUAL_WIDTH))
    return {k: (np.min(p, axis=0), np.max(p, axis=0)) if p else (0, 0) for k, p in positions.items()}


def _within(layers: Sequence[Layer], measured: tuple[Any, Any]) -> Any:
    """Whether each of some layers of a family is near the measured sizes."""
    positions = np.array([layer_position(layer, USUAL_WIDTH) for layer in layers])
    low, high = measured
    return np.all((positions >= low - OCTAVES_BEYOND) & (positions <= high + OCTAVES_BEYOND), axis=1)


def watts_of(profile: Profile) -> float:
    """Joules for a second of busy time where a yardstick was paired, of wall time where there was none."""
    return _watts(costs_of(profile), profile)


def _watts(costs: Sequence[NormalizedCost], profile: Profile) -> float:
    ratios = [c.joules / (c.ratio * profile.yardstick_seconds) for c in costs]
    return float(np.median(ratios)) if ratios else 1.0


def _modelled(profile: Profile, watts_per_core: float) -> Meter:
    if profile.meter.measured or profile.yardstick_joules is not None:
        raise UsageError(f"the profile's joules were read from {profile.meter.name}: leave out --watts-per-core")
    if profile.meter.scope.endswith(CARD_SCOPE):
        return replace(profile.meter, scope=scope_at(profile.meter.scope, watts_per_core))
    return Meter(**CpuTimeMeter(watts_per_core).describe())


def _wall_seconds(costs: Sequence[NormalizedCost], profile: Profile) -> float:
    """Wall seconds for a second of cost on an idle machine: the lower quartile of all measurements."""
    ratios = [c.seconds / (c.ratio * profile.yardstick_seconds) for c in costs]
    return float(np.quantile(ratios, 0.25)) if ratios else 1.0


def estimator_for(profile: Profile, watts_per_core: float | None = None) -> Estimator:
    """The estimator of a profile, with what is known of the device's cores where joules are modelled by the default."""
    cores = of_profile(profile.device, profile.meter) if watts_per_core is None else None
    return Estimator(profile, cores or watts_per_core)
