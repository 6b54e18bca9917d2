"""`ampere report`: one page that shows where the energy goes."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ampere.cli import options as shared
from ampere.cli.console import notice, print_json
from ampere.cli.ensure_profile import profile_in
from ampere.cli.model_argument import model_argument
from ampere.cli.training_run import add_run, battery_joules, check_asked, iterations_asked
from ampere.core.errors import UsageError

if TYPE_CHECKING:
    from ampere.core import Network
    from ampere.reporting import Report, Run

FORMATS = ("html", "svg", "png")


def add_arguments(parser: ArgumentParser) -> None:
    shared.describe(
        parser,
        "Writes one HTML file that needs no network: what the device is, where the energy of each model goes and how "
        "sure that is, what was learnt, how good it is, and what was doubted. With --format svg or png, the charts one "
        "by one.",
        "ampere report phone.json net.json --out phone.html            of a file of `ampere trace`, without PyTorch",
        "ampere report phone.json tablet.json resnet                   of the first, with both devices side by side",
        "ampere report here.json resnet --epochs 30 --samples 50000 --battery 15Wh",
        "ampere report here.json cnn5 --validation cnn5-validation.json --format svg --out figures",
    )
    parser.add_argument("profile", metavar="PROFILE", help="a file of `ampere profile --out FILE`, of any device")
    models = (
        f"{shared.MODEL}, or a file of `ampere trace`; none: only the device. Further profiles: devices side by side"
    )
    parser.add_argument("models", metavar="MODEL", nargs="*", help=models)
    shared.add_input(parser)
    parser.add_argument(
        "--validation", metavar="FILE", help="what `ampere validate --json` printed: unseen networks, and other methods"
    )
    parser.add_argument("--out", metavar="PATH", help="default report.html, or the folder report for svg and png")
    parser.add_argument("--format", choices=FORMATS, default="html", help="default html; svg and png are for papers")
    add_run(parser)
    shared.add_allocator(parser, "system")
    shared.add_meter(parser, "the profile's own")
    shared.add_output(parser)


def run(options: Namespace) -> None:
    check_asked(options)
    battery = battery_joules(options)
    if options.format == "png":
        from ampere.reporting.plotting import need_matplotlib

        need_matplotlib()
    report = _report(options, battery)
    place, written = _write(report, options)
    if options.json:
        size = sum(path.stat().st_size for path in written)
        print_json({"path": str(place), "files": list(map(str, written)), "bytes": size, "joules": report.origin})
    else:
        charts = f"{len(report.charts)} charts"
        notice(f"{charts} in {place}; joules are {report.origin}", options.quiet)


def _report(options: Namespace, battery: float | None) -> Report:
    from ampere.reporting import Run, make_report, read_validation

    profile = profile_in(Path(options.profile))
    others = [profile_in(Path(path)) for path in options.models if _is_profile(path)]
    validated = read_validation(Path(options.validation)) if options.validation else None
    networks = [_network(model, options) for model in options.models if not _is_profile(model)]
    runs: list[Run] = [
        Run(iterations_asked(options, network.batch), battery, options.battery or "") for network in networks
    ]
    return make_report(profile, networks, runs, validated, options.allocator, options.watts_per_core, others)


def _is_profile(path: str) -> bool:
    from ampere.storage.files import is_document

    return path.endswith(".json") and is_document(Path(path), "profile")


def _network(model: str, options: Namespace) -> Network:
    from ampere.api import network_of

    return network_of(model_argument(Namespace(model=model, input=options.input, batch=options.batch)))


def _write(report: Report, options: Namespace) -> tuple[Path, list[Path]]:
    from ampere.reporting import save_charts, save_page

    if options.format == "html":
        place = Path(options.out or "report.html")
        if place.is_dir():
            raise UsageError(f"{place} is a folder: name the file, such as {place / 'report.html'}")
        return place, save_page(report, place)
    place = Path(options.out or "report")
    return place, save_charts(report, place, options.format)
