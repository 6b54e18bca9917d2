"""`ampere evaluate`: the paper's experiments and ours, on this device and on simulated ones."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ampere.cli import arguments, option_values
from ampere.cli.console import Display, notice, print_json
from ampere.core.errors import Interrupted
from ampere.core.units import counted, seconds

if TYPE_CHECKING:
    from ampere.evaluation.running import Result
    from ampere.evaluation.session import Folder, Session


def add_arguments(parser: ArgumentParser) -> None:
    arguments.describe(
        parser,
        "Runs the experiments of the paper and some of ours, keeps their records as JSON, draws them, and shows how "
        "far every method is from real training. A stopped run goes on where it was.",
        "ampere evaluate --quick                        all of them in a few minutes",
        "ampere evaluate additivity fc_channels",
        "ampere evaluate models_devices --device local --device simulated:xavier",
        "ampere evaluate --list                         what there is",
        "ampere evaluate --draw-only                    draw what was measured before",
        "ampere evaluate --out today --against last-week",
    )
    parser.add_argument("experiments", metavar="EXPERIMENT", nargs="*", help="which ones (default all; see --list)")
    parser.add_argument(
        "--device",
        metavar="D",
        action="append",
        default=[],
        help="local, simulated:NAME or replayed:FILE; may be given several times "
        "(default local, and simulated ones where devices are compared)",
    )
    parser.add_argument("--quick", action="store_true", help="fewer and smaller measurements, in about seven minutes")
    parser.add_argument("--out", metavar="FOLDER", help="where to keep everything (default evaluation[-quick])")
    parser.add_argument("--against", metavar="FOLDER", help="an earlier run: show the drift since, network by network")
    parser.add_argument(
        "--data",
        metavar="DATA",
        default="",
        help="images of `pruning`: digits (default, scikit-learn's), mnist:FOLDER, cifar10:FOLDER, celeba:FOLDER, or "
        "faces drawn by Ampere",
    )
    parser.add_argument(
        "--baseline-samples",
        metavar="N",
        type=option_values.count,
        default=0,
        help="give methods that learn from isolated layers (NeuralPower, nn-Meter) this many measurements each, "
        "however long that takes (default: as many as fit into the seconds of Ampere's own profile)",
    )
    parser.add_argument("--list", action="store_true", help="show the experiments and how long they take, run nothing")
    parser.add_argument("--draw-only", action="store_true", help="measure nothing; draw what is stored in the folder")
    parser.add_argument("--no-plot", action="store_true", help="draw nothing")
    arguments.add_seed(parser)
    arguments.add_output(parser)


def run(options: Namespace) -> None:
    from ampere.evaluation.between_runs import between
    from ampere.evaluation.plan import Plan
    from ampere.evaluation.running import chosen
    from ampere.evaluation.session import Folder, Session

    names = chosen(options.experiments)
    devices = tuple(dict.fromkeys(options.device))
    plan = Plan(options.quick, options.seed, devices, options.data, options.baseline_samples)
    folder = Folder(Path(options.out or ("evaluation-quick" if options.quick else "evaluation")))
    with Session(folder, plan) as session:
        if options.list:
            _list(names, session, options)
            return
        earlier = _earlier(session, options)
        results = _stored(names, session) if options.draw_only else _measured(names, session, options)
        results += [between(earlier, session)] if earlier else []
    files = [folder.of_result(r.experiment) for r in results] + _drawn(results, folder.path, options)
    _show(results, files, options)


def _list(names: list[str], session: Session, options: Namespace) -> None:
    from ampere.cli.evaluation_tables import listed, show_list

    print_json(listed(names, session)) if options.json else show_list(names, session)


def _earlier(session: Session, options: Namespace) -> Folder | None:
    """The run to compare with: looked at before an hour of measuring, not after."""
    from ampere.evaluation.between_runs import check
    from ampere.evaluation.session import Folder

    if options.against is None:
        return None
    check(folder := Folder(Path(options.against)), session)
    return folder


def _stored(names: list[str], session: Session) -> list[Result]:
    from ampere.core.errors import ProfileError
    from ampere.evaluation.running import stored

    found = [result for name in names if (result := stored(name, session))]
    if not found:
        raise ProfileError(
            f"{session.folder.path} holds no records of {', '.join(names)}: run without --draw-only first"
        )
    return found


def _measured(names: list[str], session: Session, options: Namespace) -> list[Result]:
    from ampere.evaluation.running import expected_seconds, run

    session.agree()
    expected = expected_seconds(names, session)
    notice(
        f"{counted(len(names), 'experiment')}, about {seconds(max(1.0, expected))}; kept in {session.folder.path}",
        options.quiet,
    )
    with Display(options.quiet) as display:
        try:
            return run(names, session, display.task("evaluating"))
        except KeyboardInterrupt:
            raise Interrupted(
                f"stopped; what was measured is kept in {session.folder.path}, the same command goes on from there"
            ) from None


def _drawn(results: list[Result], folder: Path, options: Namespace) -> list[Path]:
    from ampere.evaluation.running import draw
    from ampere.reporting.plotting import can_plot

    if options.no_plot:
        return []
    if not can_plot() and not options.draw_only:
        notice("no pictures: pip install 'ampere-energy[plot]' for them", options.quiet)
        return []
    return [path for result in results for path in draw(result, folder)]


def _show(results: list[Result], files: list[Path], options: Namespace) -> None:
    from ampere.evaluation.summary import summary_of

    if options.json:
        print_json({**summary_of(results), "files": [str(path) for path in files]})
        return
    from ampere.cli.evaluation_tables import show

    show(results, files)
