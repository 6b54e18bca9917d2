"""`ampere report`: one page that shows where the energy goes."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ampere.cli import arguments
from ampere.cli.console import Display, notice, print_json
from ampere.core.errors import UsageError

FORMATS = ("html", "svg", "png")


def add_arguments(parser: ArgumentParser) -> None:
    arguments.describe(
        parser,
        "Writes one HTML file that works offline: what the device is, where the energy of each model goes with how "
        "much uncertainty, what was learnt, and how accurate it is. With --format svg or png, the charts one by one.",
        "ampere report net.py:build                         with this device's profile",
        "ampere report lenet5 cnn5 --out both.html          models side by side",
        "ampere report phone.json net.json --out phone.html",
        "ampere report resnet --profile phone.json --profile tablet.json",
        "ampere report resnet --epochs 30 --samples 50000 --battery 15Wh",
        "ampere report cnn5 --validation validation.json --format svg --out figures",
    )
    models = f"{arguments.MODEL}, or a file of `ampere trace`; a profile's file is used as with --profile"
    parser.add_argument("models", metavar="MODEL", nargs="*", help=models)
    arguments.add_input(parser)
    parser.add_argument(
        "--validation", metavar="FILE", help="the output of `ampere validate --json`: accuracy on unseen networks"
    )
    parser.add_argument("--out", metavar="PATH", help="default report.html, or the folder report for svg and png")
    parser.add_argument("--format", choices=FORMATS, default="html", help="default html; svg and png are for papers")
    arguments.add_group_by(parser, "default: blocks where there are too many layers for one chart", None)
    arguments.add_run(parser)
    arguments.add_allocator(parser, "system")
    arguments.add_device(parser)
    arguments.add_profile_choice(parser, several=True)
    arguments.add_setup(parser)
    arguments.add_meter(parser, "the profile's own")
    arguments.add_output(parser)


def run(options: Namespace) -> None:
    from ampere.api import report

    arguments.check_run(options)
    place = _place(options)
    profiles = [*options.profile, *filter(_is_profile, options.models)]
    specs = [spec for spec in options.models if not _is_profile(spec)]
    if options.format != "html":
        from ampere.reporting.plotting import need_matplotlib

        need_matplotlib()
    with arguments.open_device(options) as device, Display(options.quiet) as display:
        written = report(
            *(arguments.model(spec, options) for spec in specs),
            profiles=profiles,
            validation=options.validation,
            iterations=options.iterations,
            epochs=options.epochs,
            samples=options.samples,
            battery=options.battery,
            out=place,
            format=options.format,
            group_by=options.group_by,
            **vars(arguments.api_options(options, device, display, profile=None)),
        )
    if options.json:
        files = tuple(_files(place))
        size = sum(path.stat().st_size for path in files)
        print_json({"path": str(place), "files": list(map(str, files)), "bytes": size, **written.to_json()})
    else:
        notice(f"{len(written.charts)} charts in {place}; joules are {written.origin}", options.quiet)


def _place(options: Namespace) -> Path:
    if options.format != "html":
        return Path(options.out or "report")
    place = Path(options.out or "report.html")
    if place.is_dir():
        raise UsageError(f"{place} is a folder: name the file, such as {place / 'report.html'}")
    return place


def _is_profile(path: str) -> bool:
    from ampere.storage.files import is_document

    return path.endswith(".json") and is_document(Path(path), "profile")


def _files(place: Path) -> list[Path]:
    return sorted(place.iterdir()) if place.is_dir() else [place]
