"""A report on disk: one page, or its charts one by one for papers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean

from ampere.core import Meter, Network
from ampere.core.errors import UsageError
from ampere.estimation.estimate import Estimator
from ampere.estimation.fitting import BY_LAYER
from ampere.reporting import svg
from ampere.storage.files import storing
from ampere.storage.profile import Profile

from .accuracy import Validated, accuracy_section, left_out, methods_section
from .comparison_section import devices_section, side_by_side, whole_section
from .device_section import cost_section, device_name, facts, flags_section, more_facts, surfaces_section
from .drawing import Drawing, Text, room_for
from .model_section import Run, kind_colours, model_section
from .page import FULL, HALF, html
from .record import Chart, Report, Section
from .words import origin

MARGIN, TITLE, CAPTION, LINE = 18.0, 14.0, 11.5, 16.0


def save_page(report: Report, path: Path) -> list[Path]:
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(html(report), encoding="utf-8")
    return [path]


def save_charts(report: Report, folder: Path, form: str) -> list[Path]:
    """`form` is svg or png; a file is named after its chart."""
    written = []
    for chart in report.charts:
        path, drawing = folder / f"{chart.key}.{form}", on_its_own(chart)
        with storing(path):
            folder.mkdir(parents=True, exist_ok=True)
            if form == "svg":
                path.write_text(svg.alone(drawing, chart.title, chart.caption), encoding="utf-8")
            else:
                from .raster import save_png

                save_png(drawing, path)
        written.append(path)
    return written


def on_its_own(chart: Chart) -> Drawing:
    """With a margin, its title, and the caption that says where its joules come from: a picture travels alone."""
    drawn = chart.draw(FULL if chart.full else HALF)
    titles, captions = wrapped(chart.title, drawn.width, TITLE), wrapped(chart.caption, drawn.width, CAPTION)
    above = MARGIN + (LINE + 3) * len(titles) + 6
    marks = list(drawn.marks)
    marks += [Text(0, 12 - above + MARGIN + i * (LINE + 3), t, TITLE, bold=True) for i, t in enumerate(titles)]
    marks += [Text(0, drawn.height + 20 + i * LINE, t, CAPTION, "muted") for i, t in enumerate(captions)]
    height = above + drawn.height + 12 + LINE * len(captions) + MARGIN
    return Drawing(drawn.width + 2 * MARGIN, height, marks, -MARGIN, -above)


def wrapped(words: str, width: float, size: float) -> list[str]:
    lines = [""]
    for word in words.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if room_for(longer, size) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


# Profiles, networks and a validation -> what the report says, in the order in which people ask.


def make_report(
    profile: Profile,
    networks: Sequence[Network],
    runs: Sequence[Run],
    validated: Validated | None = None,
    allocator: str = "system",
    watts_per_core: float | None = None,
    others: Sequence[Profile] = (),
) -> Report:
    """One run for each network. The other profiles are only compared with the first, which the report is about."""
    if profile.method not in BY_LAYER:
        return _of_wholes(profile, networks, validated, watts_per_core, others)
    estimators = [Estimator(known, watts_per_core) for known in (profile, *others)]
    estimator = estimators[0]
    sections = [
        *([devices_section(networks, estimators, allocator)] if others else []),
        *_models(networks, runs, estimator, allocator),
        surfaces_section(profile, estimator),
        accuracy_section(profile, estimator, validated),
        methods_section(validated) if validated else None,
        cost_section(profile, _expected_error(profile, estimator)),
        flags_section(profile),
    ]
    return _report(profile, networks, estimator.meter, sections)


def _of_wholes(
    profile: Profile,
    networks: Sequence[Network],
    validated: Validated | None,
    watts_per_core: float | None,
    others: Sequence[Profile],
) -> Report:
    """Of a profile that tells nothing about layers in a network."""
    if watts_per_core is not None or others:
        what = "--watts-per-core" if watts_per_core is not None else "the other profiles"
        raise UsageError(f"a profile made with --method {profile.method} is shown alone, as it is: leave out {what}")
    sections = [
        whole_section(profile, networks),
        methods_section(validated) if validated else None,
        cost_section(profile, None),
        flags_section(profile),
    ]
    return _report(profile, networks, profile.meter, sections)


def _models(
    networks: Sequence[Network], runs: Sequence[Run], estimator: Estimator, allocator: str
) -> Iterator[Section]:
    estimates = [estimator.estimate(network, allocator) for network in networks]
    if len(networks) > 1:
        yield side_by_side(networks, estimates, estimator)
    colours = kind_colours(estimates)
    for i, (network, estimate, run) in enumerate(zip(networks, estimates, runs, strict=True), 1):
        yield model_section(f"model-{i}", network, estimate, estimator, run, colours)


def _report(profile: Profile, networks: Sequence[Network], meter: Meter, sections: Sequence[Section | None]) -> Report:
    names = ", ".join(network.name or "a network" for network in networks)
    return Report(
        f"Energy of training {names}" if names else "Energy of training on this device",
        f"on {device_name(profile)}",
        origin(meter),
        facts(profile, meter),
        more_facts(profile),
        tuple(section for section in sections if section),
    )


def _expected_error(profile: Profile, estimator: Estimator) -> float | None:
    """Of whole networks, which is what estimates are made for; of all measurements where there are none."""
    found = left_out(profile, estimator)
    spots = found.get("network") or [spot for of_purpose in found.values() for spot in of_purpose]
    return mean(abs(s.estimated / s.measured - 1) for s in spots) if spots else None
