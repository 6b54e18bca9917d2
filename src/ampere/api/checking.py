"""A gate for changes: is training more expensive than its baseline, by more than noise explains?

r    joules of the model now over those of the baseline, both estimated together with one profile, so that the speed of
     the machine and the uncertainty of layers that did not change cancel

fails    where r > 1 + allowed, and the whole 90 % interval of r lies above 1
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import hypot
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.comparison import compare as compare_networks
from ampere.comparison.ranking import ratio_interval
from ampere.core import Meter, Network, TrainingSetup, units
from ampere.core.errors import MoreExpensive, ProfileError, UsageError
from ampere.storage.checks import MOST_LAYERS, check_count, check_network, checked
from ampere.storage.files import is_document, loads, read_at_most, read_document, write_document

from .models import Model, resolve
from .options import OptionKeywords, Options
from .profiles import ProfiledEstimate, ensure_profile

if TYPE_CHECKING:
    from typing_extensions import Unpack

KIND, FORMAT = "baseline", 1
MOST_BYTES = 50_000_000
NOW, BEFORE = "now", "baseline"
MAX_INCREASE = 0.05


@dataclass(frozen=True)
class EnergyCheck:
    """What training costs now, compared with its baseline."""

    model: str
    joules: float  # of an iteration, or of an example where batches differ
    baseline_joules: float
    ratio: float
    interval: tuple[float, float]  # 90 %, of the ratio
    max_increase: float
    per: str
    meter: Meter
    device: str
    setup: TrainingSetup

    @property
    def passed(self) -> bool:
        """Whether it costs no more than allowed, or no more than noise explains."""
        return self.ratio <= 1 + self.max_increase or self.interval[0] <= 1

    @property
    def sentence(self) -> str:
        low, high = (units.signed_percent(bound - 1) for bound in self.interval)
        change = f"{self.model} costs {units.joules(self.joules)} per {self.per}, {_change(self.ratio)}"
        allowed = f"{units.percent(self.max_increase)} more is allowed"
        if self.passed and self.ratio > 1 + self.max_increase:
            allowed += ", but noise may explain it"
        return f"{change} than its baseline of {units.joules(self.baseline_joules)} (90 %: {low} to {high}); {allowed}"

    def to_json(self) -> dict[str, Any]:
        return {
            **vars(self),
            "interval": list(self.interval),
            "meter": self.meter.to_json(),
            "setup": self.setup.to_json(),
            "passed": self.passed,
            "sentence": self.sentence,
        }

    def to_markdown(self) -> str:
        """A summary for a pull request."""
        low, high = (units.signed_percent(bound - 1) for bound in self.interval)
        mark = "passed" if self.passed else "FAILED"
        origin = "simulated" if self.meter.simulated else "measured" if self.meter.measured else "modelled"
        name, allowed = self.model.replace("|", "\\|").replace("`", "'"), units.signed_percent(self.max_increase)
        return (
            f"### Energy of training: {mark}\n\n"
            f"| model | baseline | now | change | 90 % | allowed |\n|---|---:|---:|---:|---:|---:|\n"
            f"| {name} | {units.joules(self.baseline_joules)} | {units.joules(self.joules)} "
            f"| {units.signed_percent(self.ratio - 1)} | {low} to {high} | {allowed} |\n\n"
            f"Joules per {self.per}, {origin} by {self.meter.name}, on {self.device}.\n"
        )

    def raise_if_failed(self) -> None:
        if not self.passed:
            raise MoreExpensive(f"{self.sentence}: make it cheaper, or accept it with `ampere check --write`")


def _change(ratio: float) -> str:
    return f"{units.percent(abs(ratio - 1))} {'more' if ratio >= 1 else 'less'}"


def check(
    model: Model,
    baseline: Path | str,
    inputs: Any = None,
    *,
    max_increase: float = MAX_INCREASE,
    write: bool = False,
    **options: Unpack[OptionKeywords],
) -> EnergyCheck:
    """Whether training a model costs more than its baseline, by more than `max_increase` and than noise explains.

    `baseline` is a file that `write=True` makes, with the layers of the model as it is then: both are estimated on the
    device at hand, whichever it is. A file of `ampere estimate --json` is compared by its joules, on the same device
    only. Nothing is raised where it costs too much: `passed` says so, and `raise_if_failed()` raises. The other
    keywords are those of `estimate`.
    """
    if not 0 <= max_increase < 100:
        raise UsageError(f"max_increase is {max_increase:g}, but must be a share such as 0.05")
    path, subject = Path(baseline), resolve(model, inputs)
    if not write and not path.exists():
        raise UsageError(f"{path} does not exist: make it with `ampere check MODEL --baseline {path} --write`")
    with Options(**options).opened() as asked:
        known = ensure_profile(subject, asked)
        if write:
            write_baseline(path, known)
        name = known.network.name or subject.name
        if is_document(path, KIND):
            return _together(name, known, path, asked.allocator, max_increase)
        return _by_joules(name, known, path, max_increase)


def write_baseline(path: Path, known: ProfiledEstimate) -> None:
    """The layers of a model, how they are trained, and for readers what they cost when they were written."""
    estimate = known.estimate
    body = {"network": known.network.to_json(), "setup": estimate.setup.to_json(), "joules": estimate.joules}
    write_document(path, KIND, FORMAT, {**body, "device": estimate.device, "meter": estimate.meter.to_json()})


def _together(name: str, known: ProfiledEstimate, path: Path, allocator: str, max_increase: float) -> EnergyCheck:
    before = _network(path, known.estimate.setup)
    networks = [replace(known.network, name=NOW), replace(before, name=BEFORE)]
    compared = compare_networks(networks, [known.estimator], allocator)
    [device] = compared.devices
    pair, entry = device.pair(NOW, BEFORE), device.entry(NOW)
    figures = entry.joules, device.entry(BEFORE).joules, pair.ratio, pair.interval
    return EnergyCheck(
        name, *figures, max_increase, compared.per, entry.estimate.meter, known.estimate.device, known.estimate.setup
    )


def _network(path: Path, setup: TrainingSetup) -> Network:
    record = read_document(path, KIND, FORMAT)
    with checked(str(path)):
        check_count(len(record["network"]["layers"]), MOST_LAYERS, "layers")
        network, made_with = Network.from_json(record["network"]), TrainingSetup.from_json(record["setup"])
        check_network(network)
    for field in ("runtime", "optimizer", "dtype", "on"):
        was, now = getattr(made_with, field), getattr(setup, field)
        if was != now:
            raise UsageError(f"{path} was written with {field} {was}, not {now}: use the same, or write it again")
    return network


def _by_joules(name: str, known: ProfiledEstimate, path: Path, max_increase: float) -> EnergyCheck:
    """Compared with joules of an estimate that was made before: both uncertainties count."""
    estimate = known.estimate
    try:
        record = loads(read_at_most(path, MOST_BYTES).decode())
        before, stddev = float(record["joules_per_iteration"]), float(record["joules_stddev"])
        batch, device, scope = int(record["batch"]), str(record["device"]), str(record["meter"]["scope"])
        if not (before > 0 and stddev >= 0):
            raise ValueError("its joules are impossible")
    except (KeyError, TypeError, ValueError) as error:
        raise ProfileError(
            f"{path} is no baseline ({type(error).__name__}: {error}): make one with `ampere check MODEL --baseline "
            f"{path} --write`"
        ) from None
    if (device, scope) != (estimate.device, estimate.meter.scope):
        raise UsageError(
            f"{path} holds joules of {device} ({scope}), not of {estimate.device} ({estimate.meter.scope}): make a "
            "baseline that can be compared with `ampere check --write`"
        )
    per_example = batch != estimate.batch
    now, before = estimate.joules / (estimate.batch if per_example else 1), before / (batch if per_example else 1)
    spread = hypot(estimate.stddev / estimate.joules, stddev / float(record["joules_per_iteration"]))
    spread = hypot(spread, estimate.machine_spread or 0.0)
    return EnergyCheck(
        name, now, before, now / before, ratio_interval(now / before, spread), max_increase,
        "example" if per_example else "iteration", estimate.meter, estimate.device, estimate.setup,
    )  # fmt: skip
