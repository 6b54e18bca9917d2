"""`ampere conformance`: whether a worker that somebody else wrote follows the protocol."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from typing import TYPE_CHECKING

from ampere.cli import arguments, option_values
from ampere.cli.console import notice, print_json
from ampere.core.errors import ConformanceError

if TYPE_CHECKING:
    from ampere.devices.conformance import Outcome


def add_arguments(parser: ArgumentParser) -> None:
    arguments.describe(
        parser,
        "Talks to a worker written in any language, such as a phone's app, a C++ program or a script, and reports "
        "check by check whether it follows docs/reference/protocol.md. It ends with exit code 10 if a check fails.",
        "ampere conformance 'node worker.js'             started here, over a pipe",
        "ampere conformance tcp://127.0.0.1:7070         one that listens already",
        "ampere conformance 'python3 -m ampere.worker'   Ampere's own",
        "ampere conformance ./my-worker --only ids,nonsense",
    )
    parser.add_argument("worker", metavar="COMMAND|tcp://host:port", help="how to reach it; quote a command's words")
    parser.add_argument("--only", metavar="NAMES", help="these checks, with commas between them (default all)")
    parser.add_argument(
        "--patience",
        metavar="S",
        type=option_values.seconds,
        default=60.0,
        help="seconds to wait for an answer (default 60)",
    )
    arguments.add_output(parser)


def run(options: Namespace) -> None:
    from ampere.devices.conformance import check_worker

    outcomes = check_worker(
        options.worker,
        [name for name in (options.only or "").split(",") if name],
        options.patience,
        lambda check: notice(f"checking: {check.title} ...", options.quiet),
    )
    broken = sum(outcome.broken for outcome in outcomes)
    if options.json:
        print_json({"worker": options.worker, "keeps": not broken, "checks": [asdict(o) for o in outcomes]})
    else:
        _show(outcomes)
    if broken:
        raise ConformanceError(
            f"{options.worker} does not follow the protocol: {broken} of {len(outcomes)} checks failed; "
            "docs/reference/protocol.md says what is expected"
        )


def _show(outcomes: tuple[Outcome, ...]) -> None:
    from ampere.cli.console import print_table

    rows = [(o.name, o.verdict, o.title if not o.reason else f"{o.title}: {o.reason}") for o in outcomes]
    print_table(("check", "", "the worker ..."), rows)
