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

if TYPE_CHECKING:
    from ampere.core import Network
    from ampere.reporting import Run, WrittenReport

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
    written = _write(options, battery)
    if options.json:
        print_json(written.to_json())
    else:
        charts = f"{len(written.report.charts)} charts"
        notice(f"{charts} in {written.path}; joules are {written.report.origin}", options.quiet)


def _write(options: Namespace, battery: float | None) -> WrittenReport:
    from ampere.reporting import Run, write_report

    profiles = [profile_in(Path(path)) for path in (options.profile, *filter(_is_profile, options.models))]
    networks = [_network(model, options) for model in options.models if not _is_profile(model)]
    runs: list[Run] = [
        Run(iterations_asked(options, network.batch), battery, options.battery or "") for network in networks
    ]
    return write_report(
        profiles,
        networks,
        options.out,
        format=options.format,
        runs=runs,
        validation=options.validation,
        allocator=options.allocator,
        watts_per_core=options.watts_per_core,
    )


def _is_profile(path: str) -> bool:
    from ampere.storage.files import is_document

    return path.endswith(".json") and is_document(Path(path), "profile")


def _network(model: str, options: Namespace) -> Network:
    from ampere.api import network_of

    return network_of(model_argument(Namespace(model=model, input=options.input, batch=options.batch)))
