"""Profiles, networks and a validation -> a report, in the order in which people ask; and the report on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ampere.core import Meter, Network
from ampere.core.errors import UsageError
from ampere.estimation.estimate import Estimate
from ampere.estimation.estimator import Estimator, estimator_for
from ampere.estimation.fitting import BY_LAYER
from ampere.storage.files import write_whole
from ampere.storage.profile import Profile

from .accuracy import Validated, accuracy_section, expected_error, methods_section, read_validation
from .comparison_section import devices_section, models_section, totals_section
from .device_section import batches_of, cost_section, device_name, facts, flags_section, more_facts
from .layer_charts import kind_colours
from .model_section import Run, model_section
from .page import html
from .plotting import need_matplotlib, save_chart
from .record import Report, Section
from .surfaces import surfaces_section
from .words import joules_origin

FORMATS = ("html", "svg", "png")
GROUPS = ("block", "layer")


@dataclass(frozen=True)
class WrittenReport:
    """A report, and where it is: one page, or a folder with a file for each chart."""

    report: Report
    path: Path
    files: tuple[Path, ...]

    def to_json(self) -> dict[str, Any]:
        size = sum(path.stat().st_size for path in self.files)
        return {"path": str(self.path), "files": list(map(str, self.files)), "bytes": size, **self.report.to_json()}


def write_report(
    profiles: Profile | Sequence[Profile],
    models: Sequence[Network] = (),
    out: Path | str | None = None,
    *,
    format: str = "html",
    runs: Sequence[Run] | None = None,
    validation: Validated | Path | str | None = None,
    allocator: str = "system",
    watts_per_core: float | None = None,
    group_by: str | None = None,
) -> WrittenReport:
    """Writes a report of models on a device.

    The report is about the first profile; further ones are compared with it. `out` is a file for html (default
    report.html) and a folder for svg and png (default report). `runs` holds one planned training for each model.
    `group_by` is block or layer; None takes blocks where a model has too many layers for one chart.
    """
    if format not in FORMATS:
        raise UsageError(f"format {format!r} is none of {', '.join(FORMATS)}")
    if format != "html":
        need_matplotlib()
    place = Path(out) if out else Path("report.html" if format == "html" else "report")
    if format == "html" and place.is_dir():
        raise UsageError(f"{place} is a folder: name the file, such as {place / 'report.html'}")
    first, *others = [profiles] if isinstance(profiles, Profile) else profiles
    validated = read_validation(Path(validation)) if isinstance(validation, (str, Path)) else validation
    report = make_report(first, models, runs, validated, allocator, watts_per_core, others, group_by)
    files = save_page(report, place) if format == "html" else save_charts(report, place, format)
    return WrittenReport(report, place, tuple(files))


def make_report(
    profile: Profile,
    networks: Sequence[Network] = (),
    runs: Sequence[Run] | None = None,
    validated: Validated | None = None,
    allocator: str = "system",
    watts_per_core: float | None = None,
    others: Sequence[Profile] = (),
    group_by: str | None = None,
) -> Report:
    """The report of one profile; the other profiles are only compared with it."""
    if group_by is not None and group_by not in GROUPS:
        raise UsageError(f"layers are grouped by {' or '.join(GROUPS)}, not by {group_by!r}")
    if profile.method not in BY_LAYER:
        return _of_totals(profile, networks, validated, watts_per_core, others)
    estimators = [estimator_for(known, watts_per_core) for known in (profile, *others)]
    estimator = estimators[0]
    estimates = [estimator.estimate(network, allocator) for network in networks]
    sections = [
        *([devices_section(networks, estimators, allocator)] if others else []),
        *_models(networks, estimates, runs or [Run()] * len(networks), estimator, group_by),
        surfaces_section(estimator),
        accuracy_section(estimator, validated),
        methods_section(validated) if validated else None,
        cost_section(profile, expected_error(estimator)),
        flags_section(profile),
    ]
    return _report(profile, networks, estimator.meter, sections, [estimate.to_json() for estimate in estimates])


def _models(
    networks: Sequence[Network],
    estimates: Sequence[Estimate],
    runs: Sequence[Run],
    estimator: Estimator,
    group_by: str | None,
) -> Iterator[Section]:
    if len(networks) > 1:
        yield models_section(networks, estimates, estimator)
    colours = kind_colours(estimates)
    for i, (network, estimate, run) in enumerate(zip(networks, estimates, runs, strict=True), 1):
        yield model_section(f"model-{i}", network, estimate, estimator, run, colours, group_by)


def _of_totals(
    profile: Profile,
    networks: Sequence[Network],
    validated: Validated | None,
    watts_per_core: float | None,
    others: Sequence[Profile],
) -> Report:
    """The report of a profile that knows nothing about layers in a network."""
    if watts_per_core is not None or others:
        what = "--watts-per-core" if watts_per_core is not None else "the other profiles"
        raise UsageError(f"a profile made with --method {profile.method} is shown alone, as it is: leave out {what}")
    sections = [
        totals_section(profile, networks),
        methods_section(validated) if validated else None,
        cost_section(profile, None),
        flags_section(profile),
    ]
    return _report(profile, networks, profile.meter, sections, [])


def _report(
    profile: Profile,
    networks: Sequence[Network],
    meter: Meter,
    sections: Sequence[Section | None],
    models: Sequence[dict[str, Any]],
) -> Report:
    names = ", ".join(network.name or "a network" for network in networks)
    return Report(
        f"Energy of training {names}" if names else "Energy of training on this device",
        f"on {device_name(profile)}",
        joules_origin(meter),
        {**profile.setup.to_json(), "batch": batches_of(networks)},
        tuple(models),
        facts(profile, meter, networks),
        more_facts(profile),
        tuple(section for section in sections if section),
    )


def save_page(report: Report, path: Path) -> list[Path]:
    write_whole(path, html(report))
    return [path]


def save_charts(report: Report, folder: Path, format: str) -> list[Path]:
    """Every chart as a file named after it, svg or png."""
    written = [folder / f"{chart.key}.{format}" for chart in report.charts]
    for chart, path in zip(report.charts, written, strict=True):
        save_chart(chart, path)
    return written
